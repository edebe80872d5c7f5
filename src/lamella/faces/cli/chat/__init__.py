"""Chat: ``lamella chat``, from the line that is typed to the answer on the screen.

Enters: what is typed or piped in, events of an answer that comes. Leaves: text on stdout, the rest on stderr.
May not enter: how a prompt is made, how a provider is spoken to; a file is read through a source, never by hand.
"""
