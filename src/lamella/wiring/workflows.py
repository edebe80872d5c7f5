"""Workflows: the folder that settings name, and those that ship."""

from pathlib import Path
from typing import TYPE_CHECKING

from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from lamella.adapters.workflows.files import WorkflowFolder
    from lamella.core.log.events.stage import WorkflowSpec

_FOLDER = "~/.lamella/workflows"


def open_workflows(services: Services | None = None) -> "WorkflowFolder":
    """Workflows by name: those of the folder that settings name, and those that ship."""
    from lamella.adapters.workflows.files import WorkflowFolder  # only for those who work in stages

    services = services or read_services()
    for error in services.found.find_overreach(("workflow_folder",)):
        raise error
    return WorkflowFolder(Path(services.settings.workflow_folder or _FOLDER).expanduser())


def find_workflow(name: str, *, services: Services | None = None) -> "WorkflowSpec":
    """A workflow by its name, or in the file of a path."""
    return open_workflows(services).find(name)
