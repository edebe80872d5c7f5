"""Artifacts: what people attach, as typed values that know who they are.

Enters: text and where it came from. Leaves: frozen artifacts with id, hash and trust, and the block each renders to.
May not enter: layers, token counts, files. Rendered text is never parsed back.
"""
