"""Kinds: what a chat about code is asked for, what each of them is told, and one function that answers.

Enters: a kind, what it is about, messages as a client keeps them. Leaves: what a turn asks, and flags of its prompt.
May not enter: a flag that is kept beside the prompt. What stands in it is looked up there, and nowhere else.
"""
