"""Notes: what a query may ask of a note: its file, its fields, its tasks.

Enters: the texts of notes, and what their files are. Leaves: records with fields. May not enter: queries.
"""
