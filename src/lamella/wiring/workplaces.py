"""Workplaces: what runners find where they work, over a vault if there is one."""

from pathlib import Path

from lamella.adapters.providers.places import calls_tools
from lamella.engine.sending.job import Workplace
from lamella.wiring.services import Services


def open_workplace(vault: Path | None, *, services: Services) -> Workplace:
    """A place to work in. Nothing is read before a runner asks for it."""
    del vault
    return Workplace(calls_tools=lambda model: calls_tools(model, services.models))
