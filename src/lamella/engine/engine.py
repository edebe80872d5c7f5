"""The engine: conversations that last, behind one object."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from lamella.attach import Tool
from lamella.core.search.finding import Found
from lamella.core.values import replace
from lamella.engine.chat import NO_PLACE, Chat
from lamella.engine.checks import check_folder, check_text
from lamella.engine.dialogue.recalling import FOUND_AT_MOST
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.conversations import Conversations, Hit, ImportOutcome
from lamella.engine.keeping.copying import copy_store
from lamella.engine.keeping.forking import fork_into
from lamella.engine.keeping.names import find_erased
from lamella.engine.keeping.originals.everywhere import StoreRecaller
from lamella.engine.notes import NoteIndex
from lamella.engine.sending.job import Runner, Workplace, list_runners
from lamella.engine.sending.pool import ProviderPool
from lamella.engine.sending.tools import ToolSource
from lamella.errors import NotAvailableError
from lamella.holdings import ChatListing, Damage, Fact, FactKind, StoreStats
from lamella.ports import Archive, MemoryBook, Store
from lamella.refusals import NameTakenError

Place = str | PathLike[str]
_Part = TypeVar("_Part")
# The store that forgets everything, and what its one conversation is called.
_NOWHERE, _PASSING = "memory:", "chat"


class Engine:
    """A store of conversations. Use it in a ``with`` block, or close it.

    ``archive`` reads and writes files, ``open_store`` opens other stores, and ``fit`` knows what suits a model. A
    backend that is yet to be opened is opened by ``async with``, or when it is first needed. ``memory`` opens what is
    remembered beyond one conversation.
    """

    def __init__(
        self,
        backend: Backend | Callable[[], Backend],
        pool: ProviderPool,
        *,
        runners: Mapping[str, Runner],
        place: Workplace = NO_PLACE,
        model: str | None = None,
        summarizer: str | None = None,
        archive: Archive | None = None,
        open_store: Callable[[str], Store] | None = None,
        fit: Callable[[str], Mapping[str, object]] | None = None,
        restore: Callable[[str | None], tuple[str, bool]] | None = None,
        memory: Callable[[], MemoryBook] | None = None,
        remember: Callable[[], Tool | None] | None = None,
    ) -> None:
        self._given = backend
        self._opening = Lock()
        self._pool = pool
        self._runners = runners
        self._place = place
        self._archive = archive
        self._open_store = open_store
        self._fit = fit
        self._restore = restore
        self._open_memory = memory
        self._make_remember = remember
        given = {"model": model, "summarizer": summarizer}
        self._settings = {name: value for name, value in given.items() if value is not None}
        for value in self._settings.values():
            self._pool.name(value)

    @property
    def _backend(self) -> Backend:
        with self._opening:
            if not isinstance(self._given, Backend):
                self._given = self._given()
            return self._given

    @property
    def _conversations(self) -> Conversations:
        forget = None if self._open_memory is None else lambda chat: self.memory.forget(chat)
        return Conversations(self._backend.store, self._backend.clock, forget=forget)

    def chat(self, conversation: str, **settings: object) -> Chat:
        """A conversation by its name or key, as it was left, or a new one of that name.

        Settings given here are written down and hold from now on.
        """
        name = check_text(conversation, "conversation", may_be_empty=False)
        return self._open(self._backend, name, settings)

    def _open(self, backend: Backend, name: str, settings: Mapping[str, object]) -> Chat:
        for one in ("model", "summarizer"):
            given = settings.get(one)
            self._pool.name(check_text(given, one, may_be_empty=False) if isinstance(given, str) else None)
        given_here = {**self._settings, **settings}
        return Chat(backend, name, given_here, pool=self._pool, runners=self._runners, place=self._place)

    async def conversation(self, conversation: str, **settings: object) -> Chat:
        """The same, for programs that send: the loop goes on while it is read."""
        return await self._pool.workers.run(partial(self.chat, conversation, **settings))

    def unkept(self, **settings: object) -> Chat:
        """A new conversation that nobody keeps: it is gone with the object, and takes up no memory."""
        store = _there(self._open_store, "stores")(_NOWHERE)
        return self._open(replace(self._backend, store=store, memory=None), _PASSING, settings)

    def look_up(self, conversation: str) -> ChatListing | None:
        """The conversation of exactly this name, else of this key; none where there is none."""
        return self._backend.store.find_conversation(check_text(conversation, "conversation", may_be_empty=False))

    def begin(self, conversation: str, *, title: str | None = None, **settings: object) -> Chat:
        """A new conversation, written down before anything is said in it; an error if there is one of that name."""
        if self.look_up(conversation) is not None:
            raise NameTakenError(
                f"There is a conversation {conversation!r} already.", hint="Choose another name, or go on in that one."
            )
        chat = self.chat(conversation, **settings)
        if title is None:
            chat.keep()
        else:
            chat.rename(title)
        return chat

    def fit(self, model: str) -> Mapping[str, object]:
        """What suits a conversation that begins with a model, where nobody set it, such as its window, by name."""
        return _there(self._fit, "models")(check_text(model, "model", may_be_empty=False))

    def check_model(self, model: str) -> None:
        """Refuse a model that only somebody else's words name, such as a request: keys may not go where it stands."""
        self._pool.check(check_text(model, "model", may_be_empty=False))

    def runners(self) -> Mapping[str, str]:
        """The ways of answering by their names, each with what it does in a sentence."""
        return list_runners(self._runners)

    def tools(self, chat: Chat | None = None) -> Sequence[Tool]:
        """The tools that come with this engine, by their names: ``chat.send(…, tools=engine.tools(chat))``.

        Without a chat they are there to be looked at: what recalls reads one.
        """
        return self._place.make_tools(None) if chat is None else chat.make_tools()

    def restore(self, note: str | None = None) -> tuple[str, bool]:
        """Take back the last change that was written to a note of the vault, or to any: its path, and if it is gone."""
        restore = _there(self._restore, "vault")
        return restore(None if note is None else check_text(note, "note", may_be_empty=False))

    @property
    def memory(self) -> MemoryBook:
        """What is remembered beyond one conversation: read it, add to it, take out of it."""
        return _there(self._open_memory, "memory")()

    @property
    def notes(self) -> NoteIndex:
        """The notes of the vault, to be searched; an index that lasts is brought up to date when they are."""
        return _there(self._place.notes, "vault")

    @property
    def servers(self) -> ToolSource:
        """The MCP servers that settings name: their tools, from servers that are started when they are wanted."""
        return _there(self._place.servers, "servers")

    @property
    def remember(self) -> Tool:
        """The tool by which a model notes a fact, after a yes: ``chat.send(…, tools=[engine.remember])``."""
        return _there(_there(self._make_remember, "memory")(), "memory that models may write to")

    def keep_recent(self, conversation: str | Chat) -> Fact:
        """Remember what a conversation was about, on one line; it replaces the line that told of it before."""
        chat = conversation if isinstance(conversation, Chat) else self.chat(self.find(conversation).name)
        return self.memory.add(chat.tell_talk(), kind=FactKind.RECENT, chat=chat.id)[0]

    def chats(self) -> Sequence[ChatListing]:
        """Every conversation, the last changed first."""
        return self._conversations.list_alive()

    def find(self, words: str) -> ChatListing:
        """The conversation that is meant: by its name, key or title, or by a beginning that no other has."""
        return self._conversations.find(check_text(words, "words", may_be_empty=False))

    def search(self, words: str) -> Iterator[Hit]:
        """Every message of every branch of every conversation that holds the words, whatever their case."""
        return self._conversations.search(check_text(words, "words", may_be_empty=False))

    def recall(self, query: str, limit: int = FOUND_AT_MOST) -> Iterator[tuple[ChatListing, Found]]:
        """Messages, attachments and tool results of every conversation, on its active branch, best first, with where.

        Unlike a chat's own recall it finds what still stands in a prompt as well: nobody here reads one.
        """
        return self._originals.find(check_text(query, "query"), limit=limit)

    @cached_property
    def _originals(self) -> StoreRecaller:
        return StoreRecaller(self._backend.store)

    def rename(self, conversation: str | Chat, title: str) -> None:
        """Give a conversation a title."""
        self._conversations.rename(self._key(conversation), check_text(title, "title"))

    def fork(self, conversation: str | Chat, message: str, name: str) -> Chat:
        """A new conversation that goes on from a message of another; that one stays as it is."""
        named = check_text(name, "name", may_be_empty=False)
        fork_into(self._backend, self._key(conversation), check_text(message, "message"), name=named)
        return self.chat(named)

    def export_archive(self, conversation: str | Chat, folder: Place, *, vault: Place | None = None) -> Path:
        """Write a conversation as markdown into a folder; writing it again updates the same file.

        What the vault has just as it was is left to be read from it; without one every text rides.
        """
        archive, to = _there(self._archive, "archives"), check_folder(folder)
        assert to is not None
        return archive.save(self._conversations.take_out(self._key(conversation)), to, vault=check_folder(vault))

    def import_archive(self, file: Place, *, vault: Place | None = None) -> tuple[Chat, ImportOutcome, Sequence[str]]:
        """Bring an archived conversation in: the chat, what became of it here, and what was not as it should be.

        One that is there already is extended, never doubled.
        """
        archive, path = _there(self._archive, "archives"), check_folder(file)
        assert path is not None
        chronicle = archive.load(path, vault=check_folder(vault), held=self._conversations.read_contents)
        taken = self._conversations.take_in(chronicle)
        return self.chat(self._conversations.name_of(chronicle.conversation)), taken, chronicle.warnings

    def copy_to(self, url: str) -> Iterator[tuple[str, str]]:
        """Copy every conversation into the store at a URL: each with what became of it there. Repeating it is safe."""
        target = _there(self._open_store, "stores")(check_text(url, "url", may_be_empty=False))
        try:
            yield from copy_store(self._backend.store, target, self._backend.clock)
        finally:
            target.close()

    def verify(self, conversation: str | Chat | None = None) -> Iterator[Damage]:
        """Every hash and id derived again, of one conversation or of all: what is not as it was written."""
        return self._conversations.verify(None if conversation is None else self._key(conversation))

    def repair(self, conversation: str | Chat | None = None) -> Sequence[str]:
        """Derive again what is damaged and follows from events; the ids of the conversations that were repaired."""
        return self._conversations.repair(list(self.verify(conversation)))

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation, or of what was erased in one that goes on."""
        words = check_text(conversation, "conversation", may_be_empty=False)
        return self._conversations.verify_erased(self._conversations.find_erased(words))

    def stats(self) -> StoreStats:
        """How much the store holds."""
        return self._conversations.stats()

    def erase(self, conversation: str | Chat) -> None:
        """Remove a conversation's content and all that was derived from it, for good."""
        self._conversations.erase(self._key(conversation, erased=True))

    def erase_artifact(self, conversation: str | Chat, artifact: str) -> int:
        """Remove an artifact from a conversation for good, in all its versions; says how many contents went."""
        return self._conversations.erase_artifact(self._key(conversation), check_text(artifact, "artifact"))

    def _key(self, conversation: str | Chat, *, erased: bool = False) -> str:
        """The key of a conversation by its name or key, of one that may be ``erased`` also by that of its tombstone."""
        if isinstance(conversation, Chat):
            return conversation.id
        name = check_text(conversation, "conversation", may_be_empty=False)
        found = self._backend.store.find_conversation(name)
        if found is None and erased:
            found = find_erased(self._backend.store, name)
        return name if found is None else found.conversation

    def close(self) -> None:
        """Close the store, once everything that is being written is written."""
        self._pool.workers.close()
        if self._place.servers is not None:
            self._place.servers.close()
        if self._place.notes is not None:
            self._place.notes.close()
        if isinstance(self._given, Backend):
            self._given.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._pool.workers.run(lambda: self._backend)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._pool.close()
        finally:
            await asyncio.to_thread(self.close)


def _there(part: _Part | None, what: str) -> _Part:
    """A part that an engine may be without."""
    if part is None:
        raise NotAvailableError(f"This engine knows no {what}.", hint="Open one with lamella.open(…).")
    return part
