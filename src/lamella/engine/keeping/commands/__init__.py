"""Commands: what is attached, detached, dropped or pinned between two questions of a stored conversation.

Enters: a command as it was read, the events of a log. Leaves: one event for each command, and what all of them come to.
May not enter: reading of sources, prompts; what a command means is said in ``dialogue/reading``.
"""
