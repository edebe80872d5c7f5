"""Originals: what was said and attached in conversations of a store, found again by its words.

Enters: the log of a branch with its contents, a query. Leaves: the passages that fit, each with when it was said.
May not enter: how texts are compared, which is said in ``core/search``; prompts, but to leave out what one still holds.
"""
