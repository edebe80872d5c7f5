"""Alignment: which lines of two texts are the same, in steps that grow with the lines and with nothing else.

Lines that both have once are what a reader would align, too, and are found in one pass. What is left between them is
small, or hostile: there the shortest way is looked for within a budget, and beyond it nothing is taken for the same.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

# How often what lies between lines that are unique is searched for lines that are unique in it.
_DEPTH = 4
# Steps for each line of what has no unique lines; a few hundred changes among five thousand such lines fit.
_STEPS = 20

# Of both texts where something differs: first line and the one after the last, of the old and of the new.
Span = tuple[int, int, int, int]
_Block = tuple[int, int, int]


def find_changes(before: Sequence[str], after: Sequence[str]) -> Iterator[Span]:
    """Where the lines of two texts differ, in order; all between is the same."""
    numbers: dict[str, int] = {}
    old = [numbers.setdefault(line, len(numbers)) for line in before]
    new = [numbers.setdefault(line, len(numbers)) for line in after]
    at, to = 0, 0
    for first, second, length in (*sorted(_find_same(old, new)), (len(old), len(new), 0)):
        if (at, to) != (first, second):
            yield at, first, to, second
        at, to = first + length, second + length


def _find_same(old: list[int], new: list[int]) -> Iterator[_Block]:
    """Blocks of lines that are the same, in any order; none crosses another."""
    left = [((0, len(old), 0, len(new)), _DEPTH)]
    while left:
        (i, i_end, j, j_end), depth = left.pop()
        first = _count_same(zip(old[i:i_end], new[j:j_end], strict=False))
        if first:
            yield i, j, first
        i, j = i + first, j + first
        last = _count_same(zip(reversed(old[i:i_end]), reversed(new[j:j_end]), strict=False))
        i_end, j_end = i_end - last, j_end - last
        if last:
            yield i_end, j_end, last
        if i == i_end or j == j_end:
            continue
        anchors = _find_unique(old, new, (i, i_end, j, j_end)) if depth else []
        if not anchors:
            yield from ((i + x, j + y, 1) for x, y in _find_shortest(old[i:i_end], new[j:j_end]))
            continue
        for x, y in anchors:
            yield x, y, 1
            left.append(((i, x, j, y), depth - 1))
            i, j = x + 1, y + 1
        left.append(((i, i_end, j, j_end), depth - 1))


def _count_same(pairs: Iterable[tuple[int, int]]) -> int:
    same = 0
    for one, other in pairs:
        if one != other:
            break
        same += 1
    return same


def _find_unique(old: list[int], new: list[int], span: Span) -> list[tuple[int, int]]:
    """Lines that both have once, as many as stand in the same order in both."""
    i, i_end, j, j_end = span
    seen, seen_too = Counter(old[i:i_end]), Counter(new[j:j_end])
    places = {new[y]: y for y in range(j, j_end) if seen_too[new[y]] == 1}
    pairs = [(x, places[old[x]]) for x in range(i, i_end) if seen[old[x]] == 1 and old[x] in places]
    # The longest rising row, with a pile for each length, as in the card game that the method is named after.
    tops: list[int] = []
    ends: list[int] = []
    below: list[int] = []
    for number, (_, y) in enumerate(pairs):
        pile = bisect_left(tops, y)
        tops[pile : pile + 1] = [y]
        ends[pile : pile + 1] = [number]
        below.append(ends[pile - 1] if pile else -1)
    row: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        row.append(pairs[number])
        number = below[number]
    return row[::-1]


def _find_shortest(old: list[int], new: list[int]) -> list[tuple[int, int]]:
    """Lines that stay on the shortest way from old to new, by Myers' greedy search; none where it is too far."""
    budget = _STEPS * (len(old) + len(new))
    reached, trace = {1: 0}, []
    for edits in range(len(old) + len(new) + 1):
        trace.append(reached.copy())
        for lane in range(-edits, edits + 1, 2):
            down = lane == -edits or (lane != edits and reached[lane - 1] < reached[lane + 1])
            x = reached[lane + 1] if down else reached[lane - 1] + 1
            start = x
            while x < len(old) and x - lane < len(new) and old[x] == new[x - lane]:
                x += 1
            reached[lane] = x
            budget -= 2 + x - start
            if x >= len(old) and x - lane >= len(new):
                return _trace_back(trace, lane=lane, end=x)
        if budget < 0:
            return []
    return []


def _trace_back(trace: list[dict[int, int]], *, lane: int, end: int) -> list[tuple[int, int]]:
    same: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reached = trace[edits]
        down = lane == -edits or (lane != edits and reached[lane - 1] < reached[lane + 1])
        x = reached[lane + 1] if down else reached[lane - 1] + 1
        same += [(at, at - lane) for at in range(end - 1, x - 1, -1)]
        lane, end = (lane + 1, x) if down else (lane - 1, x - 1)
    return same
