"""Blocks that have a name: ``^id`` behind a paragraph or an item, or on a line of its own behind anything else."""

import re
from collections.abc import Mapping, Sequence

from lamella.adapters.sources.markdown.structure import Span

_NAME = re.compile(r"(?:^|(?<=\s))\^([A-Za-z0-9-]+)[ \t]*\r?$", re.MULTILINE)
_NAMED = frozenset(("Paragraph", "Heading", "Item"))
# All but blanks and what each line of a quotation begins with.
_WORD = re.compile(r"[^\s>]")


def find_blocks(text: str, offset: int, spans: Sequence[Span]) -> Mapping[str, tuple[int, int]]:
    """The named blocks of a text from an offset on, each with its range; of two with one name the first."""
    found: dict[str, tuple[int, int]] = {}
    if "^" not in text:
        return found
    way, at = _Way(), 0
    for match in _NAME.finditer(text, offset):
        while at < len(spans) and spans[at].start <= match.start():
            way.enter(spans[at])
            at += 1
        way.leave(match.start())
        until = spans[at].start if at < len(spans) else len(text)
        block = way.name_block(text, match.start(), match.end(), until=until)
        if block is not None:
            stop = block.start + len(text[block.start : block.end].rstrip())
            found.setdefault(match.group(1).lower(), (block.start, stop))
    return found


class _Way:
    """The blocks that an offset stands in, from the outermost, each with the block before it at its side."""

    def __init__(self) -> None:
        self._open: list[tuple[Span, Span | None]] = []
        self._latest: dict[int, Span] = {}

    def enter(self, span: Span) -> None:
        del self._open[span.depth :]
        before = self._latest.get(span.depth)
        parent = self._open[-1][0].start if self._open else 0
        self._open.append((span, before if before is not None and before.start >= parent else None))
        self._latest[span.depth] = span

    def leave(self, offset: int) -> None:
        while self._open and self._open[-1][0].end <= offset:
            self._open.pop()

    def name_block(self, text: str, start: int, end: int, *, until: int) -> Span | None:
        """The block that a name standing here belongs to; none where it stands in code, or in the midst of words."""
        if not self._open or self._open[-1][0].what not in _NAMED:
            return None
        span, before = self._open[-1]
        if _WORD.search(text, end, min(span.end, until)):
            return None
        if span.what != "Paragraph":
            return span
        if span.start == start:
            return before
        item = self._open[-2][0] if len(self._open) > 1 else None
        return item if item is not None and item.what == "Item" and before is None else span
