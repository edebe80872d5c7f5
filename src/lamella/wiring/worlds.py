"""Worlds: what a conversation walks through, over the adapters that ship with Lamella."""

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from lamella.adapters.sources.opening import open_sources
from lamella.core.prompt.state import State
from lamella.engine.dialogue.world import World
from lamella.engine.stages.memory import StagedDialogue
from lamella.ports import Summarizer
from lamella.settings.meaning import find_hint_rule, make_rules, make_terms
from lamella.wiring.code import LateCodeReader
from lamella.wiring.faults import OWN
from lamella.wiring.services import Services, read_services
from lamella.wiring.workflows import find_workflow


def open_world(
    vault: Path | None,
    *,
    services: Services | None = None,
    summarizer: Summarizer | None = None,
    today: Callable[[], date] | None = None,
) -> World:
    """The adapters that ship with Lamella, over the notes of a vault; ``today`` tells the day to queries in them."""
    services = services or read_services()
    code = None if vault is None else LateCodeReader(vault, services)
    return World(
        counter=services.counter,
        prices=services.prices,
        profiles=services.profiles,
        sources=open_sources(vault, lambda: services.conversions, today=today, code=code),
        summarizer=summarizer,
        dialects=services.dialects,
        secrets=services.secrets,
        log_preview=services.settings.log_preview,
        workflows=partial(find_workflow, services=services),
        recall_hints=find_hint_rule(services.settings),
    )


def open_dialogue(
    services: Services,
    *,
    conversation: str,
    vault: Path | None = None,
    ledger: bool = True,
    summarizer: Summarizer | None = None,
) -> StagedDialogue:
    """A dialogue for one conversation in memory, under the settings that were read."""
    for overreach in services.found.find_overreach(OWN):
        raise overreach
    world = open_world(vault, services=services, summarizer=summarizer)
    own = services.fit_budget(services.found, services.settings.model)
    settings = services.under({**services.given, **own}).settings if own else services.settings
    start = State(conversation=conversation, model=settings.model)
    return StagedDialogue(world, make_rules(settings, world), start, terms=make_terms(settings), ledger=ledger)
