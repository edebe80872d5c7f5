"""Public API for code: selecting files for a question, and code tasks; see docs/how-to/code-questions.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.attach import Instruction
    from lamella.codebase.attachments import selection_to_attachments
    from lamella.ports import CodeFile, CodeForm, CodeSelection
    from lamella.runners.code_questions import (
        CodeAnswer,
        CodeTask,
        CodeTaskTurn,
        InstructionsInPrompt,
        build_task_turn,
        get_task_state,
    )
    from lamella.schemas.code import FilterResponseJson, SolutionJson
    from lamella.wiring.code import ask_about_code, select_code, select_files, select_files_for_request, solve_request

__all__ = [
    "CodeAnswer",
    "CodeFile",
    "CodeForm",
    "CodeSelection",
    "CodeTask",
    "CodeTaskTurn",
    "FilterResponseJson",
    "Instruction",
    "InstructionsInPrompt",
    "SolutionJson",
    "ask_about_code",
    "build_task_turn",
    "get_task_state",
    "select_code",
    "select_files",
    "select_files_for_request",
    "selection_to_attachments",
    "solve_request",
]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.codebase.attachments": ("selection_to_attachments",),
        "lamella.attach": ("Instruction",),
        "lamella.ports": ("CodeFile", "CodeForm", "CodeSelection"),
        "lamella.runners.code_questions": (
            "CodeTaskTurn",
            "build_task_turn",
            "CodeTask",
            "CodeAnswer",
            "InstructionsInPrompt",
            "get_task_state",
        ),
        "lamella.schemas.code": ("FilterResponseJson", "SolutionJson"),
        "lamella.wiring.code": (
            "select_code",
            "select_files",
            "select_files_for_request",
            "ask_about_code",
            "solve_request",
        ),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
