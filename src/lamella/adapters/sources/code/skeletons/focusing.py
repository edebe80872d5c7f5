"""Focusing: of a skeleton that is longer than others leave room for, what speaks of the question."""

import re

_LEFT_OUT = "…"
_WORDS = re.compile(r"[^\W\d_]{4,}")
_LEAST = 4
# Letters that words of one stem may end in.
_ENDING = 2


def focus_skeleton(skeleton: str, question: str, *, most: int) -> str:
    """A skeleton of about so many characters at most: lines with words of the question, what they stand in, the rest.

    Where lines are left out a mark says so.
    """
    if len(skeleton) <= most:
        return skeleton
    lines = skeleton.split("\n")
    stems = [word[: max(_LEAST, len(word) - _ENDING)] for word in map(str.lower, _WORDS.findall(question))]
    telling = [at for at, line in enumerate(lines) if any(stem in line.lower() for stem in stems)]
    outermost = [at for at, line in enumerate(lines) if line[:1].strip()]
    outer = _find_outer(lines)
    kept: set[int] = set()
    room = most
    for at in (*telling, *outermost, *range(len(lines))):
        added = {one for one in _list_around(at, outer) if one not in kept}
        size = sum(len(lines[one]) + 1 for one in added)
        if size <= room:
            kept |= added
            room -= size
    return "\n".join(_join(lines, kept))


def _find_outer(lines: list[str]) -> list[int]:
    """For each line the last before it that begins further left; itself where there is none."""
    outer: list[int] = []
    above: list[int] = []
    for at, line in enumerate(lines):
        while above and _count_indent(lines[above[-1]]) >= _count_indent(line):
            above.pop()
        outer.append(above[-1] if above else at)
        if line.strip():
            above.append(at)
    return outer


def _list_around(at: int, outer: list[int]) -> list[int]:
    """A line, and all that it stands below."""
    found = [at]
    while outer[found[-1]] != found[-1]:
        found.append(outer[found[-1]])
    return found


def _count_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str], kept: set[int]) -> list[str]:
    shown: list[str] = []
    for at, line in enumerate(lines):
        if at in kept:
            shown.append(line)
        elif not shown or shown[-1] != _LEFT_OUT:
            shown.append(_LEFT_OUT)
    return shown
