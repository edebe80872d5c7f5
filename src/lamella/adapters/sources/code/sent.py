"""What a client sends: files, as texts by path or a list of objects with a path and a text; and whole requests."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lamella.adapters.files.reading import read_plain, read_stream
from lamella.errors import SourceMissingError, SourceUnreadableError

STDIN = "-"
_HINT = 'Write {"src/main.py": "its text"}, or [{"path": "src/main.py", "text": "its text"}].'
_TEXTS = ("text", "content")
# Enough for any repository that fits into one message.
_LARGEST = 200_000_000


def read_sent(file: Path) -> dict[str, str]:
    """The files in a JSON file, or on standard input."""
    return parse_sent(_read(file, hint="Name a JSON file with the files."), _name(file))


def read_body(file: Path) -> object:
    """The request in a JSON file, or on standard input."""
    hint = 'Write a request as JSON, such as {"prompt": "…", "messages": []}.'
    data = _read(file, hint=hint)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadableError(f"{_name(file)} is not JSON: {error}.", hint=hint) from error


def _name(file: Path) -> str:
    return "standard input" if str(file) == STDIN else str(file)


def _read(file: Path, *, hint: str) -> bytes:
    try:
        if str(file) == STDIN:
            return read_stream(sys.stdin.buffer, limit=_LARGEST, name=_name(file))
        return read_plain(file, limit=_LARGEST)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SourceMissingError(f"{_name(file)} cannot be read: {why}.", hint=hint) from error


def parse_sent(data: bytes, name: str) -> dict[str, str]:
    """The files in a JSON text; the last of two of one path is meant."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SourceUnreadableError(f"{name} is not JSON: {error}.", hint=_HINT) from error
    return dict(_list_files(found, name))


def _list_files(found: object, name: str) -> Iterator[tuple[str, str]]:
    rows = found.items() if isinstance(found, Mapping) else map(_read_row, found) if isinstance(found, list) else ()
    if not isinstance(found, Mapping | list):
        raise SourceUnreadableError(f"{name} holds no files.", hint=_HINT)
    for number, row in enumerate(rows, start=1):
        path, text = row
        if not isinstance(path, str) or not isinstance(text, str):
            raise SourceUnreadableError(f"File {number:,} in {name} has no path or no text.", hint=_HINT)
        yield path, text


def _read_row(row: Any) -> tuple[object, object]:  # noqa: ANN401 - whatever JSON can say
    if not isinstance(row, Mapping):
        return None, None
    return row.get("path"), next((row[key] for key in _TEXTS if key in row), None)
