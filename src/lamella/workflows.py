"""Public API for workflows: the progress of work in stages, and the workflow files; see docs/how-to/workflows.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.errors import WorkflowError
from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.core.log.events.compaction import StageSpec, WorkflowSpec
    from lamella.ports import StageDecision, StageProgress, WorkflowProgress
    from lamella.wiring.workflows import get_workflow, list_workflows

__all__ = [
    "StageDecision",
    "StageProgress",
    "StageSpec",
    "WorkflowError",
    "WorkflowProgress",
    "WorkflowSpec",
    "get_workflow",
    "list_workflows",
]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.core.log.events.compaction": ("StageSpec", "WorkflowSpec"),
        "lamella.ports": ("StageDecision", "StageProgress", "WorkflowProgress"),
        "lamella.wiring.workflows": ("get_workflow", "list_workflows"),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
