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
    namespace = vars(sys.modules[module])
    module_by_name = {name: module_name for module_name, names in names_by_module.items() for name in names}

    def fetch(name: str) -> object:
        if name not in module_by_name:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        # Stored in the module, so that Python finds the name there the next time.
        found = namespace[name] = getattr(import_module(module_by_name[name]), name)
        return found

    def list_names() -> list[str]:
        return sorted({*namespace, *namespace["__all__"]})

    return fetch, list_names
