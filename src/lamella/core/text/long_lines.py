"""Long lines: what changed in one is shown with a little around it, and marks stand for the rest of the line."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from lamella.core.text.alignment import Span, find_changes

# A line that is longer is shown by what changed in it, with so many characters on either side, and more where those
# stand in it twice.
LONG_LINE = 1_000
AROUND = 100
CUT = "[…]"
CUT_MEANS = f" {CUT} stands for the rest of that line"
# Where not even so much says where it is, what stands before it is counted: the line says the same over and over.
_FAR = 1_600
_COUNTED_MEANS = ", […n characters] for so many of it"
_COUNTED = re.compile(r"\[…[\d,]+ characters\]")
# Words, and in what has none, parts that end with one of a few characters: an insertion moves none that is behind it.
_PARTS = re.compile(r".{0,200}?[\s0@P`p\u3001\u3002\uff01\uff0c\uff1f]|.{1,200}")


def explain_cuts(lines: Sequence[str]) -> str:
    """What the marks in some lines of a diff mean, or nothing where there is none."""
    if any(_COUNTED.search(line) for line in lines):
        return CUT_MEANS + _COUNTED_MEANS
    return CUT_MEANS if any(CUT in line for line in lines) else ""


def clip_line(line: str) -> str:
    """A line that stays, or goes as a whole: its beginning names it."""
    return line if len(line) <= LONG_LINE else line[:AROUND] + CUT


def count_same(old: str, new: str, most: int, *, backwards: bool = False) -> int:
    """How many characters are the same from the beginning, or from the end."""
    # Halves are compared as wholes: many times faster than one character after the other.
    same = 0
    while same < most:
        half = (most - same + 1) // 2
        if backwards:
            alike = old[len(old) - same - half : len(old) - same] == new[len(new) - same - half : len(new) - same]
        else:
            alike = old[same : same + half] == new[same : same + half]
        if alike:
            same += half
        else:
            most = same + half - 1
    return same


def show_changes(old: str, new: str) -> tuple[str, str]:
    """Two lines without what both have but for what is around each change, which says where it is."""
    changes = list(_find_changes(old, new))
    around = AROUND
    while around <= _FAR:
        windows = _open_windows(changes, around, len(old))
        if all(not start or end == len(old) or is_unique(old, start, end) for start, end, _, _ in windows):
            return _show(old, new, windows, counted=False)
        around *= 4
    return _show(old, new, _open_windows(changes, AROUND, len(old)), counted=True)


def _find_changes(old: str, new: str) -> Iterator[Span]:
    """Where two lines differ, in characters of both."""
    head = count_same(old, new, min(len(old), len(new)))
    tail = count_same(old, new, min(len(old), len(new)) - head, backwards=True)
    ends = len(old) - tail, len(new) - tail
    if min(ends) - head <= LONG_LINE:
        yield head, ends[0], head, ends[1]
        return
    before, after = _PARTS.findall(old, head, ends[0]), _PARTS.findall(new, head, ends[1])
    starts = [list(accumulate(map(len, parts), initial=head)) for parts in (before, after)]
    for i, i_end, j, j_end in find_changes(before, after):
        yield _trim(old, new, (starts[0][i], starts[0][i_end], starts[1][j], starts[1][j_end]))


def _trim(old: str, new: str, span: Span) -> Span:
    """A change without what its parts have in common at their ends."""
    i, i_end, j, j_end = span
    gone, come = old[i:i_end], new[j:j_end]
    head = count_same(gone, come, min(len(gone), len(come)))
    tail = count_same(gone, come, min(len(gone), len(come)) - head, backwards=True)
    return i + head, i_end - tail, j + head, j_end - tail


def _open_windows(changes: Sequence[Span], around: int, length: int) -> list[Span]:
    """What is shown of both lines: each change with what is around it, and those together that then meet."""
    windows: list[Span] = []
    for i, i_end, j, j_end in changes:
        before, behind = min(around, i), min(around, length - i_end)
        window = i - before, i_end + behind, j - before, j_end + behind
        if windows and window[0] <= windows[-1][1]:
            windows[-1] = windows[-1][0], window[1], windows[-1][2], window[3]
        else:
            windows.append(window)
    return windows


def is_unique(line: str, start: int, end: int) -> bool:
    """Whether a piece of a line stands in it once, so that it says where it is."""
    piece = line[start:end]
    return line.find(piece) == start and line.find(piece, start + 1) < 0


def _show(old: str, new: str, windows: Sequence[Span], *, counted: bool) -> tuple[str, str]:
    gone, come, at = "", "", 0
    for start, end, start_new, end_new in windows:
        mark = (f"[…{start - at:,} characters]" if counted else CUT) if start > at else ""
        gone, come, at = f"{gone}{mark}{old[start:end]}", f"{come}{mark}{new[start_new:end_new]}", end
    mark = CUT if at < len(old) else ""
    return gone + mark, come + mark
