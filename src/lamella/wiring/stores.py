"""Stores: stored conversations, at a URL or in the configured store."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import deepcopy
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.clocks import SystemClock
from lamella.errors import InvalidOperationError, SettingError
from lamella.stores.hash_chain import generate_key
from lamella.stores.open_store import find_store_path, open_store
from lamella.wiring.memory import remove_conversation_fact
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import resolve_store_url

if TYPE_CHECKING:
    from lamella.conversation.adapters import Adapters
    from lamella.conversation.backend import Backend, ConversationSettings
    from lamella.conversation.import_export import ConversationRepository
    from lamella.conversation.memory import RenderMemory
    from lamella.conversation.provider_pool import ProviderPool
    from lamella.conversation.turn import BuiltTurn
    from lamella.ports import ConversationListItem, Store, StoreProblem, Summarizer


def open_backend(
    url: str | None = None,
    *,
    services: ServiceContainer | None = None,
    vault: Path | None = None,
    keep_ledger: bool = True,
    summarizer: "Summarizer | None" = None,
    pool: "ProviderPool | None" = None,
    create: bool = True,
    render_memory: "RenderMemory | None" = None,
) -> "Backend":
    """Return a backend over the store at a URL, or the configured one, with all that stored conversations need.

    - ``render_memory``: the part of the memory for prompts. With None each conversation keeps the part it has.
    - ``summarizer``: writes summaries. Without one, models are asked, over ``pool`` if it is given.
    - ``create``: if False, a missing store is an error.
    """
    # Imported late: lists need no backend, and the modules for turns take long to import.
    from lamella.conversation.backend import Backend
    from lamella.conversation.shared_prefixes import SharedPrefixRegistry
    from lamella.wiring.adapters import open_adapters
    from lamella.wiring.providers import make_summary_fetcher_factory

    services = services or read_services()
    clock = SystemClock()
    # Queries use the local date of this machine. A replay has no date, so that its result is the same on any day.
    adapters = open_adapters(
        vault, services=services, summarizer=summarizer, today=lambda: clock.now().astimezone().date()
    )

    store = _open_store(url, services, create=create)
    return Backend(
        store=store,
        clock=clock,
        adapters=adapters,
        resolve_settings=_make_settings_resolver(services, adapters, fit_window=summarizer is None),
        keeps_ledger=keep_ledger,
        make_key=generate_key,
        render_memory=render_memory,
        make_summary_fetcher=make_summary_fetcher_factory(services, pool, shared_table=store.shared_table),
        replay_transcript=partial(_replay_written_transcript, services),
        shared_prefixes=SharedPrefixRegistry(store.shared_table),
    )


def _replay_written_transcript(services: ServiceContainer, body: Mapping[str, object]) -> "Iterator[BuiltTurn]":
    # Only an export needs the modules for transcripts.
    from lamella.wiring.transcripts import replay_exported_transcript

    return replay_exported_transcript(services, body)


def open_in_memory_backend(
    settings: Mapping[str, object],
    *,
    system: str | Mapping[str, str] | None,
    vault: str | PathLike[str] | None,
    keep_ledger: bool,
    summarizer: "Summarizer | str | None",
) -> "Backend":
    """Return the backend of a conversation in memory, with these settings and this system prompt.

    It has no clock and calls no model. The conversation is in a store of its own, which is lost with it.
    """
    from lamella.conversation.backend import Backend, ConversationSettings
    from lamella.conversation.settings import SYSTEM_PART_SETTINGS
    from lamella.conversation.summary_calls import NO_SUMMARIES, SAME_MODEL
    from lamella.conversation.validation import check_summarizer, normalize_system_parts, to_folder_path
    from lamella.settings.rules import (
        build_prompt_settings,
        build_turn_limits,
        build_turn_settings,
        load_system_parts,
        recall_hints_enabled,
    )
    from lamella.stores.memory import InMemoryStore
    from lamella.wiring.adapters import open_adapters
    from lamella.wiring.setting_checks import USER_ONLY_SETTINGS

    own = None if summarizer in (SAME_MODEL, NO_SUMMARIES) else summarizer
    if isinstance(own, str):
        raise InvalidOperationError(
            f"A conversation in memory asks no model, {own} neither.",
            hint="Give an object with a method summarize, or open a store with lamella.open(…).",
        )
    services = read_services(settings)
    folder, given = to_folder_path(vault), {} if system is None else normalize_system_parts(system)
    for overreach in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach
    adapters = open_adapters(folder, services=services, summarizer=check_summarizer(own))

    def resolve(overrides: Mapping[str, object]) -> ConversationSettings:
        chosen = services.with_only_overrides({**services.overrides, **overrides}) if overrides else services
        budget = chosen.budget_settings_for(chosen.resolved, chosen.settings.model)
        resolved = chosen.with_only_overrides({**chosen.overrides, **budget}).resolved if budget else chosen.resolved

        def load_parts(names: Collection[str]) -> Mapping[str, str]:
            parts = load_system_parts(resolved, names)
            # The system prompt that the program gave at the start holds until it sets another one.
            return parts if any(name in overrides for name in SYSTEM_PART_SETTINGS) else {**parts, **given}

        return ConversationSettings(
            prompt_settings=build_prompt_settings(resolved.settings, adapters),
            turn_settings=build_turn_settings(resolved.settings),
            model=resolved.settings.model,
            load_system_parts=load_parts,
            limits=build_turn_limits(resolved.settings),
            recall_hints=recall_hints_enabled(resolved.settings),
            has_explicit_layout=resolved.is_set("layout"),
            learns_retention=not resolved.is_set("linger"),
        )

    return Backend(
        store=InMemoryStore(),
        clock=SystemClock(),
        adapters=adapters,
        resolve_settings=resolve,
        keeps_ledger=keep_ledger,
        # Nobody opens it again, so a checkpoint would only take time.
        checkpoint_every=sys.maxsize,
        timestamps_changes=False,
        replay_transcript=partial(_replay_written_transcript, services),
    )


def _make_settings_resolver(
    services: ServiceContainer, adapters: "Adapters", *, fit_window: bool
) -> "Callable[[Mapping[str, object]], ConversationSettings]":
    """Return the function that turns a conversation's own settings into its conversation settings.

    With ``fit_window``, the input of a summary is limited to the window of the model that writes it.
    """
    from lamella.conversation.backend import ConversationSettings
    from lamella.settings.rules import (
        build_prompt_settings,
        build_turn_limits,
        build_turn_settings,
        load_system_parts,
        recall_hints_enabled,
    )
    from lamella.wiring.providers import limit_summary_input, resolve_conversation_settings
    from lamella.wiring.setting_checks import raise_first_setting_error

    def read(overrides: Mapping[str, object]) -> ConversationSettings:
        resolved = resolve_conversation_settings(overrides, services)
        raise_first_setting_error(resolved)
        settings, rules = resolved.settings, build_prompt_settings(resolved.settings, adapters)
        return ConversationSettings(
            prompt_settings=limit_summary_input(rules, settings, services) if fit_window else rules,
            turn_settings=build_turn_settings(settings),
            model=settings.model,
            load_system_parts=partial(load_system_parts, resolved),
            limits=build_turn_limits(settings),
            summarizer=settings.summarizer,
            max_keep_alives=settings.keep_alive,
            recall_hints=recall_hints_enabled(settings),
            has_explicit_layout=resolved.is_set("layout"),
            learns_retention=not resolved.is_set("linger"),
        )

    last: tuple[Mapping[str, object], ConversationSettings] | None = None

    def configure(overrides: Mapping[str, object]) -> ConversationSettings:
        # Most conversations that are opened in a row have the same settings of their own. The local copy guards against
        # another thread that replaces `last`, and the deep copy against a caller that changes the overrides later.
        nonlocal last
        known = last
        if known is None or known[0] != overrides:
            known = last = (deepcopy(dict(overrides)), read(overrides))
        return known[1]

    return configure


def open_conversation_repository(
    url: str | None = None, *, services: ServiceContainer | None = None, create: bool = True
) -> "ConversationRepository":
    """Open the repository for operations on whole conversations, at a URL or in the configured store.

    If ``create`` is False, a missing store is an error.
    """
    from lamella.conversation.import_export import ConversationRepository

    services = services or read_services()
    store = _open_store(url or None, services, create=create)
    return ConversationRepository(
        store,
        SystemClock(),
        forget_conversation=partial(remove_conversation_fact, services=services),
        find_request_problems=partial(_iter_request_problems, store, services),
    )


def _open_store(url: str | None, services: ServiceContainer, *, create: bool) -> "Store":
    """Open a store. If nobody named it and it does not exist yet, the error says that there are no conversations."""
    store_url = resolve_store_url(url, services)
    is_named = url is not None or services.resolved.is_set("store")
    if not create and not is_named and not has_store(store_url):
        raise SettingError(
            "No conversations yet.", hint=lambda hints: f"Start or import one: {hints.create_store_hint()}"
        )
    return open_store(store_url, create=create)


def _iter_request_problems(
    store: "Store", services: ServiceContainer, conversation_key: str
) -> "Iterator[StoreProblem]":
    """Yield the stored requests of a conversation whose derived bytes do not have the stored hash."""
    # Only a verification needs the modules for turns.
    from lamella.conversation.backend import Backend
    from lamella.conversation.sent_turns import iter_request_problems
    from lamella.wiring.adapters import open_adapters

    adapters = open_adapters(None, services=services)
    backend = Backend(
        store=store,
        clock=SystemClock(),
        adapters=adapters,
        resolve_settings=_make_settings_resolver(services, adapters, fit_window=False),
    )
    yield from iter_request_problems(backend, conversation_key)


def list_conversations(
    url: str | None = None, *, services: ServiceContainer | None = None, missing_is_empty: bool = False
) -> "list[ConversationListItem]":
    """Return every conversation of a store that was not erased, the last changed first.

    A missing store counts as empty if it is the default store, or if the caller would ``create`` it. A missing store
    that the user named is an error.
    """
    services = services or read_services()
    named = url is not None or services.resolved.is_set("store")
    store_url = resolve_store_url(url or None, services)
    if (missing_is_empty or not named) and not has_store(store_url):
        return []
    store = open_store(store_url, create=False)
    try:
        return [listed for listed in store.list_conversations() if listed.erased_at is None]
    finally:
        store.close()


def copy_conversations(source: str, target: str) -> Iterator[tuple[str, str]]:
    """Copy conversations to another store and yield the name and result of each.

    A result is new, extended, same, older, diverged or erased.
    """
    from lamella.conversation.import_export import copy_store

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
    """Return whether a store exists; True for a server, because only a connection could show it."""
    path = find_store_path(url)
    return path is None or path.exists()
