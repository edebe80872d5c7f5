"""Find notes of a vault by words, names, tags, folders and dates, without a network.

``index`` keeps the index of a vault up to date, ``database`` is its file, ``chunks`` splits notes, ``words`` and
``dates`` parse queries, and ``search`` returns passages, each with its location and the reason for the match.

The package never writes to the vault, calls no model and knows no conversations. The index is in a private file.
"""
