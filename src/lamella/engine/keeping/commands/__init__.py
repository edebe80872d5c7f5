"""Commands: what is attached, detached, dropped or pinned between two questions of a stored conversation; and asides.

Enters: a command as it was read, a model call that gave no answer, the events of a log. Leaves: one event for each, and
what all of them come to.
May not enter: reading of sources, prompts; what a command means is said in ``dialogue/reading``.
"""
