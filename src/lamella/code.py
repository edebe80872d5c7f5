"""Code: files of a repository, chosen for a question to fit a budget of tokens; see docs/code.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamella.adapters.sources.code.attaching import attach_code
    from lamella.holdings import CodeFile, CodeForm, CodeSelection
    from lamella.wiring.code import select_code, select_files

__all__ = ["CodeFile", "CodeForm", "CodeSelection", "attach_code", "select_code", "select_files"]

if not TYPE_CHECKING:
    _HOMES = {
        "CodeFile": "lamella.holdings",
        "CodeForm": "lamella.holdings",
        "CodeSelection": "lamella.holdings",
        "attach_code": "lamella.adapters.sources.code.attaching",
        "select_code": "lamella.wiring.code",
        "select_files": "lamella.wiring.code",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
