"""Checkpoints: snapshots of a conversation's log, so that opening it folds only the newest events."""
