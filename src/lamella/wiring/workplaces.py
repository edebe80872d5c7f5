"""Workplaces: what runners find where they work, over a vault if there is one."""

from functools import partial
from pathlib import Path

from lamella.adapters.providers.places import calls_tools
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.job import Workplace
from lamella.holdings import ProjectFolder
from lamella.wiring.services import Services


def open_workplace(services: Services, *, vault: Path | None = None) -> Workplace:
    """Where runners work, over the notes of a vault if there is one. What nobody uses is not opened."""
    return Workplace(
        open_notes=None if vault is None else partial(_open_notes, vault, services),
        calls_tools=lambda model: calls_tools(model, services.models),
        look_at_project=None if vault is None else partial(_look_at, vault),
    )


def _look_at(vault: Path) -> ProjectFolder:
    from lamella.adapters.sources.project import look_at_project  # only those who work on one need it

    return look_at_project(vault)


def _open_notes(vault: Path, services: Services) -> NoteIndex:
    from lamella.wiring.retrieval import open_notes  # only those who search need it

    return open_notes(vault, services=services)
