"""A store in memory: the same promises except to last. For tests, and for conversations that need no file."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock

from lamella.adapters.stores.chain import (
    FIRST,
    check_contents,
    check_known,
    check_name,
    check_named,
    check_written,
    clean_title,
    find_erased,
    link_all,
    refuse_erased,
)
from lamella.adapters.stores.database import Result
from lamella.adapters.stores.schema import load_migrations
from lamella.adapters.stores.sharing.shelf import MemoryShelf
from lamella.core.log.records import Record, Written
from lamella.core.text.content import encode_text, hash_bytes
from lamella.core.values import replace
from lamella.errors import ConflictError
from lamella.holdings import ChatListing, Checkpoint, Damage, StoreStats


@dataclass(slots=True, kw_only=True)
class _Holding:
    """One conversation, or its tombstone."""

    name: str
    created: str
    updated: str
    title: str = ""
    erased: str | None = None
    records: list[Record] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    held: set[str] = field(default_factory=set)
    checkpoints: dict[int, Checkpoint] = field(default_factory=dict)


class MemoryStore:
    """Conversations in this process's memory, safe for its threads."""

    def __init__(self) -> None:
        self._kept: dict[str, _Holding] = {}
        self._contents: dict[str, bytes] = {}
        self._lock = RLock()
        self.shelf = MemoryShelf()

    def append(
        self, conversation: str, written: Written, *, expected: int, title: str | None = None, name: str | None = None
    ) -> int:
        """Append after exactly ``expected`` events."""
        if name is not None:
            check_name(name)
        check_written(conversation, written)
        with self._lock:
            kept = self._kept.get(conversation) or self._begin(name or conversation, written, expected=expected)
            refuse_erased(name or conversation, kept.erased)
            if len(kept.records) != expected:
                raise ConflictError(conversation=name or conversation, expected=expected, found=len(kept.records))
            return self._append(conversation, kept, written, title=title)

    def _begin(self, name: str, written: Written, *, expected: int) -> _Holding:
        at, other = written.records[0].at, self._find(name)
        if other is not None and expected == 0:
            raise ConflictError(conversation=name, expected=0, found=len(self._kept[other].records))
        return _Holding(name=name, created=at, updated=at)

    def _find(self, name: str) -> str | None:
        """The key of the conversation that has a name now."""
        return next((key for key, kept in self._kept.items() if kept.name == name and kept.erased is None), None)

    def _append(self, conversation: str, kept: _Holding, written: Written, *, title: str | None) -> int:
        expected = len(kept.records)
        named = {name for record in written.records for name in record.contents}
        if missing := named - kept.held - set(written.contents):
            check_known(missing, find_erased([*kept.records, *written.records]))
        check_contents({name: data for name, data in written.contents.items() if name not in self._contents})
        previous = kept.hashes[-1] if kept.hashes else FIRST
        hashes = link_all(previous, conversation, after=expected, records=written.records)
        kept.title = kept.title if title is None else clean_title(title)
        kept.updated = written.records[-1].at
        kept.hashes += hashes
        kept.records += written.records
        kept.held |= set(written.contents)
        for name, data in written.contents.items():
            self._contents.setdefault(name, data)
        self._kept[conversation] = kept
        if erased := find_erased(written.records).difference(written.contents):
            kept.held -= erased
            # Which counts were made of what is erased, nobody can tell.
            kept.records = [replace(record, counts=b"") for record in kept.records]
            kept.checkpoints = {}
            self.shelf.clear(conversation)
            self._forget(erased)
        return len(kept.records)

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        """The events after a number of events."""
        check_name(conversation)
        with self._lock:
            kept = self._kept.get(conversation)
            if kept is None:
                return ()
            refuse_erased(conversation, kept.erased)
            return tuple(kept.records[after:])

    def keep_checkpoint(self, conversation: str, checkpoint: Checkpoint, *, instead_of: Collection[int] = ()) -> bool:
        """Keep what all events up to now come to; nothing happens if others were written meanwhile."""
        check_name(conversation)
        with self._lock:
            kept = self._kept.get(conversation)
            if kept is None or kept.erased is not None or len(kept.records) != checkpoint.version:
                return False
            for version in instead_of:
                kept.checkpoints.pop(version, None)
            before = {one.version: one for one in checkpoint.before if one.version in kept.checkpoints}
            kept.checkpoints |= {**before, checkpoint.version: replace(checkpoint, before=())}
            return True

    def read_checkpoints(
        self, conversation: str, read: Callable[[Checkpoint], Result], *, apart: bool = False
    ) -> Sequence[Result]:
        """What was kept, oldest first."""
        check_name(conversation)
        with self._lock:
            kept = self._kept.get(conversation)
            found = tuple(kept.checkpoints.values()) if kept else ()
        return [read(one if apart else replace(one, apart=b"")) for one in found]

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """The contents this conversation holds."""
        check_name(conversation)
        with self._lock:
            kept = self._kept.get(conversation)
            held = kept.held if kept else set[str]()
            return {name: self._contents[name] for name in dict.fromkeys(hashes) if name in held}

    def list_conversations(self) -> Sequence[ChatListing]:
        """Every conversation, the last changed first."""
        with self._lock:
            listed = [_list(key, self._kept[key]) for key in sorted(self._kept, key=encode_text)]
        return sorted(listed, key=lambda one: one.updated, reverse=True)

    def find_conversation(self, name: str) -> ChatListing | None:
        """The conversation of that name, else of that key."""
        check_name(name)
        with self._lock:
            key = self._find(name) or name
            kept = self._kept.get(key)
            return None if kept is None or kept.erased is not None else _list(key, kept)

    def erase_conversation(self, conversation: str, *, at: str) -> None:
        """Leave a tombstone, also for one that is not there."""
        check_name(conversation)
        with self._lock:
            kept = self._kept.get(conversation) or _Holding(name=conversation, created=at, updated=at)
            if kept.erased is None:
                self._kept[conversation] = _Holding(name=kept.name, created=kept.created, updated=at, erased=at)
                self._forget(kept.held)
                self.shelf.clear(conversation)

    def erase_contents(self, conversation: str, hashes: Sequence[str], written: Written, *, expected: int) -> int:
        """Remove contents, with an erasure event that names them all."""
        check_named(hashes, written)
        return self.append(conversation, written, expected=expected)

    def _forget(self, hashes: set[str]) -> None:
        """Remove contents that nobody holds any more."""
        held = set[str]().union(*(kept.held for kept in self._kept.values()))
        for name in hashes - held:
            self._contents.pop(name, None)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """Every hash derived again. Memory is damaged only by whoever reaches into it."""
        with self._lock:
            names = list(self._kept) if conversation is None else [conversation]
            damages = [damage for name in names for damage in self._verify(name)]
        yield from damages

    def _verify(self, conversation: str) -> Iterator[Damage]:
        kept = self._kept.get(conversation)
        if kept is None:
            yield Damage(conversation=conversation, place="conversation", what="is not in this store")
            return
        derived = link_all(FIRST, conversation, after=0, records=kept.records)
        for seq, (stored, true) in enumerate(zip(kept.hashes, derived, strict=True), start=1):
            if stored != true:
                what = f"has the hash {stored}; what it says gives {true}"
                yield Damage(conversation=conversation, place=f"event {seq}", what=what)
        for name in sorted(kept.held):
            if hash_bytes(self._contents[name]) != name:
                yield Damage(conversation=conversation, place=f"content {name}", what="has another hash")

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """Whether only a tombstone is left."""
        kept = self._kept.get(conversation)
        if kept is None or kept.erased is None:
            yield Damage(conversation=conversation, place="conversation", what="was not erased from this store")

    def repair(self, conversation: str, tell_title: Callable[[Sequence[Record]], str]) -> None:
        """Derive a conversation's title and times again from its events."""
        with self._lock:
            kept = self._kept.get(conversation)
            if kept is not None and kept.records:
                kept.created, kept.updated = kept.records[0].at, kept.records[-1].at
                kept.title = clean_title(tell_title(kept.records))

    def stats(self) -> StoreStats:
        with self._lock:
            erased = sum(kept.erased is not None for kept in self._kept.values())
            return StoreStats(
                schema=len(load_migrations("sqlite")),
                conversations=len(self._kept) - erased,
                erased=erased,
                events=sum(len(kept.records) for kept in self._kept.values()),
                contents=len(self._contents),
                content_bytes=sum(map(len, self._contents.values())),
            )

    def close(self) -> None:
        """Nothing to close."""


def _list(key: str, kept: _Holding) -> ChatListing:
    return ChatListing(
        conversation=key,
        name=kept.name,
        title=kept.title,
        created=kept.created,
        updated=kept.updated,
        version=len(kept.records),
        erased=kept.erased,
    )
