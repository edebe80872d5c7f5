"""Workflows: those in the configured folder, and those that ship with Lamella."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.wiring.services import ServiceContainer, read_services

if TYPE_CHECKING:
    from lamella.core.log.events.compaction import WorkflowSpec
    from lamella.sources.workflow_files import WorkflowFolder

_DEFAULT_FOLDER = "~/.lamella/workflows"
STDIN = "-"
# More than a stage's data can have, even in a verbose JSON encoding.
_MAX_INPUT_BYTES = 10_000_000


def open_workflows(services: ServiceContainer | None = None) -> "WorkflowFolder":
    """Return the workflows of the configured folder and those that ship with Lamella, by name."""
    from lamella.sources.workflow_files import WorkflowFolder  # imported late: only workflows need it

    services = services or read_services()
    for error in services.resolved.errors_for_project_settings(("workflow_folder",)):
        raise error
    return WorkflowFolder(Path(services.settings.workflow_folder or _DEFAULT_FOLDER).expanduser())


def get_workflow(name: str, *, language: str | None = None, services: ServiceContainer | None = None) -> "WorkflowSpec":
    """Return a workflow by its name or by the path of its file, by default in its own language."""
    return open_workflows(services).load(name, language=language)


def list_workflows(*, services: ServiceContainer | None = None) -> list[str]:
    """Return the names of all workflows."""
    return open_workflows(services).list_names()


def is_workflow_path(name: str) -> bool:
    """Return whether a workflow's name is the path of its file."""
    from lamella.sources.workflow_files import is_workflow_path

    return is_workflow_path(name)


def read_input_file(path: str) -> bytes:
    """Return the bytes of a plain file, or of standard input for ``-``; raises ``OSError`` if it cannot be read."""
    from lamella.files import read_regular_file, read_stream

    if path == STDIN:
        return read_stream(sys.stdin.buffer, limit=_MAX_INPUT_BYTES, name="standard input")
    return read_regular_file(Path(path).expanduser(), limit=_MAX_INPUT_BYTES)


def get_system_language() -> str:
    """Return the language of the system as a code, such as ``id``; an empty string if the system names none."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    code = next((name for name in names if name), "").partition(".")[0].partition("_")[0].casefold()
    return code if code.isalpha() and code not in ("c", "posix") else ""
