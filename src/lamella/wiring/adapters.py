"""The adapters of a conversation, and prompt builders for replays."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from lamella.conversation.adapters import Adapters
from lamella.conversation.prompt_builder import PromptBuilder
from lamella.core.prompt.state import PromptState
from lamella.ports import Summarizer
from lamella.settings.rules import build_prompt_settings, build_turn_settings, recall_hints_enabled
from lamella.sources.open_sources import make_source_opener
from lamella.wiring.code import LazyCodeReader
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.setting_checks import USER_ONLY_SETTINGS
from lamella.wiring.workflows import get_workflow


def open_adapters(
    vault: Path | None,
    *,
    services: ServiceContainer | None = None,
    summarizer: Summarizer | None = None,
    today: Callable[[], date] | None = None,
) -> Adapters:
    """Return the adapters that ship with Lamella, over a vault; ``today`` gives the date for queries in notes."""
    services = services or read_services()
    code = None if vault is None else LazyCodeReader(vault, services)
    return Adapters(
        counter=services.counter,
        prices=services.prices,
        profiles=services.profiles,
        open_sources=make_source_opener(vault, lambda: services.document_converter, today=today, code=code),
        summarizer=summarizer,
        wire_formats=services.wire_formats,
        secret_scanner=services.secret_scanner,
        logs_text_preview=services.settings.log_preview,
        load_workflow=lambda name, language: get_workflow(name, language=language, services=services),
        recall_hints=recall_hints_enabled(services.settings),
    )


def open_prompt_builder(
    services: ServiceContainer,
    *,
    conversation_key: str,
    vault: Path | None = None,
    learns_retention: bool = False,
) -> PromptBuilder:
    """Return a prompt builder that writes nothing, with the settings that were read.

    With ``learns_retention`` the retention of attachments may become 0, unless a setting says how long it is.
    """
    for overreach in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach
    adapters = open_adapters(vault, services=services)
    own = services.budget_settings_for(services.resolved, services.settings.model)
    settings = services.with_only_overrides({**services.overrides, **own}).settings if own else services.settings
    start = PromptState(conversation=conversation_key, model=settings.model)
    return PromptBuilder(
        adapters,
        build_prompt_settings(settings, adapters),
        start,
        turn_settings=build_turn_settings(settings),
        learns_retention=learns_retention and not services.resolved.is_set("linger"),
    )
