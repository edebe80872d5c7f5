"""Blocks of queries in a note: each stays as it is, and what it answers stands under it, or why it does not."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from lamella.adapters.sources.dataview.answers import QueryAnswer

RESULT = "dataview-result"
MOST_BLOCKS = 50
_ANSWERED = ("dataview", "dataviewjs")
# A block may stand in a quotation, as callouts do; its marks go before each of its lines.
_OPENS = re.compile(r"(?P<lead>(?: {0,3}>){0,10} {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<words>[^`\n]*)$")
# What a note has somewhere that may hold a query: few do, and only those are walked through.
ASKS = re.compile(r"dataview|`\$?=", re.IGNORECASE)
_INLINE = re.compile(r"(?<!`)`\$?=[^`\n]+`(?!`)")

# What a query answers that stands in the note.
AnswerQuery = Callable[[str], QueryAnswer]


class _Fence(NamedTuple):
    """A code block that was opened: what goes before its lines, its marks, its language, and its lines so far."""

    lead: str
    marks: str
    language: str
    lines: list[str]

    def is_closed_by(self, line: str) -> bool:
        end = _strip_lead(line, self.lead).strip()
        return len(end) >= len(self.marks) and set(end) == {self.marks[0]}


def expand_queries(text: str, answer: AnswerQuery) -> str:
    """A note's text with the answer under each of its queries; one that has none is the very same text."""
    return "\n".join(_Expansions(answer).walk(text))


class _Expansions:
    """One walk through a note: how many queries were answered, and how many stand within lines."""

    def __init__(self, answer: AnswerQuery) -> None:
        self._answer = answer
        self._answered = 0
        self._inline = 0

    def walk(self, text: str) -> Iterator[str]:
        fence: _Fence | None = None
        for line in text.split("\n"):
            yield line
            if fence is None:
                fence = _open(line)
                self._inline += 0 if fence else len(_INLINE.findall(line))
            elif fence.is_closed_by(line):
                yield from self._tell(fence)
                fence = None
            else:
                fence.lines.append(_strip_lead(line, fence.lead))
        if fence is not None and fence.language in _ANSWERED:
            yield from _draw("Not run: the block has no end.", fence.lead)
        if self._inline:
            one = self._inline == 1
            yield from _draw(f"{self._inline:,} quer{'y' if one else 'ies'} within lines, left as text.", "")

    def _tell(self, fence: _Fence) -> Iterator[str]:
        if fence.language not in _ANSWERED:
            return
        if fence.language == "dataviewjs":
            yield from _draw("Not run: DataviewJS is a program.", fence.lead)
            return
        self._answered += 1
        if self._answered > MOST_BLOCKS:
            yield from _draw(f"Not run: the note has more than {MOST_BLOCKS} queries.", fence.lead)
            return
        answer = self._answer("\n".join(fence.lines))
        yield from _draw(f"Not run: {answer.refused}" if answer.refused else answer.text, fence.lead)


def _open(line: str) -> _Fence | None:
    found = _OPENS.match(line)
    if found is None:
        return None
    language = found["words"].split(maxsplit=1)
    return _Fence(found["lead"], found["fence"], language[0].lower() if language else "", [])


def _strip_lead(line: str, lead: str) -> str:
    """A line without the marks of the quotation that it stands in."""
    for _ in range(lead.count(">")):
        line = line.lstrip(" ").removeprefix(">")
    return line.removeprefix(" ") if ">" in lead else line


def _draw(told: str, lead: str) -> Iterator[str]:
    """A block that nothing in it can end."""
    longest = max((len(ticks) for ticks in re.findall("`+", told)), default=0)
    marks = "`" * max(3, longest + 1)
    for line in ("", f"{marks}{RESULT}", *told.split("\n"), marks):
        yield f"{lead}{line}".rstrip(" ") if not line else f"{lead}{line}"
