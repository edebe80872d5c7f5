"""Commands of whoever runs a server: starting it, and giving out tokens and taking them back.

Enters: the words of a command. Leaves: a server that runs until it is stopped, or what became of a token.
May not enter: HTTP and what speaks it, which ``faces/server`` has.
"""
