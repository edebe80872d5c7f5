"""``lamella chat``: from the typed line to the answer on the screen.

Enters: typed or piped text, and the events of an answer.
Leaves: the answer on stdout, everything else on stderr.
May not enter: how a prompt is built, how a provider is called. Files are read through a source, never directly.
"""
