"""Recovery: the files that an archive only names, found again in the vault of now.

Enters: names and hashes, and the sources to look into. Leaves: contents, and the events with other texts where files
have changed. May not enter: guesses at which of two files was meant.
"""
