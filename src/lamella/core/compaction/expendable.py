"""Expendability: which turns a conversation misses least. The bigger the number, the sooner it goes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from lamella.core.text.fences import walk_lines

# The weights of the documented formula (2, 10 and 3) against an age of twenty messages, which is 1 here.
_USER = 0.1
_OTHER = 0.5
_LONG = 0.15
_LONG_TOKENS = 500
_LONGEST = 0.6

# Equal sums of different weights may differ in their last bits; ties must be ties.
_DIGITS = 9

# What a block of code begins with; most texts have nothing like it, and need no walk by lines.
BEGINS_CODE = re.compile(r"```|~~~|(?:\A|\n)(?: {4}|\t)")
_INDENTED = re.compile(r"(?: {4}|\t)[ \t]*\S")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")


class Candidate(NamedTuple):
    """One turn that may go: what was asked, the reply, and the tool results between them, as one."""

    id: str
    position: int
    asked_tokens: int
    answered_tokens: int
    has_code: bool = False


def rank_expendable(candidates: Sequence[Candidate], *, total_turns: int) -> tuple[str, ...]:
    """The ids, most expendable first; of equals the older first."""
    ranked = sorted(candidates, key=lambda turn: (-turn_expendability(turn, total_turns=total_turns), turn.position))
    return tuple(turn.id for turn in ranked)


def turn_expendability(turn: Candidate, *, total_turns: int) -> float:
    """What its messages have on average, each by its share of the turn's tokens; long is the turn as a whole."""
    tokens = turn.asked_tokens + turn.answered_tokens
    at, code = turn.position, turn.has_code
    asked = message_expendability("user", position=at, count=total_turns, tokens=tokens, code=code)
    answered = asked if code else asked + _OTHER - _USER
    share = turn.asked_tokens / tokens if tokens else 0.5
    return round(share * asked + (1 - share) * answered, _DIGITS)


def message_expendability(role: str, *, position: int, count: int, tokens: int, code: bool) -> float:
    """From role, age, length and code; a system message has none, every other message has some."""
    if role == "system":
        return 0.0
    age = min(max(count - position, 1) / max(count, 1), 1.0)
    # Code is long by nature and the same whoever wrote it: neither speaks against it.
    written = 0.0 if code else _USER if role == "user" else _OTHER
    length = 0.0 if code else min(tokens // _LONG_TOKENS * _LONG, _LONGEST)
    return round(age + written + length, _DIGITS)


def has_code(text: str) -> bool:
    """Whether a markdown text holds a fenced or an indented block of code; words that look like code do not count."""
    if not BEGINS_CODE.search(text):
        return False
    may_begin, in_list = True, False
    for line, fenced in walk_lines(text):
        if fenced:
            return True
        if _INDENTED.match(line):
            if may_begin and not in_list:
                return True
        elif line.strip():
            in_list = bool(_LIST_ITEM.match(line))
        may_begin = not line.strip()
    return False
