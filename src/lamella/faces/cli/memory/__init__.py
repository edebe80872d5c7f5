"""Memory: what is remembered beyond one conversation, as a command and inside a chat.

Enters: what was typed. Leaves: lines for people, JSON for programs, and what the files of the memory hold then.
May not enter: how a prompt shows it.
"""
