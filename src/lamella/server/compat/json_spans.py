"""Byte positions in JSON documents, so that parts of a request can be replaced and all other bytes stay as they are.

``iter_members`` and ``iter_items`` return the spans of the values of an object and of an array. ``find_text_spans``
converts positions in a decoded string to byte positions. ``replace_spans`` applies replacements. ``decode_json`` decodes what
a client sent, including halves of surrogate pairs, which JavaScript programs send when they cut a text.
"""

import json
import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import msgspec

_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_STRUCTURE = re.compile(_STRING + rb"|[\[\]{}]", re.DOTALL)
_STRING_AT = re.compile(_STRING, re.DOTALL)
_SCALAR = re.compile(rb"[^\s,\]}]+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(rb"[ \t\r\n]*")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)


class Span(NamedTuple):
    """A range of bytes."""

    start: int
    end: int


class Member(NamedTuple):
    """A member of a JSON object: its decoded name, and the span of its value."""

    name: str
    value: Span


class Replacement(NamedTuple):
    """New bytes for a span; an empty span inserts them."""

    span: Span
    data: bytes


def decode_json(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    """Decode a JSON document; raises ``ValueError`` if it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Given bytes, this would guess the encoding, and positions in the document would be wrong.
        text = data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "surrogatepass")
        return json.loads(text, parse_constant=_reject_constant, parse_float=_parse_float)


def encode_json(value: object) -> bytes:
    """Encode a value as JSON; a half of a surrogate pair is written as an escape."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _parse_float(written: str) -> float:
    """Return a number; one that is too large could not be written again."""
    number = float(written)
    if not isfinite(number):
        raise ValueError(f"{written[:20]} is too large")
    return number


def iter_members(data: bytes, start: int) -> Iterator[Member]:
    """Yield the members of the object that begins at ``start``, in valid JSON."""
    at = _skip_blank(data, start + 1)
    while data[at] != 0x7D:
        name = skip_value(data, at)
        value = _skip_blank(data, _skip_blank(data, name) + 1)
        end = skip_value(data, value)
        yield Member(decode_json(data[at:name]), Span(value, end))
        at = _skip_comma(data, end)


def iter_items(data: bytes, start: int) -> Iterator[Span]:
    """Yield the spans of the values of the array that begins at ``start``, in valid JSON."""
    at = _skip_blank(data, start + 1)
    while data[at] != 0x5D:
        end = skip_value(data, at)
        yield Span(at, end)
        at = _skip_comma(data, end)


def find_members(data: bytes, start: int) -> dict[str, Span]:
    """Return the values of an object by name; of a repeated name the last value, as JSON parsers do."""
    return {member.name: member.value for member in iter_members(data, start)}


def find_root(data: bytes) -> int:
    """Return where the outermost value of a document begins."""
    return _skip_blank(data, len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0)


def skip_value(data: bytes, start: int) -> int:
    """Return the position after the value that begins at ``start``, in valid JSON."""
    first = data[start]
    if first == 0x22:
        found = _STRING_AT.match(data, start)
        assert found is not None, "the document was decoded before"
        return found.end()
    if first not in (0x7B, 0x5B):
        found = _SCALAR.match(data, start)
        assert found is not None, "the document was decoded before"
        return found.end()
    depth = 0
    for token in _STRUCTURE.finditer(data, start):
        mark = data[token.start()]
        if mark in (0x7B, 0x5B):
            depth += 1
        elif mark != 0x22:
            depth -= 1
            if not depth:
                return token.end()
    raise ValueError("the value has no end")


def find_text_spans(data: bytes, string: Span, ranges: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the byte spans of ranges of characters of a decoded string. The ranges are sorted and do not overlap.

    ``string`` is the span of the string in the document, with its quotation marks.
    """
    written = data[string.start + 1 : string.end - 1].decode("utf-8", "surrogatepass")
    positions = [place for one in ranges for place in one]
    found = _to_byte_positions(written, positions)
    begin = string.start + 1
    return [Span(begin + found[at], begin + found[at + 1]) for at in range(0, len(found), 2)]


def _to_byte_positions(written: str, positions: Sequence[int]) -> list[int]:
    """Return where decoded characters begin in the UTF-8 bytes of a string as it is written."""
    in_written = _to_written_positions(written, positions) if "\\" in written else list(positions)
    if written.isascii():
        return in_written
    found, at, size = [], 0, 0
    for position in in_written:
        size += len(written[at:position].encode("utf-8", "surrogatepass"))
        at = position
        found.append(size)
    return found


def _to_written_positions(written: str, positions: Sequence[int]) -> list[int]:
    """Return where decoded characters begin in a string as it is written, with its escapes."""
    found: list[int] = []
    # How many more characters are written than decoded, up to the last escape.
    surplus = 0
    escapes = _ESCAPE.finditer(written)
    escape = next(escapes, None)
    for position in positions:
        while escape is not None and escape.start() - surplus < position:
            surplus += len(escape.group()) - 1
            escape = next(escapes, None)
        found.append(position + surplus)
    return found


def replace_spans(data: bytes, replacements: Sequence[Replacement]) -> bytes:
    """Return the document with new bytes in some spans, which do not overlap."""
    parts: list[bytes] = []
    at = 0
    for span, new in sorted(replacements):
        parts += (data[at : span.start], new)
        at = span.end
    return b"".join((*parts, data[at:]))


def _skip_blank(data: bytes, start: int) -> int:
    found = _BLANK.match(data, start)
    return start if found is None else found.end()


def _skip_comma(data: bytes, end: int) -> int:
    at = _skip_blank(data, end)
    return _skip_blank(data, at + 1) if data[at] == 0x2C else at
