"""Skeletons: a source file without the bodies of its functions: what it defines, with what it says of that.

Enters: a path and a text. Leaves: a shorter text, by a parser where one knows the language and is installed, else by
lines. May not enter: files, questions, budgets.
"""
