"""Markdown: one conversation as one file that people read, edit, keep in their vault and diff.

Enters: a chronicle, or the text of a file and the vault its notes are in. Leaves: the text, or the chronicle with a
warning for each thing that could not be brought along. May not enter: guesses at what a file meant, and fetched pages.
"""

from lamella.adapters.archive.markdown.archive import parse_archive, render_archive
from lamella.adapters.archive.markdown.files import load_archive, save_archive

__all__ = ["load_archive", "parse_archive", "render_archive", "save_archive"]
