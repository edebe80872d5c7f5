"""Stores: conversations that last, at a URL or where settings say."""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.stores.chain import make_key
from lamella.adapters.stores.opening import locate_store, open_store
from lamella.wiring.running.memory import forget_chat
from lamella.wiring.services import Services, read_services
from lamella.wiring.trust import find_store

if TYPE_CHECKING:
    from lamella.engine.dialogue.world import World
    from lamella.engine.keeping.backend import Backend, ChatRules
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.memory import MemoryPart
    from lamella.engine.sending.pool import ProviderPool
    from lamella.holdings import ChatListing
    from lamella.ports import Summarizer


def open_backend(
    url: str | None = None,
    *,
    services: Services | None = None,
    vault: Path | None = None,
    ledger: bool = True,
    summarizer: "Summarizer | None" = None,
    pool: "ProviderPool | None" = None,
    create: bool = True,
    memory: "MemoryPart | None" = None,
) -> "Backend":
    """A backend over the store at a URL, or the configured one: everything that conversations which last work with.

    ``memory`` is what they take up of what is remembered; with none each keeps what it has. Without a ``summarizer``
    models are asked for summaries, over the pool that turns are sent from, if there is one. Unless ``create``, a store
    that is not there is an error.
    """
    # Lists do without a backend, and all that a turn walks through takes long to import.
    from lamella.engine.keeping.backend import Backend
    from lamella.wiring.summaries import make_fetchers
    from lamella.wiring.worlds import open_world

    services = services or read_services()
    clock = SystemClock()
    # The day as people at this machine count it. A replay knows none: it says the same on any day.
    world = open_world(vault, services=services, summarizer=summarizer, today=lambda: clock.now().astimezone().date())

    store = open_store(find_store(url, services), create=create)
    return Backend(
        store=store,
        clock=clock,
        world=world,
        configure=_make_configure(services, world, fits=summarizer is None),
        ledger=ledger,
        make_key=make_key,
        memory=memory,
        find_fetcher=make_fetchers(services, pool, shelf=store.shelf),
    )


def _make_configure(services: Services, world: "World", *, fits: bool) -> "Callable[[Mapping[str, object]], ChatRules]":
    """What turns settings of a conversation into its rules; what a summary reads then ``fits`` who writes it."""
    from lamella.engine.keeping.backend import ChatRules
    from lamella.settings.meaning import find_hint_rule, make_limits, make_rules, make_terms
    from lamella.settings.system import read_parts
    from lamella.wiring.faults import check_meaning
    from lamella.wiring.providers import configure_chat
    from lamella.wiring.summaries import fit_reading

    def read(given: Mapping[str, object]) -> ChatRules:
        found = configure_chat(given, services)
        check_meaning(found)
        settings, rules = found.settings, make_rules(found.settings, world)
        return ChatRules(
            rules=fit_reading(rules, settings, services) if fits else rules,
            terms=make_terms(settings),
            model=settings.model,
            parts=partial(read_parts, found),
            limits=make_limits(settings),
            summarizer=settings.summarizer,
            keep_alive=settings.keep_alive,
            recall_hints=find_hint_rule(settings),
            lays_out=found.is_set("layout"),
        )

    last: tuple[Mapping[str, object], ChatRules] | None = None

    def configure(given: Mapping[str, object]) -> ChatRules:
        # Of many conversations that are opened one after another most have the same settings of their own.
        nonlocal last
        known = last
        if known is None or known[0] != given:
            known = last = (deepcopy(dict(given)), read(given))
        return known[1]

    return configure


def open_conversations(
    url: str | None = None, *, services: Services | None = None, create: bool = True
) -> "Conversations":
    """What can be done with whole conversations, at a URL or in the configured store.

    Unless ``create``, a store that is not there is an error.
    """
    from lamella.engine.keeping.conversations import Conversations

    services = services or read_services()
    store = open_store(find_store(url or None, services), create=create)
    return Conversations(store, SystemClock(), forget=partial(forget_chat, services=services))


def list_conversations(
    url: str | None = None, *, services: Services | None = None, create: bool = False
) -> "list[ChatListing]":
    """Every conversation of a store that was not erased, the last changed first.

    Whoever named no store and has none yet has no conversations; that is no mistake, nor is it one of those who would
    ``create`` the store that they named.
    """
    services = services or read_services()
    named = url is not None or services.found.is_set("store")
    place = find_store(url or None, services)
    if (create or not named) and not has_store(place):
        return []
    store = open_store(place, create=False)
    try:
        return [listed for listed in store.list_conversations() if listed.erased is None]
    finally:
        store.close()


def copy_conversations(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Each conversation of a store, and what became of it in another: new, extended, same, older, diverged, erased."""
    from lamella.engine.keeping.copying import copy_store

    theirs = open_store(source, create=False)
    try:
        ours = open_store(target)
        try:
            yield from copy_store(theirs, ours, SystemClock())
        finally:
            ours.close()
    finally:
        theirs.close()


def has_store(url: str) -> bool:
    """Whether there is a store to read from; of a server only asking it can tell."""
    place = locate_store(url)
    return place is None or place.exists()
