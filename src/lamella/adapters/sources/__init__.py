"""Sources: where attachments are read from. Paths never leave the vault, by themselves or through a link.

Enters: a folder on disk, addresses of the web, and what people call things there. Leaves: artifacts and images, and
attachments by name. May not enter: writing into a vault, which is only read; ``cache`` alone writes, in its own folder.
"""
