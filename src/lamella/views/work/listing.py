"""The workflows that there are, as data."""

from collections.abc import Mapping

from lamella.core.log.events.stage import WorkflowSpec


def view_workflows(found: Mapping[str, WorkflowSpec | None]) -> dict[str, object]:
    """Workflows by name with their stages; of one whose file is not as it should be, nothing but its name."""
    return {"lamella": 1, "workflows": [_view_workflow(name, one) for name, one in found.items()]}


def _view_workflow(name: str, workflow: WorkflowSpec | None) -> dict[str, object]:
    if workflow is None:
        return {"name": name, "title": name, "broken": True, "stages": []}
    stages = [
        {
            "id": stage.id,
            "label": workflow.label(stage),
            "phase": stage.phase,
            "required": list(stage.required),
            "search": stage.search,
        }
        for stage in workflow.stages
    ]
    return {"name": name, "title": workflow.title or name, "broken": False, "stages": stages}
