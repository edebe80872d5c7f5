"""Memory: saved facts and lines of recent conversations, in files that people read and edit.

Enters: a folder, lines to add, change or take out. Leaves: facts in the order of their files; files that are whole.
May not enter: what a prompt shows of them; whatever leads out of the folder.
"""
