"""Clocks: where the time of an event comes from.

Enters: nothing. Leaves: moments in UTC. May not enter: time zones of the machine.
"""
