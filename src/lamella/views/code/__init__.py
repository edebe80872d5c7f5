"""Code: what was chosen of a repository, and what questions about code came to, as data.

Enters: selections, solutions and states. Leaves: what JSON can say, in our names and in those of clients.
May not enter: files, settings, anything that reads or asks.
"""
