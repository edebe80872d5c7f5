"""The page: what people see of a conversation in a file, and what they changed there.

Enters: a log, or the visible text of a file. Leaves: that text, or the messages it shows and the events edits come to.
May not enter: the comment below the page, files of a vault.
"""
