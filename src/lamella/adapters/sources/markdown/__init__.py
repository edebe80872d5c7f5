"""Markdown: what a note says of itself, read once from its text.

Enters: the text of a note. Leaves: its properties, aliases, tags, headings, links, embeds and blocks, and where in the
text each stands. May not enter: files, the catalog, anything that another note says.
"""
