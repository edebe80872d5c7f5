"""Settings: the commands about what holds for every conversation: values, trusted places, what shells complete.

Enters: words on a command line. Leaves: lines and JSON about settings and places, the person's list of those, and what
a shell reads.
May not enter: conversations, turns, what a setting means; passwords, other than masked.
"""
