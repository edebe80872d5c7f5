"""Log: a conversation as what happened to it, and the tree of messages that this folds to.

Enters: events, one after another. Leaves: branches, turns with their contents, and snapshots of the fold.
May not enter: stores, clocks, random ids. What the user wrote is never changed here.
"""
