"""Legacy: archives of Obsidian Copilot, and any file of ``**user**: `` and ``**ai**: `` messages.

Enters: the text of such a file, and the sources its notes are in. Leaves: a chronicle. May not enter: archives of
Lamella. The only room where blocks of text are read back into artifacts.
"""

from lamella.adapters.archive.markdown.legacy.file import parse_legacy

__all__ = ["parse_legacy"]
