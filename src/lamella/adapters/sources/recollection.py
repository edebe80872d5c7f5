"""Recollection: what a vault's files said when they were last read, as long as they are what they were."""

from collections.abc import Callable
from pathlib import Path
from time import time_ns

from lamella.adapters.files.reading import FileMemory, read_head
from lamella.adapters.sources.markdown.front import read_front, split_front
from lamella.adapters.sources.markdown.note import parse_note
from lamella.adapters.sources.markdown.tags import fold_tag, read_aliases
from lamella.core.artifacts.model import Artifact

_MOST_CHARACTERS = 64_000_000
_MOST_NOTES = 200_000
# Most front matter ends within the first; what does not end within the second is not read at all.
_HEADS = (4_096, 200_000)


class Recollection:
    """Artifacts, texts, tags and aliases by file. Sixty million characters of text are kept, the latest asked for."""

    def __init__(self, *, now_ns: Callable[[], int] = time_ns) -> None:
        self.artifacts: FileMemory[Artifact] = FileMemory(
            limit=_MOST_CHARACTERS, weigh=lambda made: len(made.text), now_ns=now_ns
        )
        self._texts: FileMemory[str] = FileMemory(limit=_MOST_CHARACTERS, weigh=len, now_ns=now_ns)
        self._tags: FileMemory[frozenset[str]] = FileMemory(limit=_MOST_NOTES, now_ns=now_ns)
        self._aliases: FileMemory[tuple[str, ...]] = FileMemory(limit=_MOST_NOTES, now_ns=now_ns)

    def text(self, file: Path, read_text: Callable[[], str]) -> str:
        """The text of a note that others embed."""
        return self._texts.get(file, file, read_text)

    def tags(self, file: Path, read_text: Callable[[], str]) -> frozenset[str]:
        """The folded tags of a note."""
        return self._tags.get(file, file, lambda: frozenset(map(fold_tag, parse_note(read_text()).tags)))

    def aliases(self, file: Path) -> tuple[str, ...]:
        """The aliases of a note, of which no more is read than its front matter; ``OSError`` if it cannot be read."""
        return self._aliases.get(file, file, lambda: _read_aliases(file))


def _read_aliases(file: Path) -> tuple[str, ...]:
    for limit in _HEADS:
        head = read_head(file, limit=limit).decode(errors="replace")
        if not head.removeprefix("\ufeff").startswith("---"):
            return ()
        begin, end, body = split_front(head)
        if body:
            block = head[begin:end]
            return tuple(read_aliases(read_front(block)[0])) if "alias" in block.casefold() else ()
    return ()
