"""Checks: what a Python program gives, by its types, before anything is done with it."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from datetime import UTC, datetime
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, TypedDict

from lamella.attach import Attachment, Tool, ToolResult
from lamella.core.log.turn import PART_NAMES
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.engine.dialogue.turn import check_length
from lamella.engine.sending.delivery import ANSWER, RetryPolicy
from lamella.engine.sending.limits import TurnLimits
from lamella.errors import ArtifactError, CallError, SettingError
from lamella.ports import AllowWrite, ChatProvider, Summarizer

_PAIR = 2
_Takes = type | UnionType
_Described = Attachment | ToolResult | Tool
_LISTS = {
    "attach": "notes, pages, selections, pictures and the like; tool results go into `results`",
    "results": "ToolResult values; what the model may call goes into `tools`",
    "tools": "Tool values, and functions with types and a docstring; what came back goes into `results`",
    "outputs": "ToolOutput values",
    "turns": "pairs: a question, and its answer",
    "drop": "the ids of artifacts, or the names of pictures",
    "detach": "the ids of artifacts, or the names of pictures",
    "pin": "the ids of artifacts and messages, or names such as turn:3 and reply:3",
    "unpin": "the ids of artifacts and messages, or names such as turn:3 and reply:3",
}


def check_text(value: object, name: str, *, may_be_empty: bool = True) -> str:
    """A text that can be written as UTF-8; one that may not be empty is not blank either."""
    if not isinstance(value, str):
        raise CallError(f"{name} is {_kind(value)}, not a text.", hint=f"Give {name} a str.")
    if not may_be_empty and not value.strip():
        raise CallError(f"{name} is {'blank' if value else 'empty'}.", hint=f"Give {name} a text, or leave it out.")
    if not value.isascii():
        encode_text(value)
    return value


def check_each(values: object, name: str, takes: _Takes) -> tuple[Any, ...]:
    """A list of values that are all of a type; a single one is not taken for a list of its letters or keys."""
    if type(values) is tuple and not values:
        return ()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise CallError(f"{name} is {_kind(values)}, not a list.", hint=f"Write {name}=[…]; it takes {_LISTS[name]}.")
    found = tuple(values)
    for one in found:
        if not isinstance(one, takes):
            raise CallError(f"{name} holds something that is {_kind(one)}.", hint=f"It takes {_LISTS[name]}.")
    return found


def check_fields(one: _Described) -> None:
    """An attachment or tool whose fields are of the types they are written down with."""
    for field in fields(one):
        value = getattr(one, field.name)
        if value is None and field.default is None:
            continue
        if not _fits(field, value):
            raise ArtifactError(
                f"A {type(one).__name__}'s {field.name} is {_kind(value)}.",
                hint=f"Give it {_WANTED.get(field.name, 'a str')}.",
            )
        if isinstance(value, str) and not value.isascii() and field.name not in _CHECKED_LATER:
            encode_text(value)


def check_parts(system: object) -> dict[str, str]:
    """The parts of a system prompt; a text alone is its base."""
    if not isinstance(system, str | Mapping):
        raise SettingError(f"The system prompt is {_kind(system)}.", hint="Give it a str, or its parts by name.")
    parts = {"base": system} if isinstance(system, str) else dict(system)
    unknown = sorted(str(name) for name in set(parts) - set(PART_NAMES))
    if unknown:
        raise SettingError(
            f"The system prompt has no part {', '.join(unknown)}.",
            hint=f"Its parts are: {', '.join(PART_NAMES)}.",
        )
    return {name: check_text(text, f"the system prompt's {name}") for name, text in parts.items()}


def check_switch(value: object, name: str) -> bool | None:
    """A yes or a no, or none where nobody says."""
    if value is None or isinstance(value, bool):
        return value
    raise CallError(f"{name} is {_kind(value)}, neither True nor False.", hint=f"Give {name} a bool, or leave it out.")


def check_time(at: object) -> datetime | None:
    """A time with its zone, within the calendar's ends, or none."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise CallError(f"at is {_kind(at)}, not a time.", hint="Give it an aware datetime.")
    check_zone(at)
    try:
        at.astimezone(UTC)
    except OverflowError as error:
        raise CallError(f"The time {at.isoformat()} is outside the calendar in UTC.", hint="Give another.") from error
    return at


def check_zone(at: datetime | None) -> None:
    """A time that says where it is that time, or none."""
    if at is not None and at.tzinfo is None:
        raise CallError(
            f"The time {at.isoformat()} has no time zone.",
            hint="Give an aware datetime, for example with tzinfo=UTC.",
        )


def check_folder(vault: str | PathLike[str] | None) -> Path | None:
    """Where a vault is, if there is one."""
    if vault is None:
        return None
    if not isinstance(vault, str | PathLike) or not str(vault):
        raise CallError(f"vault is {_kind(vault)}, not a folder.", hint="Give it a path; `.` is the current folder.")
    return Path(vault)


# Content is hashed when it becomes an artifact, which checks it; names must not get that far.
_CHECKED_LATER = ("text", "output")
_WANTED = {
    "data": "bytes",
    "lines": "two numbers, the first and the last line",
    "arguments": "a dict",
    "parameters": "a dict",
    "run": "a function",
    "fresh": "True or False",
    "changes": "True or False",
    "seconds": "a number of seconds above 0",
    "budget": "a number of tokens",
}


def _fits(field: Field[Any], value: object) -> bool:
    match field.name:
        case "data":
            return isinstance(value, bytes)
        case "lines":
            return isinstance(value, tuple | list) and [type(line) for line in value] == [int, int]
        case "arguments" | "parameters":
            return isinstance(value, Mapping)
        case "run":
            return callable(value)
        case "fresh" | "changes":
            return isinstance(value, bool)
        case "seconds" | "budget":
            return _is_amount(value, whole=field.name == "budget")
        case _:
            return isinstance(value, str)


def _is_amount(value: object, *, whole: bool) -> bool:
    """Whether something is a number: of tokens, which is whole, or of seconds, above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) if whole else value > 0


def _kind(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, str) and not value:
        return "empty"
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"


def check_pairs(turns: object) -> list[tuple[str, str]]:
    """Questions with their answers, as they are given to a conversation that was had elsewhere."""
    said = check_each(turns, "turns", tuple)
    if any(len(one) != _PAIR for one in said):
        raise CallError("turns holds something that is no pair.", hint="It takes pairs: a question, its answer.")
    return [(check_text(asked, "a question"), check_text(answered, "an answer")) for asked, answered in said]


def check_summarizer(summarizer: Summarizer | None) -> Summarizer | None:
    """Something that can be asked for summaries, or none."""
    if summarizer is not None and not callable(getattr(summarizer, "summarize", None)):
        raise CallError(
            f"A {type(summarizer).__name__} cannot summarise.",
            hint="Give an object with a method summarize(messages, *, max_tokens) that returns a text.",
        )
    return summarizer


def check_allow(allow: AllowWrite | None) -> AllowWrite | None:
    """Something that can be asked whether a note may be written, or none."""
    if allow is not None and not callable(allow):
        raise CallError(
            f"allow is {_kind(allow)}, and no function.",
            hint="Give a function that takes a NoteChange and returns True or False.",
        )
    return allow


def check_provider(provider: ChatProvider | None) -> ChatProvider | None:
    """Something that answers, or none."""
    if provider is not None and (isinstance(provider, type) or not callable(getattr(provider, "stream", None))):
        raise CallError(
            f"provider is {_kind(provider)}, and no object that has stream().",
            hint="Give an object with an async generator stream(request), or name a model with model= instead.",
        )
    return provider


def check_answer(max_tokens: int | None, *, window: int, usual: int = ANSWER) -> int:
    """How many tokens an answer may have; more than the window takes could never be had."""
    if max_tokens is None:
        return usual
    if check_length(max_tokens) >= window:
        raise CallError(
            f"An answer of {max_tokens:,} tokens leaves no room for a request in a window of {window:,}.",
            hint=lambda door: f"Ask for fewer with {door.option('max_tokens')}, or set window to what the model takes.",
        )
    return max_tokens


def check_patience(patience: float | None, tries: int | None) -> RetryPolicy:
    """How long silence is borne and waits are taken, and how often something is sent."""
    usual = RetryPolicy()
    if tries is not None and (isinstance(tries, bool) or not isinstance(tries, int) or tries < 1):
        raise CallError(f"tries is {tries!r}.", hint="Give a whole number: 1 sends everything once.")
    if patience is not None and not _is_duration(patience):
        raise CallError(f"patience is {patience!r}.", hint="Give a number of seconds above 0, such as 30.")
    seconds = usual.silence if patience is None else float(patience)
    return RetryPolicy(
        tries=usual.tries if tries is None else tries,
        at_most=usual.at_most if patience is None else seconds,
        silence=seconds,
    )


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def check_steps(steps: int) -> int:
    """How many rounds of tools a turn may take."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise CallError(f"steps is {steps!r}.", hint="Give a whole number of rounds, at least 1.")
    return steps


def check_limit(value: float | Decimal, name: str) -> Decimal:
    """How many seconds or dollars a turn may take."""
    known = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not known or not 0 < value < float("inf"):
        raise CallError(f"{name} is {value!r}.", hint="Give a number above 0, or leave it out.")
    return Decimal(str(value))


def check_seconds(seconds: float) -> float:
    """How long one call of a tool may take."""
    if not _is_duration(seconds):
        raise CallError(f"seconds is {seconds!r}.", hint="Give a number of seconds above 0, such as 30.")
    return float(seconds)


class GivenLimits(TypedDict, total=False):
    """Limits of one turn by their names; ``seconds`` are those of a call. What is not given is as settings say."""

    steps: int
    seconds: float
    turn_seconds: float
    turn_tokens: int
    max_cost: float | Decimal


def limit_turn(usual: TurnLimits, given: GivenLimits) -> TurnLimits:
    """How far a turn may go: as usual, but for what is given."""
    unknown = sorted(given.keys() - GivenLimits.__annotations__.keys())
    if unknown:
        known = ", ".join(GivenLimits.__annotations__)
        raise CallError(f"There is no keyword {unknown[0]}.", hint=f"What bounds a turn: {known}.")
    if "steps" in given:
        usual = replace(usual, steps=check_steps(given["steps"]))
    if "seconds" in given:
        usual = replace(usual, call_seconds=check_seconds(given["seconds"]))
    if "turn_seconds" in given:
        usual = replace(usual, turn_seconds=float(check_limit(given["turn_seconds"], "turn_seconds")))
    if "turn_tokens" in given:
        usual = replace(usual, turn_tokens=check_length(given["turn_tokens"], "turn_tokens"))
    if "max_cost" in given:
        usual = replace(usual, max_cost=check_limit(given["max_cost"], "max_cost"))
    return usual
