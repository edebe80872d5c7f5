"""Reading what came over the wire: fields that may be missing, or of another type than promised."""

import re
from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from lamella.errors import ReplyBrokenError

Fields = Mapping[str, Any]
_NOTHING: Fields = {}
_LONGEST_SHOWN = 80
_STATUS = re.compile(r"[45][0-9]{2}")


def as_fields(answer: object) -> Fields:
    """An SDK's object, or a plain mapping, as a mapping; anything else has no fields."""
    if isinstance(answer, Mapping):
        return answer
    dump = getattr(answer, "model_dump", None)
    # Warnings are about values of types the SDK did not expect; finding those is this module's business.
    found = dump(mode="json", warnings=False) if callable(dump) else None
    return found if isinstance(found, Mapping) else _NOTHING


def fields_at(source: Fields, *path: str) -> Fields:
    """The mapping at a path; empty where there is none."""
    for name in path:
        inner = source.get(name)
        source = inner if isinstance(inner, Mapping) else _NOTHING
    return source


def items_at(source: Fields, name: str) -> Sequence[Fields]:
    """The mappings in a list."""
    inner = source.get(name)
    return [item for item in inner if isinstance(item, Mapping)] if isinstance(inner, list) else []


def text_at(source: Fields, name: str) -> str:
    """A text; empty where there is none."""
    inner = source.get(name)
    return inner if isinstance(inner, str) else ""


def count_at(source: Fields, name: str) -> int | None:
    """A number of tokens, or none where the field is missing or no whole number. It may be negative: see ``usage``."""
    inner = source.get(name)
    return inner if isinstance(inner, int) and not isinstance(inner, bool) else None


def status_at(source: Fields, name: str) -> int | None:
    """The status of an error, as a number or in digits: servers behind others write it there where they send 200."""
    inner = source.get(name)
    number = int(inner) if isinstance(inner, str) and _STATUS.fullmatch(inner) else inner
    return number if isinstance(number, int) and 400 <= number < 600 else None


def as_json(value: object) -> str:
    """JSON with sorted keys and no spaces, so that equal values are equal bytes."""
    return dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def parts_at(source: Fields, name: str, *, kind: str) -> Sequence[Fields]:
    """The parts that a content is made of; a plain text is one part of this kind. Anything else is no content."""
    inner = source.get(name)
    if isinstance(inner, str):
        return [{"type": kind, "text": inner}]
    if inner is not None and not isinstance(inner, list):
        raise unreadable(name, inner)
    parts = [_as_part(part, name, kind=kind) for part in inner or ()]
    for part in parts:
        if part["type"] == kind and not isinstance(part.get("text"), str):
            raise unreadable(name, part)
    return parts


def _as_part(part: object, name: str, *, kind: str) -> Fields:
    if not isinstance(part, Mapping):
        raise unreadable(name, part)
    return {**part, "type": part.get("type") or kind}


def unreadable(name: str, value: object) -> ReplyBrokenError:
    """The error for a part of an answer that should be a text. ImportOutcome for none, it would be an empty answer."""
    shown = repr(value)
    seen = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
    return ReplyBrokenError(
        f"The {name} of the answer is {seen}, of type {type(value).__name__}, and not a text.",
        hint="Ask again. If it persists, what answers does not speak this API as it should.",
    )
