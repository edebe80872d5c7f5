"""Answering: what runners do that look something up before they answer.

Enters: a question in its conversation, the notes of a vault, tools. Leaves: what is asked with what was found, and the
answer with its citations checked.
May not enter: prompts of the answer made by hand, the files of a vault, names of providers.
"""
