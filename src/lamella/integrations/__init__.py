"""Lamella inside other programs: editors, agent hosts, and frameworks for agents.

Each module connects one kind of host. It imports the host's package, so it is imported only when that host is used.
What enters: the messages, files and settings of the host. What leaves: requests for the host to send, or answers to show.
What does not belong here: anything that two hosts and the command line both need; that is in ``wiring`` or ``schemas``.
"""
