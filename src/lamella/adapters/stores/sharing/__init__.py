"""Sharing: one store for several owners who see nothing of one another, and for several processes that take turns.

Enters: a store, the name of an owner, keys of conversations. Leaves: a store that has only what is that owner's, and
who may answer in a conversation now.
May not enter: tokens, requests, what is said in conversations.
"""
