"""Strict JSON: what readers of JSON let pass and a transcript does not, and words for what they stumble over."""

import json
from collections.abc import Iterable
from math import isinf

from lamella.errors import TranscriptError

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def check_json(data: bytes, name: str) -> None:
    """Raise if a name stands twice in an object or a number is none; readers would drop or bend it silently."""
    try:
        json.loads(data, object_pairs_hook=_check_names, parse_constant=_refuse_number, parse_float=_check_float)
    except _NotStrictError as error:
        raise TranscriptError(f"{name} is not JSON: {error}.", hint=error.hint) from error


def explain_broken(data: bytes, name: str, found: str) -> TranscriptError:
    """Why bytes are not JSON, given what the reader found."""
    if not data.strip():
        return _broken(name, "it is empty", "docs/transcript.md shows the smallest transcript.")
    if data.startswith(_WIDE_MARKS) or b"\0" in data[:4]:
        return _broken(name, "it looks like UTF-16 or UTF-32", "Save the file as UTF-8.")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1:,} is 0x{data[error.start]:02x}, which is not UTF-8"
        return _broken(name, byte, "Save the file as UTF-8; half of a surrogate pair has no such form.")
    if "hex escape" in found:
        return _broken(name, found, r"A \u escape there is cut off, or half of a surrogate pair. Write the character.")
    if "recursion" in found:
        return _broken(name, found, "Lists and objects may stand about 200 deep in each other.")
    return _broken(name, found, "Check the file near that place; docs/transcript.md shows the format.")


def _broken(name: str, what: str, hint: str) -> TranscriptError:
    return TranscriptError(f"{name} is not JSON: {what}.", hint=hint)


def find_twice(names: Iterable[str]) -> str | None:
    """The first name that was there before, if there is one."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


class _NotStrictError(Exception):
    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def _check_names(pairs: list[tuple[str, object]]) -> None:
    if (twice := find_twice(name for name, _ in pairs)) is not None:
        raise _NotStrictError(
            f"{json.dumps(twice)} stands twice in one object", "Only one of the two could be used. Remove the other."
        )


def _check_float(text: str) -> float:
    return _refuse_number(text) if isinf(float(text)) else 0.0


def _refuse_number(text: str) -> float:
    raise _NotStrictError(f"{text[:40]} is not a number that JSON has", "Use a finite number, or a text.")
