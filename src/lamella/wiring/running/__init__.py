"""Running: what runners work with, opened where settings say: workplaces, servers of tools, the memory.

Enters: services, and a vault if there is one. Leaves: a workplace; what nobody uses is not opened.
May not enter: ways of answering; a server that only a project's file names and nobody trusts.
"""
