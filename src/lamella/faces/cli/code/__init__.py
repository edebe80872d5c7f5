"""Code at the command line: files of a repository, chosen for a question.

Enters: words of the command line, files that a client sends as JSON. Leaves: tables, JSON, the text of a selection;
what waits for the next turn of a conversation. May not enter: how files are ranked or fitted.
"""
