"""Public API for workflows: the progress of work in stages, and the workflow files; see docs/how-to/workflows.md.

Names are imported on first use, so importing this module costs nothing.
"""

from typing import TYPE_CHECKING

from lamella.errors import WorkflowError
from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.core.log.events.compaction import StageSpec, WorkflowSpec
    from lamella.core.workflow.document import DocumentProblem, DocumentSection, WorkflowDocument
    from lamella.ports import StageDecision, StageProgress, StageWrite, WorkflowProgress
    from lamella.wiring.documents import list_citation_styles, read_references, write_document
    from lamella.wiring.workflows import get_workflow, list_workflows

__all__ = [
    "DocumentProblem",
    "DocumentSection",
    "StageDecision",
    "StageProgress",
    "StageSpec",
    "StageWrite",
    "WorkflowDocument",
    "WorkflowError",
    "WorkflowProgress",
    "WorkflowSpec",
    "get_workflow",
    "list_citation_styles",
    "list_workflows",
    "read_references",
    "write_document",
]

if not TYPE_CHECKING:
    _HOMES = {
        "lamella.core.log.events.compaction": ("StageSpec", "WorkflowSpec"),
        "lamella.core.workflow.document": ("DocumentProblem", "DocumentSection", "WorkflowDocument"),
        "lamella.ports": ("StageDecision", "StageProgress", "StageWrite", "WorkflowProgress"),
        "lamella.wiring.documents": ("list_citation_styles", "read_references", "write_document"),
        "lamella.wiring.workflows": ("get_workflow", "list_workflows"),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
