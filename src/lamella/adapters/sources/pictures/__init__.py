"""Pictures: files that notes embed, bytes that somebody gives, and what was pasted as letters.

Enters: names, bytes, data URIs, a callable that fetches. Leaves: artifacts with one picture each.
May not enter: decoding of pixels; a connection of its own.
"""
