"""Marks that the other program left in its answers: how it came to them, and banners of the tools it ran.

They are no part of what was said, and no model is to be shown them as its own words.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from lamella.core.text.fences import walk_lines

REASONING, BANNER = "reasoning mark", "tool banner"

_MARK = re.compile(
    r"<!--(?:(?P<reasoning>AGENT_REASONING)|TOOL_CALL_START:(?P<begun>[^:\n]*)|TOOL_CALL_END:[^:\n]*):|<think(?:ing)?>"
)
_BANNER_END = re.compile(r"<!--TOOL_CALL_END:([^:\n]*):")
_COMMENT_END = re.compile("-->")
_THOUGHT_END = re.compile(r"</think(?:ing)?>")


def take_out_marks(answer: str) -> tuple[str, Counter[str]]:
    """An answer as it was said, and how many marks of which sort were taken out. Inside a code fence they are text."""
    counted: Counter[str] = Counter()
    if _MARK.search(answer) is None:
        return answer, counted
    ends = _MarkEnds(answer)
    kept: list[str] = []
    at = 0
    for mark in _MARK.finditer(answer):
        end = ends.find(mark) if mark.start() >= at else None
        if end is not None:
            counted[BANNER if mark[0].startswith("<!--TOOL") else REASONING] += 1
            kept.append(answer[at : mark.start()])
            at = end
    return (_join([*kept, answer[at:]]) if counted else answer), counted


class _MarkEnds:
    """Where the marks of an answer end. All places are found once: an answer may have as many marks as it has words."""

    def __init__(self, answer: str) -> None:
        self._length = len(answer)
        self._first = len(answer) - len(answer.lstrip())
        self._comments = [found.end() for found in _COMMENT_END.finditer(answer)]
        self._thoughts = [found.end() for found in _THOUGHT_END.finditer(answer)]
        self._code = _list_code(answer)
        self._banners: dict[str, list[int]] = {}
        for found in _BANNER_END.finditer(answer):
            self._banners.setdefault(found[1], []).append(found.start())

    def find(self, mark: re.Match[str]) -> int | None:
        """Where a mark ends; none for one that is only half there, or code."""
        if self._is_code(mark.start()):
            return None
        if not mark[0].startswith("<!--"):
            # An answer that was stopped while the model still thought has no end of its thoughts.
            return _next(self._thoughts, mark.end()) or (self._length if mark.start() == self._first else None)
        closing = _next(self._banners.get(mark["begun"] or "", ()), mark.end())
        return _next(self._comments, closing or mark.end())

    def _is_code(self, at: int) -> bool:
        return bisect_left(self._code, at + 1) % 2 == 1


def _list_code(text: str) -> list[int]:
    """Where code begins and ends, in turns."""
    borders: list[int] = []
    at, inside = 0, False
    for line, is_code in walk_lines(text):
        if is_code != inside:
            borders.append(at)
            inside = is_code
        at += len(line) + 1
    return borders


def _next(places: Sequence[int], after: int) -> int | None:
    at = bisect_left(places, after)
    return places[at] if at < len(places) else None


def _join(pieces: Iterable[str]) -> str:
    """What is left, without the blank lines that stood around what was taken out."""
    joined: list[str] = []
    for piece in pieces:
        begins_line = not joined or joined[-1].endswith("\n")
        shown = piece.lstrip("\n") if begins_line else piece
        if shown:
            joined.append(shown)
    return "".join(joined).strip()
