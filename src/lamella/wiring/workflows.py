"""Workflows: the folder that settings name, and those that ship."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import CallError
from lamella.wiring.services import Services, read_services

if TYPE_CHECKING:
    from lamella.adapters.workflows.files import WorkflowFolder
    from lamella.core.log.events.stage import WorkflowSpec

_FOLDER = "~/.lamella/workflows"
STDIN = "-"
# More than may be written down at once, however its JSON spells it.
_LARGEST = 10_000_000


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


def list_workflows(*, services: Services | None = None) -> list[str]:
    """The names of all workflows that there are."""
    return open_workflows(services).list_names()


def is_workflow_path(name: str) -> bool:
    """Whether a workflow is named by the path of its file."""
    from lamella.adapters.workflows.files import is_path

    return is_path(name)


def read_work(path: str) -> bytes:
    """What is to be written down: the bytes of a plain file, or of standard input. ``OSError`` says why not."""
    from lamella.adapters.files.reading import read_plain, read_stream

    if path == STDIN:
        return read_stream(sys.stdin.buffer, limit=_LARGEST, name="standard input")
    return read_plain(Path(path).expanduser(), limit=_LARGEST)


def save_work(text: str, path: Path) -> None:
    """Write finished work to a new file; one that is there is left as it is."""
    from lamella.adapters.files.writing import write_new

    try:
        write_new(path.expanduser(), text.encode())
    except FileExistsError as error:
        raise CallError(f"{path} is there already.", hint="Name a new file, or move that one away.") from error
    except OSError as error:
        raise CallError(
            f"{path} cannot be written: {error.strerror}.", hint="Name a file that may be written."
        ) from error
