"""Fields as people type them: FIELD=TEXT, FIELD:=JSON, FIELD+= for one more of a list, or a JSON object in a file."""

import json
import re
from collections.abc import Iterable, Mapping

from lamella.errors import UsageError
from lamella.wiring import read_work

_FIELD = re.compile(r"(?P<name>[^=:+]+?)\s*(?P<sort>\+:=|:=|\+=|=)(?P<value>.*)", re.DOTALL)
_HINT = "Write FIELD=TEXT, FIELD:=JSON, or FIELD+=TEXT for one more of a list; FIELD:=null takes a field away."


def read_fields(words: Iterable[str], held: Mapping[str, object]) -> dict[str, object]:
    """What words write down, on top of what the stage has: a list grows by what is added to it."""
    fields: dict[str, object] = {}
    for word in words:
        found = _FIELD.fullmatch(word)
        if found is None:
            raise UsageError(f"{word!r} is no field.", hint=_HINT)
        name, sort = found["name"].strip(), found["sort"]
        value = read_json(found["value"], name) if ":" in sort else found["value"]
        fields[name] = [*_list(fields.get(name, held.get(name))), value] if "+" in sort else value
    return fields


def read_json(text: str, name: str) -> object:
    """A value as JSON says it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not JSON: {error}.", hint=_HINT) from error


def read_object(path: str) -> dict[str, object]:
    """Fields of a JSON object in a file, or on standard input."""
    try:
        text = read_work(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"{path} cannot be read: {why}.", hint="Name a file with a JSON object in it, or -."
        ) from error
    fields = read_json(text, path)
    if not isinstance(fields, dict):
        raise UsageError(f"{path} holds no JSON object.", hint='Write {"field": "value"}.')
    return fields


def _list(value: object) -> list[object]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
