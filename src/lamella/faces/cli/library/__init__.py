"""Commands on the library of a kept conversation: what is attached, and what becomes of it with the next turn.

Enters: the words of a command. Leaves: an event in the store, and what it came to, for people or as JSON.
May not enter: prompts, sources but by name; what a command means is the engine's.
"""
