"""Lazy imports: names that a module exports and that are imported on first use.

Importing such a module costs nothing, and using one of its names does not import the others.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def make_lazy_exports(
    module: str, names_by_module: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a module that exports names of other modules.

    ``names_by_module`` maps each of the other modules to the names that it provides.
    """
    there = vars(sys.modules[module])
    home_of = {name: home for home, names in names_by_module.items() for name in names}

    def fetch(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Stored in the module, so that Python finds the name there the next time.
        found = there[name] = getattr(import_module(home_of[name]), name)
        return found

    def list_names() -> list[str]:
        return sorted({*there, *there["__all__"]})

    return fetch, list_names
