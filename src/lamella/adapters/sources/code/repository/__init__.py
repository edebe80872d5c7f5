"""Repositories: which files of a folder can be chosen at all, and why each of the others cannot.

Enters: a folder, or files with their contents. Leaves: paths with their states, texts, and reasons. May not enter: what
a question asks; hooks, filters and pagers that a repository's own configuration names.
"""
