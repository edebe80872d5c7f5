"""Workplaces: what runners find where they work: the tools that are there, the notes of the vault, what models can."""

from asyncio import Lock
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.clocks.system import SystemClock
from lamella.engine.sending.job import Workplace
from lamella.settings.meaning import find_write_rule
from lamella.settings.values import WriteRule
from lamella.wiring.running.mcp import open_servers
from lamella.wiring.services import Services
from lamella.wiring.trust import find_search

if TYPE_CHECKING:
    from lamella.adapters.sources.vault import Vault
    from lamella.adapters.tools.memory import MemoryPermit
    from lamella.adapters.tools.writing import WritePermit
    from lamella.adapters.writing.writer import NoteWriter
    from lamella.attach import Tool
    from lamella.engine.notes import NoteIndex
    from lamella.engine.sending.sending import SendingChat
    from lamella.holdings import Fact, ProjectFolder
    from lamella.ports import AllowWrite, MemoryBook

    OpenBook = Callable[[], MemoryBook]

_BACKUPS = "backups"
# What only the user says of writing; a conversation refuses these as well, and more.
OWN = ("note_writes", "note_backups", "memory_writes")


def _tell_nobody(_fact: "Fact") -> None:
    return None


def open_workplace(
    services: Services,
    *,
    vault: Path | None = None,
    allow: "AllowWrite | None" = None,
    book: "OpenBook | None" = None,
    told: "Callable[[Fact], object]" = _tell_nobody,
) -> Workplace:
    """Where runners work, over the notes of a vault if there is one. What nobody uses is not opened.

    ``allow`` is asked before a note is written, or a fact into the memory that ``book`` opens; without it none is,
    unless the user's own settings allow it. Who talks is ``told`` of each fact. A search engine that only a project's
    file names is refused here.
    """
    _check_own(services)
    find_search(services)
    maker = ToolMaker(services, vault=vault, allow=allow, book=book, told=told)
    return Workplace(
        make_tools=maker.make,
        notes=maker.notes,
        calls_tools=partial(_calls_tools, services),
        look_at_project=None if vault is None else partial(_look_at, vault),
        writes=maker.find_rule(None) is not WriteRule.OFF,
        servers=open_servers(services),
        save=maker.make_save(),
    )


def make_remember(services: Services, *, allow: "AllowWrite | None", book: "OpenBook") -> "Tool | None":
    """The tool by which a model notes a fact, whichever conversations have the memory; none where settings say so."""
    from lamella.adapters.tools.memory import make_remember_tool

    permit = ToolMaker(services, vault=None, allow=allow, book=book).make_memory_permit(None, Lock())
    return None if permit is None else make_remember_tool(permit)


def open_writer(vault: Path, services: Services) -> "NoteWriter":
    """What writes the notes of a vault, and takes back what it wrote."""
    from lamella.adapters.sources.vault import Vault
    from lamella.adapters.writing.backups import BackupFolder
    from lamella.adapters.writing.writer import NoteWriter

    _check_own(services)
    # Whether there is such a folder is told as it is everywhere.
    Vault(vault)
    root = vault.resolve()
    return NoteWriter(root, backups=lambda: BackupFolder(_place_backups(root, services)), now=_tell_now)


def _check_own(services: Services) -> None:
    """Refuses what somebody else's project says about writing, whichever way this was come to."""
    for overreach in services.found.find_overreach(OWN):
        raise overreach


class ToolMaker:
    """Makes the tools of a job. The vault and the index that they share are opened by whoever needs them first."""

    def __init__(
        self,
        services: Services,
        *,
        vault: Path | None,
        allow: "AllowWrite | None",
        book: "OpenBook | None",
        told: "Callable[[Fact], object]" = _tell_nobody,
    ) -> None:
        self._services = services
        self._root = vault
        self._allow = allow
        self._book = book
        self._told = told

    def make(self, chat: "SendingChat | None") -> "Sequence[Tool]":
        """The tools that are there for a conversation; without one they are told of, and there is none to recall."""
        from lamella.adapters.tools.registry import Equipment, make_tools

        address = find_search(self._services)
        # One person reads one question at a time, whatever it is about.
        turn = Lock()
        return make_tools(
            Equipment(
                now=_tell_now,
                vault=self._vault,
                notes=self.notes,
                conversions=lambda: self._services.conversions,
                search=None if address is None else partial(_search, self._services, address),
                recall=_make_recall(chat),
                compact=_make_compact(chat),
                memory=self.make_memory_permit(chat, turn),
                permit=self._make_permit(chat, turn),
            )
        )

    def find_rule(self, chat: "SendingChat | None", name: str = "note_writes") -> WriteRule:
        """Whether models write, as the user's own settings say. A conversation may be stricter, never laxer."""
        if (self._root if name == "note_writes" else self._book) is None:
            return WriteRule.OFF
        own = find_write_rule(self._services.settings, name)
        written = None if chat is None else chat.settings.get(name)
        known = isinstance(written, str) and written in list(WriteRule)
        return max(own, WriteRule(str(written)), key=list(WriteRule).index) if known else own

    def make_save(self) -> "Tool | None":
        """The tool by which the user's own word has a fact saved, which needs no other yes."""
        if self._book is None:
            return None
        from lamella.adapters.tools.memory import MemoryPermit, make_remember_tool
        from lamella.holdings import FactKind

        permit = MemoryPermit(open_book=self._book, asks=False, kind=FactKind.SAVED, told=self._told)
        return make_remember_tool(permit)

    def make_memory_permit(self, chat: "SendingChat | None", turn: Lock) -> "MemoryPermit | None":
        """Who says yes to what a model would have remembered; none where nothing is."""
        rule = self.find_rule(chat, "memory_writes")
        if rule is WriteRule.OFF or self._book is None:
            return None
        from lamella.adapters.tools.memory import MemoryPermit

        asks = rule is WriteRule.ASK
        return MemoryPermit(open_book=self._book, allow=self._allow, asks=asks, told=self._told, turn=turn)

    @cached_property
    def notes(self) -> "NoteIndex | None":
        if self._root is None:
            return None
        from lamella.wiring.retrieval import defer_notes

        return defer_notes(self._root, services=self._services)

    @cached_property
    def _vault(self) -> "Vault | None":
        if self._root is None:
            return None
        from lamella.adapters.sources.vault import Vault

        return Vault(self._root, lambda: self._services.conversions, today=lambda: _tell_now().date())

    def _make_permit(self, chat: "SendingChat | None", turn: Lock) -> "WritePermit | None":
        rule = self.find_rule(chat)
        if rule is WriteRule.OFF or self._root is None:
            return None
        from lamella.adapters.tools.writing import WritePermit

        return WritePermit(writer=self._writer, allow=self._allow, asks=rule is WriteRule.ASK, turn=turn)

    @cached_property
    def _writer(self) -> "NoteWriter":
        # One for all turns: what was read in one is not written over in the next after somebody changed it.
        assert self._root is not None, "without a vault nothing is written"
        return open_writer(self._root, self._services)


def _make_recall(chat: "SendingChat | None") -> "Tool":
    from lamella.engine.dialogue.recalling import fit_answer, make_recall_tool

    if chat is None:
        return replace(make_recall_tool(lambda _query, _limit: ()), run=None)
    return make_recall_tool(
        lambda query, limit: chat.recall(query, limit=limit),
        room=lambda: fit_answer(chat.standing[1].tool_output),
    )


def _make_compact(chat: "SendingChat | None") -> "Tool":
    from lamella.engine.dialogue.recalling import make_compact_tool

    if chat is None:
        return replace(make_compact_tool(lambda: None), run=None)
    return make_compact_tool(chat.make_room)


def _search(services: Services, address: str, query: str) -> list[tuple[str, str, str]]:
    """Ask the search engine: where the user says, also on this machine; it leads nowhere else that is not public."""
    from urllib.parse import urlsplit

    from lamella.adapters.sources.web.addresses import Admission
    from lamella.adapters.sources.web.fetching import Fetcher, FetchLimits
    from lamella.adapters.tools.web import search_searx

    settings = services.settings
    limits = FetchLimits(size=settings.page_bytes, seconds=settings.page_seconds)
    host = (urlsplit(address).hostname or "").lower().rstrip(".")
    return search_searx(Fetcher(limits, admission=Admission(hosts=frozenset({host}))), address, query)


def _look_at(vault: Path) -> "ProjectFolder":
    from lamella.adapters.sources.project import look_at_project  # only those who work on one need it

    return look_at_project(vault)


def _calls_tools(services: Services, model: str) -> bool:
    from lamella.adapters.providers.places import calls_tools

    return calls_tools(model, services.models)


def _place_backups(root: Path, services: Services) -> Path:
    """The folder of a vault's backups: in the one that is set, or in what the system keeps for a user's data."""
    from lamella.adapters.files.naming import find_real
    from lamella.adapters.retrieval.placing import name_vault

    given = services.settings.note_backups
    if given:
        return find_real(given) / name_vault(root)
    from platformdirs import user_data_path

    return user_data_path("lamella", appauthor=False) / _BACKUPS / name_vault(root)


def _tell_now() -> datetime:
    """This moment where this machine stands."""
    return SystemClock().now().astimezone()
