"""Adapters: the world, a folder per port.

Enters: files, vocabularies, prices, other programs' formats. Leaves: core's values, through the shapes in ``ports``.
May not enter: decisions about prompts. Adapters know no face.
"""
