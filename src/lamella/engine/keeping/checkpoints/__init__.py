"""Checkpoints of a conversation: snapshots of its log, so that opening it folds only the newest events.

Enters: a log whose events are all written, and what its active branch came to. Leaves: checkpoints for a store, and the
log again. May not enter: anything that the events would not come to.
"""
