"""A store in memory, for tests and for conversations without a file.

It behaves as the other stores do, except that nothing is durable.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.text.content import Contents, encode_text, hash_bytes, unencoded_contents
from lamella.core.values import replace
from lamella.errors import ConflictError
from lamella.ports import Checkpoint, ConversationListItem, StoreProblem, StoreStats
from lamella.stores.hash_chain import (
    EMPTY_HASH,
    chain_hashes,
    check_batch,
    check_contents,
    check_erasure_listed,
    check_hashes_known,
    check_name,
    check_not_erased,
    clean_title,
    erased_hashes,
)
from lamella.stores.sharing import InMemorySharedTable
from lamella.stores.sql_schema import Result, load_migrations


@dataclass(slots=True, kw_only=True)
class _StoredConversation:
    """One conversation, or its tombstone if ``erased`` is set; ``content_hashes`` are the contents it uses."""

    name: str
    created: str
    updated: str
    title: str = ""
    erased: str | None = None
    records: list[EventRecord] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    content_hashes: set[str] = field(default_factory=set)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)


class InMemoryStore:
    """A store that keeps conversations in this process's memory, safe for threads."""

    def __init__(self) -> None:
        self._stored: dict[str, _StoredConversation] = {}
        # Texts stay the objects that they came as, which the artifacts of an open conversation have too.
        self._stored_contents: dict[str, str | bytes] = {}
        self._contents = Contents(self._stored_contents)
        self._lock = RLock()
        self.shared_table = InMemorySharedTable()

    def append(
        self,
        conversation_key: str,
        batch: EventBatch,
        *,
        expected: int,
        title: str | None = None,
        name: str | None = None,
    ) -> int:
        """Append events after exactly ``expected`` events and return the new number of events."""
        if name is not None:
            check_name(name)
        check_batch(conversation_key, batch)
        with self._lock:
            kept = self._stored.get(conversation_key) or self._create_conversation(
                name or conversation_key, batch, expected=expected
            )
            check_not_erased(name or conversation_key, kept.erased)
            if len(kept.records) != expected:
                raise ConflictError(
                    conversation_key=name or conversation_key, expected=expected, found=len(kept.records)
                )
            return self._append_to_conversation(conversation_key, kept, batch, title=title)

    def _create_conversation(self, name: str, batch: EventBatch, *, expected: int) -> _StoredConversation:
        """Return an empty conversation; raises ``ConflictError`` if another one has the name."""
        at, other = batch.records[0].at, self._key_of_name(name)
        if other is not None and expected == 0:
            raise ConflictError(conversation_key=name, expected=0, found=len(self._stored[other].records))
        return _StoredConversation(name=name, created=at, updated=at)

    def _key_of_name(self, name: str) -> str | None:
        """Return the key of the conversation with this name that is not erased, or None."""
        return next((key for key, kept in self._stored.items() if kept.name == name and kept.erased is None), None)

    def _append_to_conversation(
        self, conversation_key: str, conversation: _StoredConversation, batch: EventBatch, *, title: str | None
    ) -> int:
        expected = len(conversation.records)
        # All checks come before the first change, so that an error leaves the conversation as it was.
        named = {name for record in batch.records for name in record.contents}
        if missing := named - conversation.content_hashes - set(batch.contents):
            check_hashes_known(missing, erased_hashes([*conversation.records, *batch.records]))
        check_contents({name: data for name, data in batch.contents.items() if name not in self._contents})
        previous = conversation.hashes[-1] if conversation.hashes else EMPTY_HASH
        hashes = chain_hashes(previous, conversation_key, after=expected, records=batch.records)
        conversation.title = conversation.title if title is None else clean_title(title)
        conversation.updated = batch.records[-1].at
        conversation.hashes += hashes
        conversation.records += batch.records
        conversation.content_hashes |= set(batch.contents)
        for name, content in unencoded_contents(batch.contents).items():
            self._stored_contents.setdefault(name, content)
        self._stored[conversation_key] = conversation
        if erased := erased_hashes(batch.records).difference(batch.contents):
            conversation.content_hashes -= erased
            # All counts go, because it is unknown which of them came from erased contents.
            conversation.records = [replace(record, counts=b"") for record in conversation.records]
            conversation.checkpoints = {}
            self.shared_table.remove_entries_about_conversation(conversation_key)
            self._remove_unused_contents(erased)
        return len(conversation.records)

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        """Return the events after a number of events, in order."""
        check_name(conversation_key)
        with self._lock:
            kept = self._stored.get(conversation_key)
            if kept is None:
                return ()
            check_not_erased(conversation_key, kept.erased)
            return tuple(kept.records[after:])

    def save_checkpoint(
        self, conversation_key: str, checkpoint: Checkpoint, *, replaced_versions: Collection[int] = ()
    ) -> bool:
        """Save a checkpoint of all events so far; return False, without saving, if there are other events by now."""
        check_name(conversation_key)
        with self._lock:
            kept = self._stored.get(conversation_key)
            if kept is None or kept.erased is not None or len(kept.records) != checkpoint.version:
                return False
            for version in replaced_versions:
                kept.checkpoints.pop(version, None)
            before = {one.version: one for one in checkpoint.earlier if one.version in kept.checkpoints}
            kept.checkpoints |= {**before, checkpoint.version: replace(checkpoint, earlier=())}
            return True

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        """Return the result of ``decode`` for each checkpoint, oldest first."""
        check_name(conversation_key)
        with self._lock:
            kept = self._stored.get(conversation_key)
            found = tuple(kept.checkpoints.values()) if kept else ()
        return [decode(one if with_separate_data else replace(one, separate_data=b"")) for one in found]

    def read_contents(self, conversation_key: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Return the contents of this conversation by hash; others are left out."""
        check_name(conversation_key)
        with self._lock:
            kept = self._stored.get(conversation_key)
            readable = kept.content_hashes if kept else set[str]()
            return {name: self._contents[name] for name in dict.fromkeys(hashes) if name in readable}

    def list_conversations(self) -> Sequence[ConversationListItem]:
        """Return every conversation, the last changed first; erased ones as tombstones."""
        with self._lock:
            # Sorted by UTF-8 bytes first, as SQL stores order keys, so that equal times give the same order.
            listed = [_to_summary(key, self._stored[key]) for key in sorted(self._stored, key=encode_text)]
        return sorted(listed, key=lambda one: one.updated, reverse=True)

    def find_conversation(self, name_or_key: str) -> ConversationListItem | None:
        """Return the conversation of that name, or else of that key; None if there is none or it was erased."""
        check_name(name_or_key)
        with self._lock:
            key = self._key_of_name(name_or_key) or name_or_key
            kept = self._stored.get(key)
            return None if kept is None or kept.erased is not None else _to_summary(key, kept)

    def erase_conversation(self, conversation_key: str, *, at: str) -> None:
        """Remove a conversation and leave a tombstone, also for one that does not exist."""
        check_name(conversation_key)
        with self._lock:
            kept = self._stored.get(conversation_key) or _StoredConversation(
                name=conversation_key, created=at, updated=at
            )
            if kept.erased is None:
                self._stored[conversation_key] = _StoredConversation(
                    name=kept.name, created=kept.created, updated=at, erased=at
                )
                self._remove_unused_contents(kept.content_hashes)
                self.shared_table.remove_entries_about_conversation(conversation_key)

    def erase_contents(self, conversation_key: str, hashes: Sequence[str], batch: EventBatch, *, expected: int) -> int:
        """Remove contents, with an erasure event that lists them all."""
        check_erasure_listed(hashes, batch)
        return self.append(conversation_key, batch, expected=expected)

    def _remove_unused_contents(self, hashes: set[str]) -> None:
        """Remove those of the contents that no conversation uses any more."""
        used_hashes = set[str]().union(*(kept.content_hashes for kept in self._stored.values()))
        for name in hashes - used_hashes:
            self._stored_contents.pop(name, None)

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Recompute every hash and yield each problem; memory is damaged only if other code changes its data."""
        with self._lock:
            names = list(self._stored) if conversation_key is None else [conversation_key]
            damages = [damage for name in names for damage in self._verify_conversation(name)]
        yield from damages

    def _verify_conversation(self, conversation_key: str) -> Iterator[StoreProblem]:
        kept = self._stored.get(conversation_key)
        if kept is None:
            yield StoreProblem(
                conversation=conversation_key, location="conversation", description="is not in this store"
            )
            return
        derived = chain_hashes(EMPTY_HASH, conversation_key, after=0, records=kept.records)
        for seq, (stored, true) in enumerate(zip(kept.hashes, derived, strict=True), start=1):
            if stored != true:
                what = f"has the hash {stored}, but its content has {true}"
                yield StoreProblem(conversation=conversation_key, location=f"event {seq}", description=what)
        for name in sorted(kept.content_hashes):
            if hash_bytes(self._contents[name]) != name:
                yield StoreProblem(
                    conversation=conversation_key, location=f"content {name}", description="has another hash"
                )

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield a problem if the conversation was not erased."""
        kept = self._stored.get(conversation_key)
        if kept is None or kept.erased is None:
            yield StoreProblem(
                conversation=conversation_key, location="conversation", description="was not erased from this store"
            )

    def rebuild_list_row(self, conversation_key: str, get_title: Callable[[Sequence[EventRecord]], str]) -> None:
        """Rebuild a conversation's title and times from its events."""
        with self._lock:
            kept = self._stored.get(conversation_key)
            if kept is not None and kept.records:
                kept.created, kept.updated = kept.records[0].at, kept.records[-1].at
                kept.title = clean_title(get_title(kept.records))

    def stats(self) -> StoreStats:
        with self._lock:
            erased = sum(kept.erased is not None for kept in self._stored.values())
            return StoreStats(
                schema=len(load_migrations("sqlite")),
                conversations=len(self._stored) - erased,
                erased=erased,
                events=sum(len(kept.records) for kept in self._stored.values()),
                contents=len(self._contents),
                content_bytes=sum(map(len, self._contents.values())),
            )

    def close(self) -> None:
        """Do nothing: there are no connections to close."""


def _to_summary(key: str, conversation: _StoredConversation) -> ConversationListItem:
    return ConversationListItem(
        conversation=key,
        name=conversation.name,
        title=conversation.title,
        created=conversation.created,
        updated=conversation.updated,
        event_count=len(conversation.records),
        erased_at=conversation.erased,
    )
