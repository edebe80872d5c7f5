"""JSON bodies in tests: their types by name, and the values that clients read."""

import pkgutil
from importlib import import_module
from typing import Any

from msgspec import Struct, json

import lamella.schemas
from lamella.schemas.body import JsonBody


def as_json(body: Struct) -> Any:  # noqa: ANN401 - any JSON
    """Return a body as its JSON is read."""
    return json.decode(json.encode(body))


def find_body_types() -> dict[str, type[Struct]]:
    """Return every type of ``lamella.schemas`` that describes a JSON object, by name."""
    modules = [import_module(f"lamella.schemas.{one.name}") for one in pkgutil.iter_modules(lamella.schemas.__path__)]
    found = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    return {one.__name__: one for one in found if issubclass(one, Struct) and one.__name__.endswith("Json")}


def check_body(kind: type[Struct], value: object) -> None:
    """Check that a JSON object has the fields of its type, and no others.

    Objects in the format of another page or API, such as transcripts, may have more fields than their type.
    """
    read = json.decode(json.encode(value), type=kind)
    if issubclass(kind, JsonBody):
        assert as_json(read) == value, kind.__name__
