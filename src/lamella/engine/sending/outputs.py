"""What tools give, as text that can be kept and sent: bounded in memory and time, whatever it is."""

import json

from lamella.errors import LamellaError

# How many characters of one result are kept. All of them can be recalled; the model is shown less, as settings say.
KEPT = 2_000_000
_TAIL = 4


def write_output(value: object) -> str:
    """What a tool gave, as the model reads it; ``ValueError`` says why it cannot be read as text."""
    if isinstance(value, bytes | bytearray | memoryview):
        raise ValueError(f"the result is binary, {len(value):,} bytes, and no text")
    text = _keep_ends(value) if isinstance(value, str) else _write_json(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("the result has half of a character in it") from error
    return text


def tell_failure(error: BaseException) -> str:
    """How a tool failed, in words for the model."""
    try:
        if isinstance(error, LamellaError):
            return f"{error.message} {error.hint}".encode(errors="replace").decode()
        return _keep_ends(f"{type(error).__name__}: {error}".encode(errors="replace").decode())
    except Exception:  # noqa: BLE001 - an error that cannot be told is named
        return type(error).__name__


def _keep_ends(text: str) -> str:
    """A text that is too long to keep, by its beginning and its end; what stood between is said to be lost."""
    if len(text) <= KEPT:
        return text
    tail = KEPT // _TAIL
    lost = f"[{len(text) - KEPT:,} of {len(text):,} characters are not kept: a result has at most {KEPT:,}.]"
    return f"{text[: KEPT - tail]}\n{lost}\n{text[-tail:]}"


def _write_json(value: object) -> str:
    """A value as JSON, written no further than it is kept."""
    parts: list[str] = []
    size = 0
    for part in json.JSONEncoder(ensure_ascii=False, default=str).iterencode(value):
        parts.append(part)
        size += len(part)
        if size > KEPT:
            written = "".join(parts)[:KEPT]
            return f"{written}\n[The rest is not kept: a result has at most {KEPT:,} characters.]"
    return "".join(parts)
