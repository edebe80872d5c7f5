"""Sources: where attachments are read from. Paths never leave the vault, by themselves or through a link.

Enters: a folder on disk. Leaves: artifacts and images. May not enter: writing; a vault is only read.
"""
