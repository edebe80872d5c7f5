"""``lamella doctor``: what any application pays for its prompts, which of it was avoidable, and why.

- ``calls``: one model call as a log has it: the request body, the reported usage, the time.
- ``log_files``, ``log_records``, ``sessions``: read logs of other programs, recognised by their content.
- ``blocks``: a request body as a list of blocks in the order in which caches see them.
- ``text_changes``: why one text became another: a time, an id, white space, the order of JSON keys.
- ``causes``: the causes of lost money, with the sentence that says what to do about each.
- ``analysis``: finds conversations, prefix breaks, their causes and their price.
- ``html_report``: a diagnosis as one HTML file with plots.
- ``redaction``: replaces the texts of a log so that it can be shared.

What enters: files, prices, cache profiles and token counters. What leaves: a ``Diagnosis``. Only ``log_files``
reads files; the other modules are pure. Nothing is changed and nothing leaves the machine.
"""
