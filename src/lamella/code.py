"""Code: files chosen for a question, kinds of questions, and what answers them; see docs/code.md, docs/kinds.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.fetching import fetch_later

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
        "lamella.adapters.sources.code.attaching": ("attach_code",),
        "lamella.attach": ("Instruction",),
        "lamella.holdings": (
            "CodeFile",
            "CodeForm",
            "CodeSelection",
        ),
        "lamella.runners.kinds.asking": (
            "KindTurn",
            "make_turn",
        ),
        "lamella.runners.kinds.blocks": ("ChatKind",),
        "lamella.runners.kinds.solving": ("Solution",),
        "lamella.runners.kinds.state": (
            "ChatState",
            "find_state",
        ),
        "lamella.wiring.code": (
            "select_code",
            "select_files",
        ),
        "lamella.wiring.kinds": (
            "filter_request",
            "solve",
            "solve_request",
        ),
    }
    __getattr__, __dir__ = fetch_later(__name__, _HOMES)
