"""Changes: how a newer text differs from the copy the model already has."""

from collections.abc import Iterator, Sequence

from lamella.core.text.alignment import Span, find_changes
from lamella.core.text.long_lines import (
    AROUND,
    CUT,
    LONG_LINE,
    clip_line,
    count_same,
    explain_cuts,
    is_unique,
    show_changes,
)

_MUCH_SMALLER = 3
_CONTEXT = 2


def build_diff(old: str, new: str) -> str | None:
    """A unified diff from old to new, or nothing where sending the new text is about as short."""
    start, end = _find_ends(old, new)
    first = old.count("\n", 0, start)
    before, after = old[start : len(old) - end].split("\n"), new[start : len(new) - end].split("\n")
    hunks = _group(list(find_changes(before, after)))
    diff = "\n".join(line for hunk in hunks for line in _render(hunk, before, after, first=first))
    return diff if diff and len(diff) * _MUCH_SMALLER <= len(new) else None


def _find_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters before and after all changes need not be looked at: whole lines, and none of the context."""
    start = count_same(old, new, min(len(old), len(new)))
    end = count_same(old, new, min(len(old), len(new)) - start, backwards=True)
    start = old.rfind("\n", 0, start) + 1
    at = old.find("\n", len(old) - end)
    for _ in range(_CONTEXT):
        start = old.rfind("\n", 0, max(0, start - 1)) + 1
        at = -1 if at < 0 else old.find("\n", at + 1)
    return start, 0 if at < 0 else len(old) - at


def _group(changes: Sequence[Span]) -> Iterator[list[Span]]:
    """Changes that share lines of context are told together."""
    group: list[Span] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _render(hunk: Sequence[Span], before: Sequence[str], after: Sequence[str], *, first: int) -> Iterator[str]:
    at, to = max(0, hunk[0][0] - _CONTEXT), min(len(before), hunk[-1][1] + _CONTEXT)
    at_new, to_new = hunk[0][2] - (hunk[0][0] - at), hunk[-1][3] + (to - hunk[-1][1])
    lines: list[str] = []
    for i, i_end, j, j_end in hunk:
        lines += [f" {clip_line(line)}" for line in before[at:i]]
        gone, come = _shorten(before[i:i_end], after[j:j_end])
        lines += [*(f"-{line}" for line in gone), *(f"+{line}" for line in come)]
        at = i_end
    lines += [f" {clip_line(line)}" for line in before[at:to]]
    shown = max(0, hunk[0][0] - _CONTEXT)
    ranges = f"@@ -{_tell_range(first + shown, first + to)} +{_tell_range(first + at_new, first + to_new)} @@"
    yield ranges + explain_cuts(lines)
    yield from lines


def _tell_range(start: int, stop: int) -> str:
    """Lines as unified diffs count them: from 1, without a length of one, and an empty range after its line."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


def _shorten(gone: Sequence[str], come: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Lines that change, without what long ones keep."""
    if not any(len(line) > LONG_LINE for line in (*gone, *come)):
        return gone, come
    if not come:
        return [clip_line(line) for line in gone], come
    if not gone:
        return gone, come
    if len(gone) == len(come) > 1:
        pairs = [_shorten([old], [new]) for old, new in zip(gone, come, strict=True)]
        return [line for olds, _ in pairs for line in olds], [line for _, news in pairs for line in news]
    if len(gone) == len(come):
        old, new = show_changes(gone[0], come[0])
        return [old], [new]
    return _cut_ends(gone, come)


def _cut_ends(gone: Sequence[str], come: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Lines without the beginning that the first ones share, and the end that the last ones share."""
    head = count_same(gone[0], come[0], min(len(gone[0]), len(come[0])))
    room = [len(lines[0]) - head if len(lines) == 1 else len(lines[-1]) for lines in (gone, come)]
    tail = count_same(gone[-1], come[-1], min(room), backwards=True)
    around = AROUND
    while True:
        start, end = max(0, head - around), max(0, tail - around)
        if len(gone) > 1 or not (start and end) or is_unique(gone[0], start, len(gone[0]) - end):
            return _cut(gone, start, end), _cut(come, start, end)
        around *= 4


def _cut(lines: Sequence[str], start: int, end: int) -> list[str]:
    cut = list(lines)
    if end:
        cut[-1] = cut[-1][: len(cut[-1]) - end] + CUT
    if start:
        cut[0] = CUT + cut[0][start:]
    return cut
