"""Hosts: programs that keep a conversation themselves and send all of it each time, as clients of providers do.

Enters: a host's whole history with a new question. Leaves: the conversation that it is, gone on with where it stands,
and what is to be said of a history that is not as it was.
May not enter: wires, HTTP; what a provider calls things.
"""
