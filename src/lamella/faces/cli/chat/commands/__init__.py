"""Commands of a chat that need more than a few lines: other conversations, settings, what is attached.

Enters: the talk, and what was typed after a slash. Leaves: what is told, and what the next message does otherwise.
May not enter: reading keys, drawing answers.
"""
