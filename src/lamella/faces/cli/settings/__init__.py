"""Settings: the commands about what holds for every conversation: values and where they are from, trusted places.

Enters: words on a command line. Leaves: lines and JSON about settings and places, and the person's list of those.
May not enter: conversations, turns, what a setting means; passwords, other than masked.
"""
