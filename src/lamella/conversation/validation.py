"""Check the types and values that a Python program passes before they are used."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from datetime import UTC, datetime
from decimal import Decimal
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, TypedDict

from lamella.attach import Attachment, Tool, ToolResult
from lamella.conversation.turn import validate_max_tokens
from lamella.conversation.turn_runner import DEFAULT_ANSWER_TOKENS, RetryPolicy, TurnLimits
from lamella.core.log.turn import GIVEN_SYSTEM_PART_NAMES
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.errors import ArtifactError, InvalidOperationError, SettingError
from lamella.ports import AllowWrite, ModelProvider, Summarizer

_PAIR_LENGTH = 2
_AcceptedType = type | UnionType
_CheckedValue = Attachment | ToolResult | Tool
_LIST_CONTENTS = {
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
    """Return a string that can be encoded as UTF-8; unless ``may_be_empty``, it must not be blank."""
    if not isinstance(value, str):
        raise InvalidOperationError(f"{name} is {_describe_type(value)}, not a text.", hint=f"Give {name} a str.")
    if not may_be_empty and not value.strip():
        raise InvalidOperationError(
            f"{name} is {'blank' if value else 'empty'}.", hint=f"Give {name} a text, or leave it out."
        )
    if not value.isascii():
        encode_text(value)
    return value


def check_items(values: object, name: str, accepted_type: _AcceptedType) -> tuple[Any, ...]:
    """Return the values as a tuple if all have the type ``accepted_type``.

    A single string, bytes object or mapping raises an error instead of being iterated.
    """
    if type(values) is tuple and not values:
        return ()
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidOperationError(
            f"{name} is {_describe_type(values)}, not a list.",
            hint=f"Write {name}=[…]; it takes {_LIST_CONTENTS[name]}.",
        )
    found = tuple(values)
    for one in found:
        if not isinstance(one, accepted_type):
            raise InvalidOperationError(
                f"{name} holds something that is {_describe_type(one)}.", hint=f"It takes {_LIST_CONTENTS[name]}."
            )
    return found


def check_fields(checked: _CheckedValue) -> None:
    """Raise an error if a field of an attachment or tool does not have its declared type."""
    for field in fields(checked):
        value = getattr(checked, field.name)
        if value is None and field.default is None:
            continue
        if not _has_valid_type(field, value):
            raise ArtifactError(
                f"A {type(checked).__name__}'s {field.name} is {_describe_type(value)}.",
                hint=f"Give it {_EXPECTED_BY_FIELD.get(field.name, 'a str')}.",
            )
        if isinstance(value, str) and not value.isascii() and field.name not in _FIELDS_CHECKED_LATER:
            encode_text(value)


def normalize_system_parts(system: object) -> dict[str, str]:
    """Return the parts of a system prompt by name; a plain string is the part ``base``."""
    if not isinstance(system, str | Mapping):
        raise SettingError(
            f"The system prompt is {_describe_type(system)}.", hint="Give it a str, or its parts by name."
        )
    parts = {"base": system} if isinstance(system, str) else dict(system)
    unknown = sorted(str(name) for name in set(parts) - set(GIVEN_SYSTEM_PART_NAMES))
    if unknown:
        raise SettingError(
            f"The system prompt has no part {', '.join(unknown)}.",
            hint=f"Its parts are: {', '.join(GIVEN_SYSTEM_PART_NAMES)}.",
        )
    return {name: check_text(text, f"the system prompt's {name}") for name, text in parts.items()}


def check_bool(value: object, name: str) -> bool | None:
    """Return a bool, or None if no value was given."""
    if value is None or isinstance(value, bool):
        return value
    raise InvalidOperationError(
        f"{name} is {_describe_type(value)}, neither True nor False.", hint=f"Give {name} a bool, or leave it out."
    )


def check_time(at: object) -> datetime | None:
    """Return an aware datetime that can be converted to UTC, or None."""
    if at is None:
        return None
    if not isinstance(at, datetime):
        raise InvalidOperationError(f"at is {_describe_type(at)}, not a time.", hint="Give it an aware datetime.")
    check_time_zone(at)
    try:
        at.astimezone(UTC)
    except OverflowError as error:
        raise InvalidOperationError(
            f"The time {at.isoformat()} is outside the calendar in UTC.", hint="Give another."
        ) from error
    return at


def check_time_zone(at: datetime | None) -> None:
    """Raise an error if a datetime has no time zone; None is allowed."""
    if at is not None and at.tzinfo is None:
        raise InvalidOperationError(
            f"The time {at.isoformat()} has no time zone.",
            hint="Give an aware datetime, for example with tzinfo=UTC.",
        )


def to_folder_path(vault: str | PathLike[str] | None) -> Path | None:
    """Return the path of a folder, or None if none was given."""
    if vault is None:
        return None
    if not isinstance(vault, str | PathLike) or not str(vault):
        raise InvalidOperationError(
            f"vault is {_describe_type(vault)}, not a folder.", hint="Give it a path; `.` is the current folder."
        )
    return Path(vault)


# The contents of these fields are checked when an artifact is made and hashed. Names must be checked before that.
_FIELDS_CHECKED_LATER = ("text", "output")
_EXPECTED_BY_FIELD = {
    "data": "bytes",
    "lines": "two numbers, the first and the last line",
    "arguments": "a dict",
    "parameters": "a dict",
    "run": "a function",
    "fresh": "True or False",
    "turn_only": "True or False",
    "has_side_effects": "True or False",
    "timeout_seconds": "a number of seconds above 0",
    "budget": "a number of tokens",
}


def _has_valid_type(field: Field[Any], value: object) -> bool:
    match field.name:
        case "data":
            return isinstance(value, bytes)
        case "lines":
            return isinstance(value, tuple | list) and [type(line) for line in value] == [int, int]
        case "arguments" | "parameters":
            return isinstance(value, Mapping)
        case "run":
            return callable(value)
        case "fresh" | "has_side_effects" | "turn_only":
            return isinstance(value, bool)
        case "timeout_seconds" | "budget":
            return _is_positive_number(value, is_integer=field.name == "budget")
        case _:
            return isinstance(value, str)


def _is_positive_number(value: object, *, is_integer: bool) -> bool:
    """Return whether a value is a number: an integer if ``is_integer`` (tokens), otherwise above 0 (seconds)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) if is_integer else value > 0


def _describe_type(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, str) and not value:
        return "empty"
    return f"the class {value.__name__}" if isinstance(value, type) else f"of type {type(value).__name__}"


def check_exchanges(turns: object) -> list[tuple[str, str]]:
    """Return pairs of question and answer from another conversation."""
    pairs = check_items(turns, "turns", tuple)
    if any(len(one) != _PAIR_LENGTH for one in pairs):
        raise InvalidOperationError(
            "turns holds something that is no pair.", hint="It takes pairs: a question, its answer."
        )
    return [(check_text(asked, "a question"), check_text(answered, "an answer")) for asked, answered in pairs]


def check_summarizer(summarizer: Summarizer | None) -> Summarizer | None:
    """Return the summarizer if it has a method ``summarize``; None is allowed."""
    if summarizer is not None and not callable(getattr(summarizer, "summarize", None)):
        raise InvalidOperationError(
            f"A {type(summarizer).__name__} cannot summarise.",
            hint="Give an object with a method summarize(messages, *, max_tokens) that returns a text.",
        )
    return summarizer


def check_allow_function(allow: AllowWrite | None) -> AllowWrite | None:
    """Return the function that is asked before a note is written; None is allowed."""
    if allow is not None and not callable(allow):
        raise InvalidOperationError(
            f"allow is {_describe_type(allow)}, and no function.",
            hint="Give a function that takes a NoteChange and returns True or False.",
        )
    return allow


def check_provider(provider: ModelProvider | None) -> ModelProvider | None:
    """Return the provider if it is an object with a method ``stream``; None is allowed."""
    if provider is not None and (isinstance(provider, type) or not callable(getattr(provider, "stream", None))):
        raise InvalidOperationError(
            f"provider is {_describe_type(provider)}, and no object that has stream().",
            hint="Give an object with an async generator stream(request), or name a model with model= instead.",
        )
    return provider


def check_answer_tokens(max_tokens: int | None, *, window: int, default: int = DEFAULT_ANSWER_TOKENS) -> int:
    """Return the maximum tokens of an answer; raises an error if the window is not larger."""
    if max_tokens is None:
        return default
    if validate_max_tokens(max_tokens) >= window:
        raise InvalidOperationError(
            f"An answer of {max_tokens:,} tokens leaves no room for a request in a window of {window:,}.",
            hint=lambda hints: (
                f"Ask for fewer with {hints.option_hint('max_tokens')}, or set window to what the model takes."
            ),
        )
    return max_tokens


def build_retry_policy(timeout: float | None, max_attempts: int | None) -> RetryPolicy:
    """Return the retry policy for a timeout in seconds and a number of attempts."""
    usual = RetryPolicy()
    if max_attempts is not None and (
        isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1
    ):
        raise InvalidOperationError(
            f"Invalid max_attempts: {max_attempts!r}", hint="Give a whole number: 1 sends everything once."
        )
    if timeout is not None and not _is_duration(timeout):
        raise InvalidOperationError(
            f"Invalid timeout: {timeout!r}", hint="Give a number of seconds above 0, such as 30."
        )
    seconds = usual.idle_timeout if timeout is None else float(timeout)
    return RetryPolicy(
        max_attempts=usual.max_attempts if max_attempts is None else max_attempts,
        max_requested_delay=usual.max_requested_delay if timeout is None else seconds,
        idle_timeout=seconds,
    )


def _is_duration(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def check_max_tool_rounds(steps: int) -> int:
    """Return the maximum number of tool rounds of a turn."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidOperationError(f"Invalid steps: {steps!r}", hint="Give a whole number of rounds, at least 1.")
    return steps


def check_limit(value: float | Decimal, name: str) -> Decimal:
    """Return a limit in seconds or dollars; it must be above 0 and finite."""
    known = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not known or not 0 < value < float("inf"):
        raise InvalidOperationError(f"Invalid {name}: {value!r}", hint="Give a number above 0, or leave it out.")
    return Decimal(str(value))


def check_call_timeout(seconds: float) -> float:
    """Return the time limit of one tool call in seconds."""
    if not _is_duration(seconds):
        raise InvalidOperationError(
            f"Invalid seconds: {seconds!r}", hint="Give a number of seconds above 0, such as 30."
        )
    return float(seconds)


class GivenLimits(TypedDict, total=False):
    """The limits of one turn as keyword arguments; ``seconds`` is per tool call. Defaults come from settings."""

    steps: int
    seconds: float
    turn_seconds: float
    turn_tokens: int
    max_cost: float | Decimal


def merge_limits(defaults: TurnLimits, limits: GivenLimits) -> TurnLimits:
    """Return the default limits with the given ones in their place."""
    unknown = sorted(limits.keys() - GivenLimits.__annotations__.keys())
    if unknown:
        known = ", ".join(GivenLimits.__annotations__)
        raise InvalidOperationError(f"There is no keyword {unknown[0]}.", hint=f"What bounds a turn: {known}.")
    if "steps" in limits:
        defaults = replace(defaults, steps=check_max_tool_rounds(limits["steps"]))
    if "seconds" in limits:
        defaults = replace(defaults, call_seconds=check_call_timeout(limits["seconds"]))
    if "turn_seconds" in limits:
        defaults = replace(defaults, turn_seconds=float(check_limit(limits["turn_seconds"], "turn_seconds")))
    if "turn_tokens" in limits:
        defaults = replace(defaults, turn_tokens=validate_max_tokens(limits["turn_tokens"], "turn_tokens"))
    if "max_cost" in limits:
        defaults = replace(defaults, max_cost=check_limit(limits["max_cost"], "max_cost"))
    return defaults
