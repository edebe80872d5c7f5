"""Functions that need nothing but a text.

- ``content``: normalise, hash, escape and truncate.
- ``diff``: unified diffs.
- ``exact_terms``: paths, numbers, dates and ids of a text.
- ``rule_detection``: instructions, quotations, user rules, and outlines of replies.
- ``mentions``: names in typed text that ask for an attachment.
- ``write_blocks``: notes that a reply contains for Lamella to save.
- ``notation``, ``outline``: numbers and dates in any notation, and the headings of a text.

The package knows no artifacts and no layers. It counts tokens only through a plain ``count`` callable.
"""
