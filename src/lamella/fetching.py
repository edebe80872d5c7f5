"""Fetching: names that a module offers and that are imported when they are first asked for.

Importing such a module costs nothing: who wants one of its names does not wait for the others.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def fetch_later(
    module: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a module whose names are at home in others."""
    there = vars(sys.modules[module])
    home_of = {name: home for home, names in homes.items() for name in names}

    def fetch(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = there[name] = getattr(import_module(home_of[name]), name)
        return found

    def list_names() -> list[str]:
        return sorted({*there, *there["__all__"]})

    return fetch, list_names
