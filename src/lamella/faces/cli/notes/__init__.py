"""Notes: the commands about a vault that is searched.

Enters: words on a command line. Leaves: passages of notes as lines and JSON, and what became of an index.
May not enter: conversations, models, writing into a vault.
"""
