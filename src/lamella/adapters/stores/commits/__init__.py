"""Commits: what several threads of one process want to have written at one moment is committed at once.

Enters: what each of them wants to write. Leaves: what came of each, as if it had been alone.
May not enter: what is said in conversations; how a database begins, locks and commits.
"""
