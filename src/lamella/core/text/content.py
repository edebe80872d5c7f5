"""Text on its way in: normalised once, hashed once, and made safe to stand on a line of a block."""

import json
import re
from hashlib import sha256

from lamella.errors import ArtifactError, TextError

SHORT_HASH = 12

_AMBIGUOUS_AMPERSAND = re.compile(r"&(?=(?:amp|lt|gt|#\d+);)")
_PLAIN_LINE = re.compile(r"[^&<>\x00-\x1f\x7f\x85\u2028\u2029]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


def normalise(text: str) -> str:
    """Turn CRLF into LF and drop a leading byte order mark; nothing else changes."""
    if text.startswith("\ufeff"):
        text = text[1:]
    return text.replace("\r\n", "\n") if "\r\n" in text else text


def hash_text(text: str) -> str:
    """The content hash of a text, as ``sha256:`` and 64 hex digits."""
    try:
        # Thousands of these are made when a conversation is opened: no other function is called for them.
        return "sha256:" + sha256(text.encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise _no_utf8(text, error) from error


def hash_bytes(data: bytes) -> str:
    """The content hash of bytes, in the same form."""
    return "sha256:" + sha256(data).hexdigest()


def short_hash(text: str) -> str:
    """Enough of a content hash to tell ids apart."""
    return sha256(encode_text(text)).hexdigest()[:SHORT_HASH]


def encode_text(text: str) -> bytes:
    """The text as UTF-8, or an error that says which character has no such form."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _no_utf8(text, error) from error


def _no_utf8(text: str, error: UnicodeEncodeError) -> TextError:
    return TextError(
        f"Character {error.start + 1:,} of a text is U+{ord(text[error.start]):04X}, half of a pair.",
        hint="Lone surrogates cannot be sent to any model. Remove it, or write the whole character.",
    )


def canonical_json(value: object) -> str:
    """JSON with sorted keys and fixed separators: equal values give equal bytes."""
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ArtifactError(
            f"A value cannot be written as JSON: {error}.",
            hint="Tool arguments and schemas are made of texts, finite numbers, lists and objects.",
        ) from error


def escape_line(text: str) -> str:
    """A title, path or id on one line: angle brackets and line breaks escaped, everything else as it is.

    An ampersand is escaped only where it would read as one of these escapes, so two ids never look the same.
    """
    if _PLAIN_LINE.fullmatch(text):
        return text
    text = _AMBIGUOUS_AMPERSAND.sub("&amp;", text)
    text = text.replace("<", "&lt;").replace(">", "&gt;")
    return _CONTROL.sub(lambda match: f"&#{ord(match.group())};", text)
