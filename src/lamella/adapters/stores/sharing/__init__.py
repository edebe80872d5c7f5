"""Sharing: one store for several owners who see nothing of one another, and for several processes that take turns.

Enters: a store, the name of an owner, keys of conversations. Leaves: a store that has only what is that owner's, who
may answer in a conversation now, and what one process laid down for another.
May not enter: tokens, requests, what is said in conversations.
"""
