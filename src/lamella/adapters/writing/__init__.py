"""Writing: the only room that changes a vault, one note at a time, after somebody has said yes.

Enters: the path and the new text of a note, and later a yes. Leaves: the change as people see it, the note written
whole or not at all, and a copy of what it was, in a private folder. May not enter: anything outside the vault or behind
a link; the decision whether something may be written.
"""
