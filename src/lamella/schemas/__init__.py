"""The JSON bodies and totals that the command line, the server and Python share, each defined once.

A module per subject: ``conversations``, ``messages``, ``answers``, ``prompts``, ``library``, ``compaction``,
``ledger``, ``catalog`` and ``code``; ``formatting`` has money and errors. The ``*_to_json`` functions return the field
names that the docs promise.

The package does no I/O and no printing, and uses no clock, settings, colours or terminal width. It does not import
``conversation``; it gets its values through protocols (the ``*Shape`` classes).
"""
