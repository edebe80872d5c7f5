"""Workflows: where staged work stands, and the files that say in which stages it is done; see docs/workflows.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from lamella.errors import WorkflowError

if TYPE_CHECKING:
    from lamella.core.log.events.stage import StageSpec, WorkflowSpec
    from lamella.holdings import DigestLine, StageProgress, WorkflowProgress
    from lamella.wiring.workflows import find_workflow, list_workflows

__all__ = [
    "DigestLine",
    "StageProgress",
    "StageSpec",
    "WorkflowError",
    "WorkflowProgress",
    "WorkflowSpec",
    "find_workflow",
    "list_workflows",
]

if not TYPE_CHECKING:
    _HOMES = {
        "DigestLine": "lamella.holdings",
        "StageProgress": "lamella.holdings",
        "StageSpec": "lamella.core.log.events.stage",
        "WorkflowProgress": "lamella.holdings",
        "WorkflowSpec": "lamella.core.log.events.stage",
        "find_workflow": "lamella.wiring.workflows",
        "list_workflows": "lamella.wiring.workflows",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
