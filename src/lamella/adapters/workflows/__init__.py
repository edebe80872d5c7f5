"""Workflows: files that say in which stages work is done; some ship, people write their own.

Enters: a name, or the path of a TOML file. Leaves: a workflow as a value, whose every field was looked at.
May not enter: conversations, what becomes of a workflow once it was begun.
"""
