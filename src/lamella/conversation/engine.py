"""The engine: opens, lists, searches and manages the conversations of a store.

``Engine`` owns the store, the providers and the worker threads; use it in a ``with`` block. ``StoreSearch`` searches
the active branches of all conversations, including text that is still in prompts.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self, TypeVar

from lamella.attach import Tool
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import EMPTY_RUNNER_CONTEXT, Conversation
from lamella.conversation.import_export import (
    ConversationRepository,
    ImportOutcome,
    MessageHit,
    copy_branch_into_new_conversation,
    copy_store,
)
from lamella.conversation.names import find_tombstone
from lamella.conversation.note_index import NoteIndex
from lamella.conversation.provider_pool import ProviderPool
from lamella.conversation.recall import check_query
from lamella.conversation.runner_context import Runner, RunnerContext, list_runners
from lamella.conversation.sent_turns import iter_request_problems
from lamella.conversation.settings import SYSTEM_PART_SETTINGS
from lamella.conversation.tool_executor import ToolSource
from lamella.conversation.validation import check_text, to_folder_path
from lamella.core.log.branch import branch_content_hashes, read_turns
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import TurnSettings
from lamella.core.log.turn_records import branch_message_ids
from lamella.core.search.index import Passage, PassageIndex, list_passages
from lamella.core.search.recall import RECALL_TOKENS, RecalledMessage, RecallHit, recall_passages
from lamella.core.values import replace as replace_engine
from lamella.errors import ConversationErasedError, NameConflictError, NotAvailableError, StoreCorruptedError
from lamella.ports import Archive, ConversationListItem, Fact, FactKind, Store, StoreProblem, StoreStats, UserMemory

# Separates the key of a conversation from the id of a passage.
_ID_SEPARATOR = "\n"


class StoreSearch:
    """Searches all conversations of a store; the index is kept until one of them changes."""

    def __init__(self, store: Store, *, count: Callable[[str], int]) -> None:
        self._store = store
        self._count = count
        self._indexed_versions: tuple[tuple[str, int], ...] | None = None
        self._index = PassageIndex()
        self._passage_times: dict[str, str | None] = {}
        self._load_error: StoreCorruptedError | None = None

    def search(
        self, query: str, *, limit: int | None = None, max_tokens: int = RECALL_TOKENS
    ) -> Iterator[tuple[ConversationListItem, RecallHit]]:
        """Yield the best matching originals with their conversations, best first, up to ``max_tokens``.

        A damaged conversation does not stop the search: its error is raised after all hits.
        """
        check_query(query, limit, max_tokens)
        listed = {one.conversation: one for one in self._store.list_conversations() if one.erased_at is None}
        self._update_index(list(listed.values()))
        hits = recall_passages(
            self._index, query, count=self._count, limit=limit, max_tokens=max_tokens, conversation_of=_conversation_key
        )
        return self._hits_with_conversation(hits, listed)

    def _hits_with_conversation(
        self, hits: tuple[RecallHit, ...], conversations: dict[str, ConversationListItem]
    ) -> Iterator[tuple[ConversationListItem, RecallHit]]:
        for one in hits:
            found = replace(
                one,
                passage=_without_conversation_key(one.passage),
                at=self._passage_times[one.passage.id],
                before=_message_without_key(one.before),
                after=_message_without_key(one.after),
            )
            yield conversations[_conversation_key(one.passage)], found
        if self._load_error is not None:
            raise self._load_error

    def _update_index(self, conversations: list[ConversationListItem]) -> None:
        """Index every conversation, unless nothing changed since the last search."""
        # Sorted by key and not by last change, so that hits of equal rank always come in the same order.
        seen = tuple(sorted((one.conversation, one.event_count) for one in conversations))
        if seen == self._indexed_versions:
            return
        self._index, self._passage_times, self._load_error = PassageIndex(), {}, None
        for key, _ in seen:
            try:
                self._index_conversation(key)
            except StoreCorruptedError as error:
                self._load_error = self._load_error or error
            except ConversationErasedError:
                # Another process erased it after it was listed.
                continue
        self._indexed_versions = seen

    def _index_conversation(self, key: str) -> None:
        log = FoldedLog(key)
        log.extend(self._store.load(key))
        records = log.branch_records()
        hashes = branch_content_hashes(records)
        contents = self._store.read_contents(key, hashes) if hashes else {}
        path = branch_message_ids(records)
        for passage in list_passages(read_turns(records, contents, defaults=TurnSettings()), path):
            known = _with_conversation_key(passage, key)
            self._index.extend([known])
            node = log.nodes.get(passage.message)
            self._passage_times[known.id] = None if node is None else node.at or None


def _with_conversation_key(passage: Passage, key: str) -> Passage:
    """Return a passage with an id that is unique in the store: two conversations may contain the same note."""
    return replace(passage, id=f"{key}{_ID_SEPARATOR}{passage.id}")


def _without_conversation_key(passage: Passage) -> Passage:
    return replace(passage, id=passage.id.partition(_ID_SEPARATOR)[2])


def _message_without_key(message: RecalledMessage | None) -> RecalledMessage | None:
    return message and replace(message, passage=_without_conversation_key(message.passage))


def _conversation_key(passage: Passage) -> str:
    return passage.id.partition(_ID_SEPARATOR)[0]


# The engine.

# Entries of the shared table that mark archived conversations; they last as long as the store.
_ARCHIVED_PREFIX = "archived:"
_NEVER = datetime(9999, 12, 31, tzinfo=UTC)
StrPath = str | PathLike[str]
_Part = TypeVar("_Part")
# The URL of the in-memory store, and the name of the one conversation in it.
_IN_MEMORY_URL, _TEMPORARY_NAME = "memory:", "chat"


class Engine:
    """A store of conversations; use it in a ``with`` block or call ``close``.

    - ``backend`` is the backend, or a function that opens it. The function is called by ``async with`` or on first use.
    - ``archive`` reads and writes conversations as files.
    - ``open_store`` opens other stores by URL.
    - ``default_settings_for`` returns the default settings for a model.
    - ``restore`` undoes the last change to a note of the vault.
    - ``memory`` opens the user memory, which is shared by conversations.
    - ``remember_tool`` builds the tool by which a model saves a fact.
    """

    def __init__(
        self,
        backend: Backend | Callable[[], Backend],
        pool: ProviderPool,
        *,
        runners: Mapping[str, Runner],
        runner_context: RunnerContext = EMPTY_RUNNER_CONTEXT,
        model: str | None = None,
        summarizer: str | None = None,
        archive: Archive | None = None,
        open_store: Callable[[str], Store] | None = None,
        default_settings: Callable[[str], Mapping[str, object]] | None = None,
        restore_note: Callable[[str | None], tuple[str, bool]] | None = None,
        open_memory: Callable[[], UserMemory] | None = None,
        make_remember_tool: Callable[[], Tool | None] | None = None,
    ) -> None:
        self._backend_or_factory = backend
        self._opening_lock = Lock()
        self._pool = pool
        self._runners = runners
        self._runner_context = runner_context
        self._archive = archive
        self._open_store = open_store
        self._default_settings = default_settings
        self._restore_note = restore_note
        self._open_memory = open_memory
        self._make_remember_tool = make_remember_tool
        given = {"model": model, "summarizer": summarizer}
        self._settings = {name: value for name, value in given.items() if value is not None}
        for value in self._settings.values():
            self._pool.trust_model(value)

    @property
    def _backend(self) -> Backend:
        with self._opening_lock:
            if not isinstance(self._backend_or_factory, Backend):
                self._backend_or_factory = self._backend_or_factory()
            return self._backend_or_factory

    @property
    def _conversations(self) -> ConversationRepository:
        forget = None if self._open_memory is None else lambda chat: self.memory.forget_conversation(chat)
        return ConversationRepository(
            self._backend.store,
            self._backend.clock,
            forget_conversation=forget,
            find_request_problems=partial(iter_request_problems, self._backend),
        )

    def chat(self, conversation_key: str, **settings: object) -> Conversation:
        """Open a conversation by name or key, or create one with that name.

        Settings given here are stored with the conversation and apply from now on.
        """
        name = check_text(conversation_key, "conversation", may_be_empty=False)
        return self._open_conversation(self._backend, name, settings)

    def _open_conversation(self, backend: Backend, name: str, settings: Mapping[str, object]) -> Conversation:
        for one in ("model", "summarizer"):
            given = settings.get(one)
            self._pool.trust_model(check_text(given, one, may_be_empty=False) if isinstance(given, str) else None)
        given_here = {**self._settings, **settings}
        return Conversation.open(
            backend, name, given_here, pool=self._pool, runners=self._runners, runner_context=self._runner_context
        )

    async def conversation(self, conversation_key: str, **settings: object) -> Conversation:
        """Open a conversation like ``chat``, without blocking the event loop while it is read."""
        return await self._pool.workers.run(partial(self.chat, conversation_key, **settings))

    def temporary_conversation(self, **settings: object) -> Conversation:
        """Return a new conversation that is not stored, is lost with the object, and does not use the user memory."""
        store = _require_configured_part(self._open_store, "stores")(_IN_MEMORY_URL)
        return self._open_conversation(
            replace_engine(self._backend, store=store, render_memory=None), _TEMPORARY_NAME, settings
        )

    def find_conversation(self, conversation_key: str) -> ConversationListItem | None:
        """Return the conversation with exactly this name or, failing that, this key; None if there is none."""
        return self._backend.store.find_conversation(check_text(conversation_key, "conversation", may_be_empty=False))

    def create(self, conversation_key: str, *, title: str | None = None, **settings: object) -> Conversation:
        """Create and store a conversation before its first message; raises an error if the name is taken."""
        if self.find_conversation(conversation_key) is not None:
            raise NameConflictError(
                f"There is a conversation {conversation_key!r} already.",
                hint="Choose another name, or go on in that one.",
            )
        chat = self.chat(conversation_key, **settings)
        # Parts of the system prompt that are only passed on opening would be written with the first turn, and a turn
        # that is asked after the conversation was opened again would not have them.
        parts = {name: settings[name] for name in SYSTEM_PART_SETTINGS if settings.get(name) is not None}
        if parts:
            chat.set(**parts)
        if title is not None:
            chat.rename(title)
        if parts or title is None:
            chat.save_settings()
        return chat

    def default_settings_for(self, model: str) -> Mapping[str, object]:
        """Return the default settings for a new conversation with a model, such as its window, by name."""
        return _require_configured_part(self._default_settings, "models")(
            check_text(model, "model", may_be_empty=False)
        )

    def check_model_is_trusted(self, model: str) -> None:
        """Raise an error if a model is named only by untrusted input, such as a request; keys must not go there."""
        self._pool.check_model_is_trusted(check_text(model, "model", may_be_empty=False))

    def runners(self) -> Mapping[str, str]:
        """Return the runners by name, each with a one-sentence description."""
        return list_runners(self._runners)

    def tools(self, conversation: Conversation | None = None) -> Sequence[Tool]:
        """Return the built-in tools of this engine: ``conversation.send(…, tools=engine.tools(chat))``.

        Without a conversation they can be listed but not all of them can be run: recall needs one.
        """
        return self._runner_context.make_tools(None) if conversation is None else conversation.list_builtin_tools()

    def restore(self, note: str | None = None) -> tuple[str, bool]:
        """Undo the last change to a note of the vault, or to any note; return its path and whether it was deleted."""
        restore = _require_configured_part(self._restore_note, "vault")
        return restore(None if note is None else check_text(note, "note", may_be_empty=False))

    @property
    def memory(self) -> UserMemory:
        """Return the user memory, which is shared by conversations; you can read, add and remove facts."""
        return _require_configured_part(self._open_memory, "memory")()

    @property
    def notes(self) -> NoteIndex:
        """Return the searchable notes of the vault; a stored index is updated with each search."""
        return _require_configured_part(self._runner_context.note_index, "vault")

    @property
    def mcp_servers(self) -> ToolSource:
        """Return the configured MCP servers; they are started when their tools are requested."""
        return _require_configured_part(self._runner_context.mcp_servers, "servers")

    @property
    def remember_tool(self) -> Tool:
        """Return the tool by which a model saves a fact after approval: ``chat.send(…, tools=[engine.remember])``."""
        return _require_configured_part(
            _require_configured_part(self._make_remember_tool, "memory")(), "memory that models may write to"
        )

    def save_one_line_summary(self, conversation: str | Conversation) -> Fact:
        """Save a one-line summary of a conversation in the user memory, replacing its previous one."""
        chat = (
            conversation
            if isinstance(conversation, Conversation)
            else self.chat(self.resolve_conversation(conversation).name)
        )
        return self.memory.add(chat.summarize_in_one_line(), kind=FactKind.RECENT, conversation_key=chat.id)[0]

    def chats(self) -> Sequence[ConversationListItem]:
        """Return all conversations, last changed first."""
        return self._conversations.list_conversations()

    def resolve_conversation(self, name_or_key: str) -> ConversationListItem:
        """Return the conversation with this name, key or title, or a unique beginning of one."""
        return self._conversations.resolve_conversation(check_text(name_or_key, "name_or_key", may_be_empty=False))

    def search(self, text: str) -> Iterator[MessageHit]:
        """Yield the messages that contain the words, ignoring case, on every branch of every conversation."""
        return self._conversations.search(check_text(text, "words", may_be_empty=False))

    def recall(
        self, query: str, limit: int | None = None, *, max_tokens: int = RECALL_TOKENS
    ) -> Iterator[tuple[ConversationListItem, RecallHit]]:
        """Search messages, attachments and tool results on the active branch of every conversation.

        Yields the best hits first, each with its conversation; together they have ``max_tokens`` tokens. Unlike
        ``recall`` of a conversation it also finds text that is still in a prompt.
        """
        return self._store_search.search(check_text(query, "query"), limit=limit, max_tokens=max_tokens)

    @cached_property
    def _store_search(self) -> StoreSearch:
        return StoreSearch(self._backend.store, count=self._backend.adapters.counter.get_tokenizer(None).count)

    def set_archived(self, conversation: str | Conversation, *, archived: bool = True) -> None:
        """Archive a conversation, so that lists leave it out, or take it back; its events do not change.

        The mark belongs to this store: copies and exports do not have it.
        """
        name, table = f"{_ARCHIVED_PREFIX}{self._conversation_key(conversation)}", self._backend.store.shared_table
        if archived:
            table.set(name, "", at=self._backend.clock.now(), expires_at=_NEVER)
        else:
            table.remove(name)

    def list_archived_keys(self, conversations: Iterable[ConversationListItem]) -> frozenset[str]:
        """Return the keys of those of these conversations that are archived."""
        names = [f"{_ARCHIVED_PREFIX}{one.conversation}" for one in conversations]
        found = self._backend.store.shared_table.get_many(*names, at=self._backend.clock.now()) if names else ()
        return frozenset(name.removeprefix(_ARCHIVED_PREFIX) for name in found)

    def rename(self, conversation: str | Conversation, title: str) -> None:
        """Give a conversation a title."""
        self._conversations.rename(self._conversation_key(conversation), check_text(title, "title"))

    def fork(self, conversation: str | Conversation, message: str, name: str) -> Conversation:
        """Create a conversation that continues from a message of another one, which stays unchanged."""
        named = check_text(name, "name", may_be_empty=False)
        copy_branch_into_new_conversation(
            self._backend, self._conversation_key(conversation), check_text(message, "message"), name=named
        )
        return self.chat(named)

    def export_archive(
        self, conversation: str | Conversation, folder: StrPath, *, vault: StrPath | None = None
    ) -> Path:
        """Write a conversation as Markdown into a folder; writing it again updates the same file.

        Texts that are unchanged in ``vault`` are referenced and not copied. Without a vault all texts are included.
        """
        archive, to = _require_configured_part(self._archive, "archives"), to_folder_path(folder)
        assert to is not None
        return archive.save(
            self._conversations.export_conversation(self._conversation_key(conversation)),
            to,
            vault=to_folder_path(vault),
        )

    def import_archive(
        self, file: StrPath, *, vault: StrPath | None = None
    ) -> tuple[Conversation, ImportOutcome, Sequence[str]]:
        """Import an archived conversation; return it with the outcome and any warnings.

        A conversation that exists already is extended, not duplicated.
        """
        archive, path = _require_configured_part(self._archive, "archives"), to_folder_path(file)
        assert path is not None
        export = archive.load(
            path,
            vault=to_folder_path(vault),
            read_contents=self._conversations.read_contents,
            is_erased=self._conversations.is_erased,
        )
        warnings = (*export.warnings, *self._conversations.list_import_warnings(export))
        taken = self._conversations.import_conversation(export)
        return self.chat(self._conversations.conversation_name(export.conversation_key)), taken, warnings

    def copy_to(self, url: str) -> Sequence[tuple[str, str]]:
        """Copy every conversation into the store at a URL; safe to repeat.

        Returns the name of each conversation and the outcome: new, extended, same, older, diverged, damaged or erased.
        """
        target = _require_configured_part(self._open_store, "stores")(check_text(url, "url", may_be_empty=False))
        try:
            return list(copy_store(self._backend.store, target, self._backend.clock))
        finally:
            target.close()

    def verify(self, conversation: str | Conversation | None = None) -> Iterator[StoreProblem]:
        """Check every hash and id of one conversation or of all, and yield the problems."""
        return self._conversations.verify(None if conversation is None else self._conversation_key(conversation))

    def repair(self, conversation: str | Conversation | None = None) -> Sequence[str]:
        """Rebuild damaged data that can be derived from events; return the ids of the repaired conversations."""
        return self._conversations.repair(list(self.verify(conversation)))

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield what is left of an erased conversation, or of erased artifacts in an existing one."""
        words = check_text(conversation_key, "conversation", may_be_empty=False)
        return self._conversations.verify_erased(self._conversations.resolve_erased_key(words))

    def stats(self) -> StoreStats:
        """Return the size of the store."""
        return self._conversations.stats()

    def erase(self, conversation: str | Conversation) -> None:
        """Delete the content of a conversation and everything derived from it, permanently."""
        self._conversations.erase(self._conversation_key(conversation, erased=True))

    def erase_artifact(self, conversation: str | Conversation, artifact: str) -> int:
        """Delete all versions of an artifact from a conversation permanently; return how many contents went."""
        return self._conversations.erase_artifact(
            self._conversation_key(conversation), check_text(artifact, "artifact")
        )

    def _conversation_key(self, conversation: str | Conversation, *, erased: bool = False) -> str:
        """Return the key of a conversation by name or key; with ``erased``, also that of an erased one."""
        if isinstance(conversation, Conversation):
            return conversation.id
        name = check_text(conversation, "conversation", may_be_empty=False)
        found = self._backend.store.find_conversation(name)
        if found is None and erased:
            found = find_tombstone(self._backend.store, name)
        return name if found is None else found.conversation

    def close(self) -> None:
        """Close the store after all pending writes."""
        # The workers go first: they may still write to the store.
        self._pool.workers.close()
        if self._runner_context.mcp_servers is not None:
            self._runner_context.mcp_servers.close()
        if self._runner_context.note_index is not None:
            self._runner_context.note_index.close()
        if isinstance(self._backend_or_factory, Backend):
            self._backend_or_factory.store.close()

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


def _require_configured_part(part: _Part | None, description: str) -> _Part:
    """Return an optional part of the engine; raises an error if this engine does not have it."""
    if part is None:
        raise NotAvailableError(f"This engine knows no {description}.", hint="Open one with lamella.open(…).")
    return part
