"""Dataview: queries over the notes of a vault, answered with text.

Enters: a query, the notes of a vault with their sizes and times, the day if somebody tells it. Leaves: rows as
markdown, or why a query was left as the text it is. May not enter: what day it is, writing, programs that notes bring
along.
"""
