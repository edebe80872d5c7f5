"""Commands on work in stages: begin it, see where it stands, write down, submit, approve, go back, export.

Enters: the words of a command. Leaves: an event in the store, and where the work stands then, for people or as JSON.
May not enter: what stages mean, which is the engine's; prompts.
"""
