"""Public API for code: selecting files for a question, and code tasks; see docs/how-to/code-questions.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.attach import Instruction
    from lamella.codebase.attachments import attach_code
    from lamella.ports import CodeFile, CodeForm, CodeSelection
    from lamella.runners.code_questions import (
        CodeAnswer,
        CodeTask,
        CodeTaskTurn,
        TaskState,
        build_task_turn,
        get_task_state,
    )
    from lamella.schemas.code import SelectionJson, SolutionJson
    from lamella.wiring.code import filter_request, select_code, select_files, solve, solve_request

__all__ = [
    "CodeAnswer",
    "CodeFile",
    "CodeForm",
    "CodeSelection",
    "CodeTask",
    "CodeTaskTurn",
    "Instruction",
    "SelectionJson",
    "SolutionJson",
    "TaskState",
    "attach_code",
    "build_task_turn",
    "filter_request",
    "get_task_state",
    "select_code",
    "select_files",
    "solve",
    "solve_request",
]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.codebase.attachments": ("attach_code",),
        "lamella.attach": ("Instruction",),
        "lamella.ports": ("CodeFile", "CodeForm", "CodeSelection"),
        "lamella.runners.code_questions": (
            "CodeTaskTurn",
            "build_task_turn",
            "CodeTask",
            "CodeAnswer",
            "TaskState",
            "get_task_state",
        ),
        "lamella.schemas.code": ("SelectionJson", "SolutionJson"),
        "lamella.wiring.code": ("select_code", "select_files", "filter_request", "solve", "solve_request"),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
