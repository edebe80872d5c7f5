"""Artifacts: typed pieces of context that users attach, with their ids and their rendered blocks.

- ``model``: the types, and the ids they get.
- ``kinds``: the registry of kinds, and the constructors.
- ``blocks``: renders one block per artifact.
- ``embeds``: finds the images that a note embeds.

The package knows no layers, token counts or files. Lamella never parses rendered text back into artifacts.
"""
