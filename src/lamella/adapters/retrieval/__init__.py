"""Retrieval: the notes of a vault, found by their words, names, tags, folders and days, without a network.

Enters: the files of a vault as text, questions, and what time it is. Leaves: passages, the best first, each with where
it stands and why it was found; an index in a private file of the user. May not enter: writing into the vault, models,
conversations.
"""
