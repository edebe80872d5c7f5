"""Code: files chosen for a question, kinds of questions, and what answers them; see docs/code.md, docs/kinds.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lamella.adapters.sources.code.attaching import attach_code
    from lamella.attach import Instruction
    from lamella.holdings import CodeFile, CodeForm, CodeSelection
    from lamella.runners.kinds.asking import KindTurn, make_turn
    from lamella.runners.kinds.blocks import ChatKind
    from lamella.runners.kinds.solving import Solution
    from lamella.runners.kinds.state import ChatState, find_state
    from lamella.wiring.code import select_code, select_files
    from lamella.wiring.kinds import filter_request, solve, solve_request

__all__ = [
    "ChatKind",
    "ChatState",
    "CodeFile",
    "CodeForm",
    "CodeSelection",
    "Instruction",
    "KindTurn",
    "Solution",
    "attach_code",
    "filter_request",
    "find_state",
    "make_turn",
    "select_code",
    "select_files",
    "solve",
    "solve_request",
]

if not TYPE_CHECKING:
    _HOMES = {
        "ChatKind": "lamella.runners.kinds.blocks",
        "ChatState": "lamella.runners.kinds.state",
        "CodeFile": "lamella.holdings",
        "CodeForm": "lamella.holdings",
        "CodeSelection": "lamella.holdings",
        "Instruction": "lamella.attach",
        "KindTurn": "lamella.runners.kinds.asking",
        "Solution": "lamella.runners.kinds.solving",
        "attach_code": "lamella.adapters.sources.code.attaching",
        "filter_request": "lamella.wiring.kinds",
        "find_state": "lamella.runners.kinds.state",
        "make_turn": "lamella.runners.kinds.asking",
        "select_code": "lamella.wiring.code",
        "select_files": "lamella.wiring.code",
        "solve": "lamella.wiring.kinds",
        "solve_request": "lamella.wiring.kinds",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
