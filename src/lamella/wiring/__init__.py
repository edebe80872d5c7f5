"""Wiring: the one place that knows both a port and its adapter, and that asks for settings.

Enters: settings, paths, addresses, what a caller brings of its own. Leaves: what faces work with, opened over adapters.
May not enter: decisions about prompts; a second reading of the settings.
"""

from typing import TYPE_CHECKING

from lamella.fetching import fetch_later

if TYPE_CHECKING:
    from lamella.adapters.archive.glued import part_message
    from lamella.adapters.archive.transcript import Transcript, load_transcript, parse_transcript, read_transcript
    from lamella.adapters.providers.places import DEMO_MODEL
    from lamella.adapters.providers.registry import list_models
    from lamella.adapters.sources.code.attaching import attach_code
    from lamella.adapters.sources.code.sent import read_body, read_sent
    from lamella.adapters.sources.naming import MentionOutcome, NamedFiles
    from lamella.adapters.sources.opening import open_sources
    from lamella.attach import BUDGET
    from lamella.settings.checks import check_name, tell_takes
    from lamella.settings.configuration import Configuration, Origin
    from lamella.settings.environment import find_misspelt, read_typed
    from lamella.settings.files import place_user_file
    from lamella.settings.masks import mask
    from lamella.settings.meaning import make_rules
    from lamella.settings.model import NAMES, ServeSettings
    from lamella.settings.tokens import KeptToken, TokenBook, TokenScope
    from lamella.wiring.archives import open_archive
    from lamella.wiring.code import MOST_TOKENS, select_code, select_files
    from lamella.wiring.faults import find_bad_settings
    from lamella.wiring.kinds import filter_request, open_solver, solve_request
    from lamella.wiring.providers import (
        begin_settings,
        configure_chat,
        fit_window,
        list_keys,
        mask_keys,
        open_pool,
        open_provider,
        read_answer,
        tell_unready,
    )
    from lamella.wiring.reading import open_files
    from lamella.wiring.retrieval import find_vault, open_notes
    from lamella.wiring.running.mcp import describe_server, is_trusted, list_servers, open_servers
    from lamella.wiring.running.memory import find_book, find_part, open_memory
    from lamella.wiring.running.workplaces import open_workplace, open_writer
    from lamella.wiring.services import Services, load_configuration, load_settings, read_services
    from lamella.wiring.serving.engines import EngineSuite, open_engines
    from lamella.wiring.serving.rules import find_serve_rules, is_loopback, list_hosts, needs_token, open_tokens
    from lamella.wiring.stores import copy_conversations, list_conversations, open_backend, open_conversations
    from lamella.wiring.transcripts import (
        find_script,
        replay_script,
        replay_transcript,
        save_transcript,
        write_request,
    )
    from lamella.wiring.trust import FIELDS, add_trust, name_place, needs_name, open_trust
    from lamella.wiring.workflows import find_workflow, is_workflow_path, list_workflows, read_work, save_work
    from lamella.wiring.worlds import open_dialogue, open_world

__all__ = [
    "BUDGET",
    "DEMO_MODEL",
    "FIELDS",
    "MOST_TOKENS",
    "NAMES",
    "Configuration",
    "EngineSuite",
    "KeptToken",
    "MentionOutcome",
    "NamedFiles",
    "Origin",
    "ServeSettings",
    "Services",
    "TokenBook",
    "TokenScope",
    "Transcript",
    "add_trust",
    "attach_code",
    "begin_settings",
    "check_name",
    "configure_chat",
    "copy_conversations",
    "describe_server",
    "filter_request",
    "find_bad_settings",
    "find_book",
    "find_misspelt",
    "find_part",
    "find_script",
    "find_serve_rules",
    "find_vault",
    "find_workflow",
    "fit_window",
    "is_loopback",
    "is_trusted",
    "is_workflow_path",
    "list_conversations",
    "list_hosts",
    "list_keys",
    "list_models",
    "list_servers",
    "list_workflows",
    "load_configuration",
    "load_settings",
    "load_transcript",
    "make_rules",
    "mask",
    "mask_keys",
    "name_place",
    "needs_name",
    "needs_token",
    "open_archive",
    "open_backend",
    "open_conversations",
    "open_dialogue",
    "open_engines",
    "open_files",
    "open_memory",
    "open_notes",
    "open_pool",
    "open_provider",
    "open_servers",
    "open_solver",
    "open_sources",
    "open_tokens",
    "open_trust",
    "open_workplace",
    "open_world",
    "open_writer",
    "parse_transcript",
    "part_message",
    "place_user_file",
    "read_answer",
    "read_body",
    "read_sent",
    "read_services",
    "read_transcript",
    "read_typed",
    "read_work",
    "replay_script",
    "replay_transcript",
    "save_transcript",
    "save_work",
    "select_code",
    "select_files",
    "solve_request",
    "tell_takes",
    "tell_unready",
    "write_request",
]

if not TYPE_CHECKING:
    # A command imports what it wires and nothing else: all of it takes as long as forty bare Pythons (2026-11-17).
    _HOMES = {
        "lamella.adapters.archive.glued": ("part_message",),
        "lamella.adapters.archive.transcript": ("Transcript", "load_transcript", "parse_transcript", "read_transcript"),
        "lamella.adapters.sources.code.attaching": ("attach_code",),
        "lamella.adapters.sources.code.sent": ("read_body", "read_sent"),
        "lamella.adapters.providers.places": ("DEMO_MODEL",),
        "lamella.adapters.providers.registry": ("list_models",),
        "lamella.adapters.sources.naming": ("MentionOutcome", "NamedFiles"),
        "lamella.adapters.sources.opening": ("open_sources",),
        "lamella.attach": ("BUDGET",),
        "lamella.settings.configuration": ("Configuration", "Origin"),
        "lamella.settings.checks": ("check_name", "tell_takes"),
        "lamella.settings.environment": ("find_misspelt", "read_typed"),
        "lamella.settings.files": ("place_user_file",),
        "lamella.settings.masks": ("mask",),
        "lamella.settings.meaning": ("make_rules",),
        "lamella.settings.model": ("NAMES", "ServeSettings"),
        "lamella.settings.tokens": ("KeptToken", "TokenScope", "TokenBook"),
        "lamella.wiring.archives": ("open_archive",),
        "lamella.wiring.code": ("MOST_TOKENS", "select_code", "select_files"),
        "lamella.wiring.faults": ("find_bad_settings",),
        "lamella.wiring.kinds": ("filter_request", "open_solver", "solve_request"),
        "lamella.wiring.running.mcp": ("describe_server", "is_trusted", "list_servers", "open_servers"),
        "lamella.wiring.running.memory": ("find_book", "find_part", "open_memory"),
        "lamella.wiring.providers": (
            "configure_chat",
            "begin_settings",
            "fit_window",
            "list_keys",
            "mask_keys",
            "open_pool",
            "open_provider",
            "read_answer",
            "tell_unready",
        ),
        "lamella.wiring.reading": ("open_files",),
        "lamella.wiring.retrieval": ("find_vault", "open_notes"),
        "lamella.wiring.serving.engines": ("EngineSuite", "open_engines"),
        "lamella.wiring.serving.rules": (
            "find_serve_rules",
            "is_loopback",
            "list_hosts",
            "needs_token",
            "open_tokens",
        ),
        "lamella.wiring.services": ("Services", "load_configuration", "load_settings", "read_services"),
        "lamella.wiring.stores": ("copy_conversations", "list_conversations", "open_backend", "open_conversations"),
        "lamella.wiring.transcripts": (
            "find_script",
            "replay_script",
            "replay_transcript",
            "save_transcript",
            "write_request",
        ),
        "lamella.wiring.trust": ("FIELDS", "add_trust", "name_place", "needs_name", "open_trust"),
        "lamella.wiring.running.workplaces": ("open_workplace", "open_writer"),
        "lamella.wiring.workflows": ("find_workflow", "is_workflow_path", "list_workflows", "read_work", "save_work"),
        "lamella.wiring.worlds": ("open_dialogue", "open_world"),
    }
    __getattr__, __dir__ = fetch_later(__name__, _HOMES)
