"""Places in a text: bytes become characters, and ranges are asked what they hold."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain, pairwise

from lamella.adapters.sources.markdown.structure import Mark, Span, Structure


class Ranges:
    """Ranges of a text, asked whether one of them holds an offset. They may stand in each other."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]


def place_structure(found: Structure, body: str, offset: int) -> Structure:
    """The same parts where they stand in the whole text: the parser counts bytes, and from where the body begins."""
    if not offset and body.isascii():
        return found
    ends = [*found.verbatim, *(mark[1:3] for mark in found.marks), *(span[1:3] for span in found.spans)]
    at = _count_characters(body, set(chain.from_iterable(ends)), offset)
    return Structure(
        [Mark(what, at[start], at[end], target, level) for what, start, end, target, level in found.marks],
        [Span(what, at[start], at[end], depth) for what, start, end, depth in found.spans],
        [(at[start], at[end]) for start, end in found.verbatim],
    )


def _count_characters(body: str, wanted: set[int], offset: int) -> Mapping[int, int]:
    """How many characters stand before each of these bytes, and the offset besides."""
    if body.isascii():
        return {at: at + offset for at in wanted}
    data, places, counted = body.encode(), {}, offset
    for before, at in pairwise((0, *sorted(wanted))):
        counted += len(data[before:at].decode())
        places[at] = counted
    return places
