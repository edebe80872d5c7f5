"""Diffs of texts: how a newer text differs from the copy that the model already has.

``build_short_diff`` returns a unified diff, or None if the diff is not much shorter than the new text. ``diff_lines`` aligns
the lines in time that is linear in their number: lines that occur once in both texts are matched in one pass (patience
diff), and Myers' algorithm searches the parts between them within a budget. If the budget runs out, nothing in that
part counts as equal. ``diff_excerpt`` shortens long lines to their changes, with enough context to locate them.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

# How many times the parts between unique lines are searched again for lines that are unique within them.
_MAX_RECURSION_DEPTH = 4
# Steps per line for parts without unique lines. A few hundred changes among five thousand such lines fit.
_EDIT_BUDGET_PER_LINE = 20

# A difference: first line and line after the last, in the old text and in the new one.
ChangeSpan = tuple[int, int, int, int]
_MatchingBlock = tuple[int, int, int]


def diff_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[ChangeSpan]:
    """Yield the spans in which the lines of two texts differ, in order; all lines between them are equal."""
    numbers: dict[str, int] = {}
    old = [numbers.setdefault(line, len(numbers)) for line in before]
    new = [numbers.setdefault(line, len(numbers)) for line in after]
    at, to = 0, 0
    for first, second, length in (*sorted(_matching_blocks(old, new)), (len(old), len(new), 0)):
        if (at, to) != (first, second):
            yield at, first, to, second
        at, to = first + length, second + length


def _matching_blocks(old: list[int], new: list[int]) -> Iterator[_MatchingBlock]:
    """Yield blocks of equal lines, in any order; no two blocks cross."""
    left = [((0, len(old), 0, len(new)), _MAX_RECURSION_DEPTH)]
    while left:
        (i, i_end, j, j_end), depth = left.pop()
        first = _count_leading_equal_pairs(zip(old[i:i_end], new[j:j_end], strict=False))
        if first:
            yield i, j, first
        i, j = i + first, j + first
        last = _count_leading_equal_pairs(zip(reversed(old[i:i_end]), reversed(new[j:j_end]), strict=False))
        i_end, j_end = i_end - last, j_end - last
        if last:
            yield i_end, j_end, last
        if i == i_end or j == j_end:
            continue
        anchors = _unique_common_lines(old, new, (i, i_end, j, j_end)) if depth else []
        if not anchors:
            yield from ((i + x, j + y, 1) for x, y in _myers_diff(old[i:i_end], new[j:j_end]))
            continue
        for x, y in anchors:
            yield x, y, 1
            left.append(((i, x, j, y), depth - 1))
            i, j = x + 1, y + 1
        left.append(((i, i_end, j, j_end), depth - 1))


def _count_leading_equal_pairs(pairs: Iterable[tuple[int, int]]) -> int:
    same = 0
    for one, other in pairs:
        if one != other:
            break
        same += 1
    return same


def _unique_common_lines(old: list[int], new: list[int], span: ChangeSpan) -> list[tuple[int, int]]:
    """Return the pairs of lines that occur once in both texts, as many as are in the same order in both."""
    i, i_end, j, j_end = span
    seen, seen_too = Counter(old[i:i_end]), Counter(new[j:j_end])
    positions = {new[y]: y for y in range(j, j_end) if seen_too[new[y]] == 1}
    pairs = [(x, positions[old[x]]) for x in range(i, i_end) if seen[old[x]] == 1 and old[x] in positions]
    # Longest increasing subsequence by patience sorting: one pile for each length.
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


def _myers_diff(old: list[int], new: list[int]) -> list[tuple[int, int]]:
    """Return the pairs of equal lines on the shortest edit path by Myers' greedy algorithm.

    The result is empty if the search exceeds its budget.
    """
    budget = _EDIT_BUDGET_PER_LINE * (len(old) + len(new))
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
                return _list_equal_pairs_of_path(trace, diagonal=lane, end=x)
        if budget < 0:
            return []
    return []


def _list_equal_pairs_of_path(trace: list[dict[int, int]], *, diagonal: int, end: int) -> list[tuple[int, int]]:
    same: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        reached = trace[edits]
        down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
        x = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
        same += [(at, at - diagonal) for at in range(end - 1, x - 1, -1)]
        diagonal, end = (diagonal + 1, x) if down else (diagonal - 1, x - 1)
    return same


# Excerpts of long lines: each change with some context, and markers for the rest of the line.

# Longer lines are shown as excerpts, with this many characters on either side of a change. The context grows if it
# occurs twice in the line.
LONG_LINE_CHARS = 1_000
CONTEXT_CHARS = 100
CUT_MARKER = "[…]"
CUT_MARKER_EXPLANATION = f" {CUT_MARKER} stands for the rest of that line"
# If even this much context does not identify the position, the markers count the characters before the change instead.
# This happens if a line repeats the same text over and over.
_MAX_CONTEXT_CHARS = 1_600
_COUNTED_MARKER_EXPLANATION = ", […n characters] for so many of it"
_COUNTED_CUT_MARKER = re.compile(r"\[…[\d,]+ characters\]")
# Words. Text without spaces is split after one of a few characters, so that an insertion does not shift the parts
# behind it.
_WORD_PARTS = re.compile(r".{0,200}?[\s0@P`p\u3001\u3002\uff01\uff0c\uff1f]|.{1,200}")


def describe_cut_markers(lines: Sequence[str]) -> str:
    """Return an explanation of the cut markers in some lines of a diff, or an empty string if there are none."""
    if any(_COUNTED_CUT_MARKER.search(line) for line in lines):
        return CUT_MARKER_EXPLANATION + _COUNTED_MARKER_EXPLANATION
    return CUT_MARKER_EXPLANATION if any(CUT_MARKER in line for line in lines) else ""


def shorten_line(line: str) -> str:
    """Shorten a long line that is unchanged or removed as a whole; its beginning identifies it."""
    return line if len(line) <= LONG_LINE_CHARS else line[:CONTEXT_CHARS] + CUT_MARKER


def count_common_chars(old: str, new: str, maximum: int, *, backwards: bool = False) -> int:
    """Return how many characters are equal from the beginning, or from the end, up to ``maximum``."""
    # Comparing slices by bisection is many times faster than comparing character by character.
    same = 0
    while same < maximum:
        half = (maximum - same + 1) // 2
        if backwards:
            alike = old[len(old) - same - half : len(old) - same] == new[len(new) - same - half : len(new) - same]
        else:
            alike = old[same : same + half] == new[same : same + half]
        if alike:
            same += half
        else:
            maximum = same + half - 1
    return same


def diff_excerpt(old: str, new: str) -> tuple[str, str]:
    """Return excerpts of two lines: the changes, and enough context to locate them."""
    changes = list(_diff_characters(old, new))
    around = CONTEXT_CHARS
    while around <= _MAX_CONTEXT_CHARS:
        windows = _context_windows(changes, around, len(old))
        if all(not start or end == len(old) or span_occurs_once(old, start, end) for start, end, _, _ in windows):
            return _render_windows(old, new, windows, with_counts=False)
        around *= 4
    return _render_windows(old, new, _context_windows(changes, CONTEXT_CHARS, len(old)), with_counts=True)


def _diff_characters(old: str, new: str) -> Iterator[ChangeSpan]:
    """Yield the spans in which two lines differ, in characters of both."""
    head = count_common_chars(old, new, min(len(old), len(new)))
    tail = count_common_chars(old, new, min(len(old), len(new)) - head, backwards=True)
    ends = len(old) - tail, len(new) - tail
    if min(ends) - head <= LONG_LINE_CHARS:
        yield head, ends[0], head, ends[1]
        return
    before, after = _WORD_PARTS.findall(old, head, ends[0]), _WORD_PARTS.findall(new, head, ends[1])
    starts = [list(accumulate(map(len, parts), initial=head)) for parts in (before, after)]
    for i, i_end, j, j_end in diff_lines(before, after):
        yield _trim_common_ends(old, new, (starts[0][i], starts[0][i_end], starts[1][j], starts[1][j_end]))


def _trim_common_ends(old: str, new: str, span: ChangeSpan) -> ChangeSpan:
    """Return a change without the common beginning and end of its two sides."""
    i, i_end, j, j_end = span
    removed, added = old[i:i_end], new[j:j_end]
    head = count_common_chars(removed, added, min(len(removed), len(added)))
    tail = count_common_chars(removed, added, min(len(removed), len(added)) - head, backwards=True)
    return i + head, i_end - tail, j + head, j_end - tail


def _context_windows(changes: Sequence[ChangeSpan], context_chars: int, length: int) -> list[ChangeSpan]:
    """Return the spans to show: each change with its context, overlapping ones merged."""
    windows: list[ChangeSpan] = []
    for i, i_end, j, j_end in changes:
        before, behind = min(context_chars, i), min(context_chars, length - i_end)
        window = i - before, i_end + behind, j - before, j_end + behind
        if windows and window[0] <= windows[-1][1]:
            windows[-1] = windows[-1][0], window[1], windows[-1][2], window[3]
        else:
            windows.append(window)
    return windows


def span_occurs_once(line: str, start: int, end: int) -> bool:
    """Return whether a piece of a line occurs only once in it, so that it identifies its position."""
    piece = line[start:end]
    return line.find(piece) == start and line.find(piece, start + 1) < 0


def _render_windows(old: str, new: str, windows: Sequence[ChangeSpan], *, with_counts: bool) -> tuple[str, str]:
    removed, added, at = "", "", 0
    for start, end, start_new, end_new in windows:
        mark = (f"[…{start - at:,} characters]" if with_counts else CUT_MARKER) if start > at else ""
        removed, added, at = f"{removed}{mark}{old[start:end]}", f"{added}{mark}{new[start_new:end_new]}", end
    mark = CUT_MARKER if at < len(old) else ""
    return removed + mark, added + mark


# Unified diffs.

_MIN_SIZE_RATIO = 3
_CONTEXT_LINES = 2


def build_short_diff(old: str, new: str) -> str | None:
    """Return a unified diff from old to new, or None if it is not at most a third of the new text."""
    start, end = _common_ends(old, new)
    first = old.count("\n", 0, start)
    before, after = old[start : len(old) - end].split("\n"), new[start : len(new) - end].split("\n")
    hunks = _group_hunks(list(diff_lines(before, after)))
    diff = "\n".join(line for hunk in hunks for line in _render_hunk(hunk, before, after, first=first))
    return diff if diff and len(diff) * _MIN_SIZE_RATIO <= len(new) else None


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """Return how many characters at the start and the end the comparison can skip.

    Both are whole lines, and the context lines around the changes are not skipped.
    """
    start = count_common_chars(old, new, min(len(old), len(new)))
    end = count_common_chars(old, new, min(len(old), len(new)) - start, backwards=True)
    start = old.rfind("\n", 0, start) + 1
    at = old.find("\n", len(old) - end)
    for _ in range(_CONTEXT_LINES):
        start = old.rfind("\n", 0, max(0, start - 1)) + 1
        at = -1 if at < 0 else old.find("\n", at + 1)
    return start, 0 if at < 0 else len(old) - at


def _group_hunks(changes: Sequence[ChangeSpan]) -> Iterator[list[ChangeSpan]]:
    """Group changes whose context lines overlap into hunks."""
    group: list[ChangeSpan] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _render_hunk(
    hunk: Sequence[ChangeSpan], before: Sequence[str], after: Sequence[str], *, first: int
) -> Iterator[str]:
    at, to = max(0, hunk[0][0] - _CONTEXT_LINES), min(len(before), hunk[-1][1] + _CONTEXT_LINES)
    at_new, to_new = hunk[0][2] - (hunk[0][0] - at), hunk[-1][3] + (to - hunk[-1][1])
    lines: list[str] = []
    for i, i_end, j, j_end in hunk:
        lines += [f" {shorten_line(line)}" for line in before[at:i]]
        removed, added = _shorten_long_lines(before[i:i_end], after[j:j_end])
        lines += [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
        at = i_end
    lines += [f" {shorten_line(line)}" for line in before[at:to]]
    shown = max(0, hunk[0][0] - _CONTEXT_LINES)
    ranges = (
        f"@@ -{_format_hunk_range(first + shown, first + to)} +{_format_hunk_range(first + at_new, first + to_new)} @@"
    )
    yield ranges + describe_cut_markers(lines)
    yield from lines


def _format_hunk_range(start: int, stop: int) -> str:
    """Format a line range as unified diffs do.

    Lines count from 1, a length of one is omitted, and an empty range names the line before it.
    """
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


def _shorten_long_lines(removed: Sequence[str], added: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the removed and added lines, with the unchanged parts of long lines cut out."""
    if not any(len(line) > LONG_LINE_CHARS for line in (*removed, *added)):
        return removed, added
    if not added:
        return [shorten_line(line) for line in removed], added
    if not removed:
        return removed, added
    if len(removed) == len(added) > 1:
        pairs = [_shorten_long_lines([old], [new]) for old, new in zip(removed, added, strict=True)]
        return [line for olds, _ in pairs for line in olds], [line for _, news in pairs for line in news]
    if len(removed) == len(added):
        old, new = diff_excerpt(removed[0], added[0])
        return [old], [new]
    return _cut_common_ends(removed, added)


def _cut_common_ends(removed: Sequence[str], added: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Cut the common beginning of the first lines and the common end of the last lines."""
    head = count_common_chars(removed[0], added[0], min(len(removed[0]), len(added[0])))
    remaining = [len(lines[0]) - head if len(lines) == 1 else len(lines[-1]) for lines in (removed, added)]
    tail = count_common_chars(removed[-1], added[-1], min(remaining), backwards=True)
    # If the shown piece occurs twice in the line it does not identify the position, so show more around the change.
    around = CONTEXT_CHARS
    while True:
        start, end = max(0, head - around), max(0, tail - around)
        if len(removed) > 1 or not (start and end) or span_occurs_once(removed[0], start, len(removed[0]) - end):
            return _cut_lines(removed, start, end), _cut_lines(added, start, end)
        around *= 4


def _cut_lines(lines: Sequence[str], start: int, end: int) -> list[str]:
    cut = list(lines)
    if end:
        cut[-1] = cut[-1][: len(cut[-1]) - end] + CUT_MARKER
    if start:
        cut[0] = CUT_MARKER + cut[0][start:]
    return cut
