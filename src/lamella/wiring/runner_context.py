"""Runner contexts: the available tools, the notes of the vault, and the abilities of models.

``open_runner_context`` returns the context, whose parts are opened on first use. ``ToolFactory`` creates the tools of
a run. ``open_note_writer`` returns the writer for notes of a vault.
"""

from asyncio import Lock
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.clocks import SystemClock
from lamella.conversation.runner_context import RunnerContext
from lamella.settings.model import WritePermission
from lamella.settings.rules import get_write_permission
from lamella.wiring.mcp import open_servers
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import find_web_search_url

if TYPE_CHECKING:
    from lamella.attach import Tool
    from lamella.codebase.repository_edits import RepositoryEditor
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.note_index import NoteIndex
    from lamella.ports import AllowWrite, Fact, ProjectFolder, UserMemory
    from lamella.sources.vault import Vault
    from lamella.tools.builtin import ConfirmedMemoryWriter, ConfirmedNoteWriter
    from lamella.vault_writer import NoteWriter

    OpenMemory = Callable[[], UserMemory]
    # Returns the function that asks the user of a conversation about a change, or None if nobody can be asked.
    FindPermissionFunction = Callable[[Conversation], AllowWrite | None]

_BACKUPS_FOLDER = "backups"
_CODE_BACKUPS_SUFFIX = "-code"
# Settings for writing that a project file may not set. Opening a conversation refuses these and more.
USER_ONLY_SETTINGS = ("note_writes", "note_backups", "memory_writes")


def _ignore_fact(_fact: "Fact") -> None:
    return None


def open_runner_context(
    services: ServiceContainer,
    *,
    vault: Path | None = None,
    allow: "AllowWrite | None" = None,
    find_allow: "FindPermissionFunction | None" = None,
    open_memory: "OpenMemory | None" = None,
    on_fact_saved: "Callable[[Fact], object]" = _ignore_fact,
    on_index_progress: Callable[[int, int], None] | None = None,
) -> RunnerContext:
    """Return the runner context, over the notes of a vault if there is one; its parts are opened on first use.

    - ``allow``: is asked before a model writes a note, or a fact into the memory that ``open_memory`` opens. Without it
      nothing is written, unless the user's own settings allow that.
    - ``find_allow``: returns that function for each conversation, where users of many conversations can be asked.
    - ``on_fact_saved``: is called with each fact that was saved.
    - ``on_index_progress``: is called with files done and files in total while notes are indexed for the search.

    Raises ``UntrustedError`` for a search engine that only a project file names.
    """
    _check_not_set_by_project(services)
    find_web_search_url(services)
    maker = ToolFactory(
        services,
        vault=vault,
        allow=allow,
        find_allow=find_allow,
        open_memory=open_memory,
        on_fact_saved=on_fact_saved,
        on_index_progress=on_index_progress,
    )
    return RunnerContext(
        make_tools=maker.make_tools,
        note_index=maker.note_index,
        supports_tools=partial(_supports_tools, services),
        read_project=None if vault is None else partial(_read_project, vault),
        can_write_notes=maker.get_write_permission(None) is not WritePermission.OFF,
        mcp_servers=open_servers(services),
        remember_tool=maker.make_user_remember_tool(),
    )


def build_remember_tool(
    services: ServiceContainer, *, allow: "AllowWrite | None", open_memory: "OpenMemory"
) -> "Tool | None":
    """Return the tool that lets a model save a fact, or None if settings forbid it.

    It does not depend on which conversations include the memory.
    """
    from lamella.tools.builtin import make_remember_tool

    permit = ToolFactory(services, vault=None, allow=allow, open_memory=open_memory).make_memory_permission(
        None, Lock()
    )
    return None if permit is None else make_remember_tool(permit)


def open_note_writer(vault: Path, services: ServiceContainer) -> "NoteWriter":
    """Return the writer for notes of a vault, which can also undo its changes."""
    from lamella.sources.vault import Vault
    from lamella.vault_writer import BackupFolder, NoteWriter

    _check_not_set_by_project(services)
    # Raises the usual error if the folder does not exist.
    Vault(vault)
    root = vault.resolve()
    return NoteWriter(root, open_backups=lambda: BackupFolder(_backup_folder(root, services)), now=_local_now)


def open_repository_editor(folder: Path | None = None, services: ServiceContainer | None = None) -> "RepositoryEditor":
    """Return the editor for the repository that contains a folder, by default the current one."""
    from lamella.codebase.repository_edits import RepositoryEditor
    from lamella.vault_writer import BackupFolder

    services = services or read_services()
    _check_not_set_by_project(services)

    def open_backups(root: Path) -> BackupFolder:
        # A vault may be a repository, too. Its notes have other rules for writing, so the backups are kept separately.
        notes = _backup_folder(root, services)
        return BackupFolder(notes.with_name(f"{notes.name}{_CODE_BACKUPS_SUFFIX}"))

    return RepositoryEditor(
        folder or Path.cwd(), secrets=services.secret_scanner, open_backups=open_backups, now=_local_now
    )


def _check_not_set_by_project(services: ServiceContainer) -> None:
    """Raise an error if the project file sets anything about writing.

    Every function that can lead to a write calls this.
    """
    for overreach in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach


class ToolFactory:
    """Creates the tools of a run; the vault and the index that they share are opened on first use."""

    def __init__(
        self,
        services: ServiceContainer,
        *,
        vault: Path | None,
        allow: "AllowWrite | None",
        open_memory: "OpenMemory | None",
        find_allow: "FindPermissionFunction | None" = None,
        on_fact_saved: "Callable[[Fact], object]" = _ignore_fact,
        on_index_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._services = services
        self._vault_path = vault
        self._allow = allow
        self._find_allow = find_allow
        self._open_memory = open_memory
        self._on_fact_saved = on_fact_saved
        self._on_index_progress = on_index_progress

    def make_tools(self, chat: "Conversation | None") -> "Sequence[Tool]":
        """Return the tools for a conversation; without one, tools that need a conversation are only listed."""
        from lamella.tools.registry import ToolDependencies, make_tools

        address = find_web_search_url(self._services)
        # Notes and memory share one lock, so that the user is asked one question at a time.
        turn = Lock()
        return make_tools(
            ToolDependencies(
                now=_local_now,
                vault=self._vault,
                note_index=self.note_index,
                open_converter=lambda: self._services.document_converter,
                search_web=None if address is None else partial(_search_web, self._services, address),
                recall_tool=_make_recall_tool(chat),
                compact_tool=_make_compact_tool(chat),
                memory_permission=self.make_memory_permission(chat, turn),
                note_permission=self._make_note_permission(chat, turn),
            )
        )

    def get_write_permission(self, chat: "Conversation | None", name: str = "note_writes") -> WritePermission:
        """Return whether models may write, as the user's own settings say; a conversation may only be stricter."""
        if (self._vault_path if name == "note_writes" else self._open_memory) is None:
            return WritePermission.OFF
        own = get_write_permission(self._services.settings, name)
        written = None if chat is None else chat.settings.get(name)
        known = isinstance(written, str) and written in list(WritePermission)
        return max(own, WritePermission(str(written)), key=list(WritePermission).index) if known else own

    def make_user_remember_tool(self) -> "Tool | None":
        """Return the tool that saves a fact at the user's own request, which needs no further permission."""
        if self._open_memory is None:
            return None
        from lamella.ports import FactKind
        from lamella.tools.builtin import ConfirmedMemoryWriter, make_remember_tool

        permit = ConfirmedMemoryWriter(
            open_memory=self._open_memory, asks_user=False, kind=FactKind.SAVED, on_saved=self._on_fact_saved
        )
        return make_remember_tool(permit)

    def make_memory_permission(self, chat: "Conversation | None", consent_lock: Lock) -> "ConfirmedMemoryWriter | None":
        """Return the write permission for the memory, or None if models may not write to it."""
        rule = self.get_write_permission(chat, "memory_writes")
        if rule is WritePermission.OFF or self._open_memory is None:
            return None
        from lamella.tools.builtin import ConfirmedMemoryWriter

        asks = rule is WritePermission.ASK
        return ConfirmedMemoryWriter(
            open_memory=self._open_memory,
            allow=self._get_allow(chat),
            asks_user=asks,
            on_saved=self._on_fact_saved,
            consent_lock=consent_lock,
        )

    def _get_allow(self, chat: "Conversation | None") -> "AllowWrite | None":
        return self._allow if self._find_allow is None or chat is None else self._find_allow(chat)

    @cached_property
    def note_index(self) -> "NoteIndex | None":
        if self._vault_path is None:
            return None
        from lamella.wiring.sources import open_note_index_lazily

        return open_note_index_lazily(self._vault_path, services=self._services, on_progress=self._on_index_progress)

    @cached_property
    def _vault(self) -> "Vault | None":
        if self._vault_path is None:
            return None
        from lamella.sources.vault import Vault

        return Vault(self._vault_path, lambda: self._services.document_converter, today=lambda: _local_now().date())

    def _make_note_permission(self, chat: "Conversation | None", consent_lock: Lock) -> "ConfirmedNoteWriter | None":
        rule = self.get_write_permission(chat)
        if rule is WritePermission.OFF or self._vault_path is None:
            return None
        from lamella.tools.builtin import ConfirmedNoteWriter

        return ConfirmedNoteWriter(
            writer=self._note_writer,
            allow=self._get_allow(chat),
            asks_user=rule is WritePermission.ASK,
            consent_lock=consent_lock,
        )

    @cached_property
    def _note_writer(self) -> "NoteWriter":
        # One writer for all turns: it knows which notes were read, and does not overwrite one that changed since.
        assert self._vault_path is not None, "without a vault nothing is written"
        return open_note_writer(self._vault_path, self._services)


def _make_recall_tool(chat: "Conversation | None") -> "Tool":
    from lamella.conversation.recall import make_recall_tool, max_answer_chars

    if chat is None:
        return replace(make_recall_tool(lambda _query, _limit: ()), run=None)
    return make_recall_tool(
        lambda query, limit: chat.recall(query, limit=limit),
        max_chars=lambda: max_answer_chars(chat.current_state[1].tool_output),
    )


def _make_compact_tool(chat: "Conversation | None") -> "Tool":
    from lamella.conversation.recall import make_compact_tool

    if chat is None:
        return replace(make_compact_tool(lambda: None), run=None)
    return make_compact_tool(chat.compact_to_target)


def _search_web(services: ServiceContainer, address: str, query: str) -> list[tuple[str, str, str]]:
    """Query the configured search engine.

    The engine itself may be on this machine. Redirects to other addresses that are not public are refused.
    """
    from urllib.parse import urlsplit

    from lamella.sources.web import AddressAllowlist, Fetcher, FetchLimits
    from lamella.tools.builtin import search_searx

    settings = services.settings
    limits = FetchLimits(max_bytes=settings.page_bytes, max_seconds=settings.page_seconds)
    host = (urlsplit(address).hostname or "").lower().rstrip(".")
    return search_searx(Fetcher(limits, allowlist=AddressAllowlist(hosts=frozenset({host}))), address, query)


def _read_project(vault: Path) -> "ProjectFolder":
    from lamella.sources.open_sources import read_project  # imported late: few runs work on a project

    return read_project(vault)


def _supports_tools(services: ServiceContainer, model: str) -> bool:
    from lamella.providers.open_provider import supports_tools

    return supports_tools(model, services.models)


def _backup_folder(root: Path, services: ServiceContainer) -> Path:
    """Return the folder for a vault's backups: in the configured folder, or in the system's folder for user data."""
    from lamella.files import resolve_path
    from lamella.retrieval.chunks import vault_key

    given = services.settings.note_backups
    if given:
        return resolve_path(given) / vault_key(root)
    from platformdirs import user_data_path

    return user_data_path("lamella", appauthor=False) / _BACKUPS_FOLDER / vault_key(root)


def _local_now() -> datetime:
    """Return the current time in the time zone of this machine."""
    return SystemClock().now().astimezone()
