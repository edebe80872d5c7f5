"""Code: the files of a repository, chosen for a question and fitted to a number of tokens, without a network.

Enters: a folder, or files with their contents; a question; a budget. Leaves: selections, each file in full, as a
skeleton or by name, each with why; an index in a private file of the user. May not enter: writing into the repository,
programs that a repository names, models, conversations.
"""
