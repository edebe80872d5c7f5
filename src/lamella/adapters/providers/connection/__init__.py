"""Connections: keys and addresses before anything is sent, answers as they come in, and failures on the way.

Enters: SDKs' clients, streams and exceptions. Leaves: batches of deltas, errors of our own tree.
May not enter: what a request or a reply says; facts about models.
"""
