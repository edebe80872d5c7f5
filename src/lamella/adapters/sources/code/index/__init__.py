"""The index of a repository: the words of its files and what its commits say of them, brought up to date and asked.

Enters: files as they are, the log of git, questions. Leaves: for each file how well it fits, by parts; an index that
lasts in a private file, or in memory. May not enter: budgets, tokens, what files look like in a prompt.
"""
