"""Terminal: how any command writes to people. Lines that can do nothing to a screen, failures, progress, streams.

Enters: texts of any origin, errors. Leaves: bytes on stdout and stderr, in UTF-8 whatever the locale says.
May not enter: what a command is about: turns, ledgers; settings, other than keys to be masked and what is trusted.
Hints name conversations as they are given them.
"""
