"""Workflows: where staged work stands, and the files that say in which stages it is done; see docs/workflows.md.

Names are fetched when they are first asked for, so that importing this costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.errors import WorkflowError
from lamella.fetching import fetch_later

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
        "lamella.core.log.events.stage": (
            "StageSpec",
            "WorkflowSpec",
        ),
        "lamella.holdings": (
            "DigestLine",
            "StageProgress",
            "WorkflowProgress",
        ),
        "lamella.wiring.workflows": (
            "find_workflow",
            "list_workflows",
        ),
    }
    __getattr__, __dir__ = fetch_later(__name__, _HOMES)
