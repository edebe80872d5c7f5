"""A branch of a stored conversation: the past that it goes on from, told from its events or from a state that was kept.

Enters: a log, what is in force on one of its branches, and bytes from its newest checkpoint. Leaves: a past, and the
bytes for the next. May not enter: a state that the events of the branch would not lead to.
"""
