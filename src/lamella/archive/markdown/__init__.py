"""Markdown archives: one conversation as one file that people can read, edit, keep in a vault and diff.

- ``archive``: renders, parses, saves and loads archives.
- ``page``: the visible messages, and edits that people made to them.
- ``payload``: the comment at the end of a file, with every event.
- ``recovery``: files that an archive only names.
- ``legacy``: archives of Obsidian Copilot and similar files.

An import gives one warning for each thing that could not be imported. The package does not guess at the meaning of a
file, and fetches no pages from the network.
"""

from lamella.archive.markdown.archive import load_archive, parse_archive, render_archive, save_archive

__all__ = ["load_archive", "parse_archive", "render_archive", "save_archive"]
