"""Secrets: keys, tokens and private keys told by their form, before a text leaves for a model elsewhere.

Enters: a text. Leaves: the lines that look like a secret, and what kind of one. May not enter: the network (nothing is
verified), guesses by how random a text looks; and the secret itself never leaves in a message.
"""
