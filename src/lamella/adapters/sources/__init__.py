"""Sources: where attachments are read from. Paths never leave the vault, by themselves or through a link.

Enters: a folder on disk, and what people call things in it. Leaves: artifacts and images, and attachments by name.
May not enter: writing; a vault is only read.
"""
