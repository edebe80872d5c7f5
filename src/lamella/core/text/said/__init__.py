"""Said: what people typed and models answered, read as talk: outlines of it, quotations in it, wishes that stand.

Enters: text that somebody said. Leaves: text that is shorter, or what was found in it.
May not enter: messages, token counting, and who is to be believed.
"""
