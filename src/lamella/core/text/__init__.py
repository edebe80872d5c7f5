"""Text: what can be told from words alone.

Enters: texts. Leaves: hashes, escaped lines, outlines, exact words, quotations, differences, titles, mentions.
May not enter: artifacts, layers, token counts but through a plain ``count``.
"""
