"""Wiring: puts ports and adapters together as the settings say.

- ``python``: entry points for Python programs.
- ``services``, ``adapters``: everything that follows from one reading of the settings.
- ``stores``, ``providers``, ``sources``, ``memory``, ``mcp``, ``workflows``, ``archives``, ``transcripts``, ``code``:
  one kind of adapter each.
- ``runner_context``, ``server``: what runners and the server need.
- ``trust``, ``setting_checks``: what the user has allowed, and errors in settings.

It is the only package that knows both the ports and their adapters. Settings are read once. The package makes no
decisions about prompts.
"""

from typing import TYPE_CHECKING

from lamella.lazy_imports import make_lazy_exports

if TYPE_CHECKING:
    from lamella.archive.transcript import Transcript, load_transcript, parse_transcript, read_transcript
    from lamella.attach import DEFAULT_CODE_BUDGET
    from lamella.codebase.attachments import read_files_from_json, read_json_request, selection_to_attachments
    from lamella.providers.open_provider import DEMO_MODEL
    from lamella.providers.registry import list_models
    from lamella.settings.files import create_settings_file, set_in_file, unset_in_file
    from lamella.settings.loading import (
        SETTINGS_FILE_NAME,
        ResolvedSettings,
        SettingOrigin,
        find_misspelt_variables,
        find_project_settings_file,
        get_user_file_path,
        is_same_file,
        parse_setting_value,
    )
    from lamella.settings.model import (
        SETTING_NAMES,
        HttpServerSettings,
        check_name,
        describe_accepted_values,
        mask_url_secrets,
    )
    from lamella.settings.rules import build_prompt_settings
    from lamella.settings.tokens import AccessScope, AccessToken, AccessTokenFile
    from lamella.sources.mentions import AttachmentResolver, MentionOutcome
    from lamella.sources.open_sources import make_source_opener
    from lamella.wiring.adapters import open_adapters, open_prompt_builder
    from lamella.wiring.archives import open_archive
    from lamella.wiring.code import (
        MAX_CODE_BUDGET,
        open_engine_for_request,
        resolve_request_model,
        select_code,
        select_files,
        select_files_for_request,
        solve_request,
        with_configured_model,
    )
    from lamella.wiring.documents import (
        list_citation_styles,
        read_references,
        render_document_file,
        write_document,
    )
    from lamella.wiring.mcp import build_server_spec, is_trusted, list_servers, open_servers
    from lamella.wiring.memory import choose_memory_renderer, make_memory_opener, open_memory
    from lamella.wiring.providers import (
        default_settings_for,
        find_model_problem,
        get_model_facts,
        get_window_settings,
        list_key_variables,
        list_missing_keys,
        list_priced_models,
        mask_keys,
        open_pool,
        open_provider,
        parse_response,
        resolve_conversation_settings,
    )
    from lamella.wiring.runner_context import open_note_writer, open_repository_editor, open_runner_context
    from lamella.wiring.server import (
        EnginePool,
        is_loopback,
        list_allowed_hosts,
        needs_token,
        open_engine_pool,
        open_token_file,
        server_settings,
    )
    from lamella.wiring.services import ServiceContainer, load_configuration, load_settings, read_services
    from lamella.wiring.setting_checks import list_setting_errors
    from lamella.wiring.sources import open_attachment_resolver, open_note_index, resolve_vault_path
    from lamella.wiring.stores import copy_conversations, list_conversations, open_backend, open_conversation_repository
    from lamella.wiring.transcripts import (
        build_request_body,
        find_conversation_key,
        replay_stored_conversation,
        replay_transcript,
        save_transcript,
    )
    from lamella.wiring.trust import TRUST_FIELDS, add_trust, get_trust_key, open_trust_file, requires_named_model
    from lamella.wiring.welcome import WELCOME_NAME, open_welcome_conversation
    from lamella.wiring.workflows import (
        get_system_language,
        get_workflow,
        is_workflow_path,
        list_workflows,
        read_input_file,
    )

__all__ = [
    "DEFAULT_CODE_BUDGET",
    "DEMO_MODEL",
    "MAX_CODE_BUDGET",
    "SETTINGS_FILE_NAME",
    "SETTING_NAMES",
    "TRUST_FIELDS",
    "WELCOME_NAME",
    "AccessScope",
    "AccessToken",
    "AccessTokenFile",
    "AttachmentResolver",
    "EnginePool",
    "HttpServerSettings",
    "MentionOutcome",
    "ResolvedSettings",
    "ServiceContainer",
    "SettingOrigin",
    "Transcript",
    "add_trust",
    "build_prompt_settings",
    "build_request_body",
    "build_server_spec",
    "check_name",
    "choose_memory_renderer",
    "copy_conversations",
    "create_settings_file",
    "default_settings_for",
    "describe_accepted_values",
    "find_conversation_key",
    "find_misspelt_variables",
    "find_model_problem",
    "find_project_settings_file",
    "get_model_facts",
    "get_system_language",
    "get_trust_key",
    "get_user_file_path",
    "get_window_settings",
    "get_workflow",
    "is_loopback",
    "is_same_file",
    "is_trusted",
    "is_workflow_path",
    "list_allowed_hosts",
    "list_citation_styles",
    "list_conversations",
    "list_key_variables",
    "list_missing_keys",
    "list_models",
    "list_priced_models",
    "list_servers",
    "list_setting_errors",
    "list_workflows",
    "load_configuration",
    "load_settings",
    "load_transcript",
    "make_memory_opener",
    "make_source_opener",
    "mask_keys",
    "mask_url_secrets",
    "needs_token",
    "open_adapters",
    "open_archive",
    "open_attachment_resolver",
    "open_backend",
    "open_conversation_repository",
    "open_engine_for_request",
    "open_engine_pool",
    "open_memory",
    "open_note_index",
    "open_note_writer",
    "open_pool",
    "open_prompt_builder",
    "open_provider",
    "open_repository_editor",
    "open_runner_context",
    "open_servers",
    "open_token_file",
    "open_trust_file",
    "open_welcome_conversation",
    "parse_response",
    "parse_setting_value",
    "parse_transcript",
    "read_files_from_json",
    "read_input_file",
    "read_json_request",
    "read_references",
    "read_services",
    "read_transcript",
    "render_document_file",
    "replay_stored_conversation",
    "replay_transcript",
    "requires_named_model",
    "resolve_conversation_settings",
    "resolve_request_model",
    "resolve_vault_path",
    "save_transcript",
    "select_code",
    "select_files",
    "select_files_for_request",
    "selection_to_attachments",
    "server_settings",
    "set_in_file",
    "solve_request",
    "unset_in_file",
    "with_configured_model",
    "write_document",
]

if not TYPE_CHECKING:
    # A command imports only what it uses: importing all of this takes 40 times the start of a bare Python (2026-11-17).
    _HOMES = {
        "lamella.archive.transcript": (
            "Transcript",
            "load_transcript",
            "parse_transcript",
            "read_transcript",
        ),
        "lamella.codebase.attachments": ("selection_to_attachments", "read_json_request", "read_files_from_json"),
        "lamella.providers.open_provider": ("DEMO_MODEL",),
        "lamella.providers.registry": ("list_models",),
        "lamella.sources.mentions": ("MentionOutcome", "AttachmentResolver"),
        "lamella.sources.open_sources": ("make_source_opener",),
        "lamella.attach": ("DEFAULT_CODE_BUDGET",),
        "lamella.settings.files": ("create_settings_file", "set_in_file", "unset_in_file"),
        "lamella.settings.loading": (
            "SETTINGS_FILE_NAME",
            "find_project_settings_file",
            "is_same_file",
            "ResolvedSettings",
            "SettingOrigin",
            "find_misspelt_variables",
            "parse_setting_value",
            "get_user_file_path",
        ),
        "lamella.settings.model": (
            "check_name",
            "describe_accepted_values",
            "mask_url_secrets",
            "SETTING_NAMES",
            "HttpServerSettings",
        ),
        "lamella.settings.rules": ("build_prompt_settings",),
        "lamella.settings.tokens": ("AccessToken", "AccessScope", "AccessTokenFile"),
        "lamella.wiring.archives": ("open_archive",),
        "lamella.wiring.code": (
            "MAX_CODE_BUDGET",
            "select_code",
            "select_files",
            "select_files_for_request",
            "open_engine_for_request",
            "resolve_request_model",
            "solve_request",
            "with_configured_model",
        ),
        "lamella.wiring.setting_checks": ("list_setting_errors",),
        "lamella.wiring.mcp": ("build_server_spec", "is_trusted", "list_servers", "open_servers"),
        "lamella.wiring.memory": ("make_memory_opener", "choose_memory_renderer", "open_memory"),
        "lamella.wiring.providers": (
            "resolve_conversation_settings",
            "default_settings_for",
            "get_model_facts",
            "list_missing_keys",
            "list_priced_models",
            "get_window_settings",
            "list_key_variables",
            "mask_keys",
            "open_pool",
            "open_provider",
            "parse_response",
            "find_model_problem",
        ),
        "lamella.wiring.sources": ("open_attachment_resolver", "resolve_vault_path", "open_note_index"),
        "lamella.wiring.server": (
            "EnginePool",
            "open_engine_pool",
            "server_settings",
            "is_loopback",
            "list_allowed_hosts",
            "needs_token",
            "open_token_file",
        ),
        "lamella.wiring.services": ("ServiceContainer", "load_configuration", "load_settings", "read_services"),
        "lamella.wiring.stores": (
            "copy_conversations",
            "list_conversations",
            "open_backend",
            "open_conversation_repository",
        ),
        "lamella.wiring.transcripts": (
            "find_conversation_key",
            "replay_stored_conversation",
            "replay_transcript",
            "save_transcript",
            "build_request_body",
        ),
        "lamella.wiring.trust": (
            "TRUST_FIELDS",
            "add_trust",
            "get_trust_key",
            "requires_named_model",
            "open_trust_file",
        ),
        "lamella.wiring.runner_context": ("open_runner_context", "open_note_writer", "open_repository_editor"),
        "lamella.wiring.welcome": ("WELCOME_NAME", "open_welcome_conversation"),
        "lamella.wiring.documents": (
            "list_citation_styles",
            "read_references",
            "render_document_file",
            "write_document",
        ),
        "lamella.wiring.workflows": (
            "get_workflow",
            "is_workflow_path",
            "list_workflows",
            "read_input_file",
            "get_system_language",
        ),
        "lamella.wiring.adapters": ("open_prompt_builder", "open_adapters"),
    }
    __getattr__, __dir__ = make_lazy_exports(__name__, _HOMES)
