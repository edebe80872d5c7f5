"""Worlds: what a conversation walks through, over the adapters that ship with Lamella."""

from pathlib import Path

from lamella.adapters.sources.vault import Vault
from lamella.core.prompt.resume import resume
from lamella.engine.turns import TurnRunner
from lamella.engine.world import World
from lamella.ports import SourceReader, Summarizer
from lamella.settings.meaning import make_rules
from lamella.wiring.services import Services, read_services


def open_world(vault: Path | None, *, services: Services | None = None, summarizer: Summarizer | None = None) -> World:
    """The adapters that ship with Lamella, over the notes of a vault."""
    services = services or read_services()
    return World(
        counter=services.counter,
        prices=services.prices,
        profiles=services.profiles,
        sources=Vault(vault) if vault is not None else None,
        summarizer=summarizer,
        dialects=services.dialects,
    )


def open_runner(
    services: Services,
    *,
    conversation: str,
    vault: Path | None = None,
    ledger: bool = True,
    summarizer: Summarizer | None = None,
) -> TurnRunner:
    """A runner for one conversation in memory, under the settings that were read."""
    world = open_world(vault, services=services, summarizer=summarizer)
    rules = make_rules(services.settings, world)
    start = resume((), rules, conversation=conversation, model=services.settings.model)
    return TurnRunner(world, rules, start, ledger=ledger)


def open_sources(folder: Path) -> SourceReader:
    """The notes and files below a folder."""
    return Vault(folder)
