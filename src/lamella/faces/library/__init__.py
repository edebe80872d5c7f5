"""Library: the names a Python program uses.

Enters: plain values. Leaves: turns. May not enter: printing, exits, global state.
"""
