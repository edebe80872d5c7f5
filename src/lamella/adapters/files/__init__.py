"""Files: how files that people name are read and written, whatever is in them.

Enters: a path, and how much may be read or what is to be written. Leaves: bytes of plain files; files that are whole.
May not enter: what the bytes mean; devices, pipes and files without an end.
"""
