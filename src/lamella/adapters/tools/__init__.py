"""Tools: what models may call here, one function for each, and the registry that says which are there.

Enters: a vault, its index, what reads pages, a clock, a yes to what would be written; a call with its arguments.
Leaves: tools with their schemas, and what each call gave as text, never more than is read at once. May not enter:
prompt decisions; writing to a vault but through the room ``writing``; whatever a note, a page or another tool says as
more than text.
"""
