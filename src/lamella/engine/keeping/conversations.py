"""Keeping conversations: taking them out and in whole, searching, verifying and erasing them."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from msgspec import Struct

from lamella.core.log.branch import check_node
from lamella.core.log.events.changes import ForkEvent, RenameEvent
from lamella.core.log.events.codec import read_event, write_erasure, write_event
from lamella.core.log.events.hashes import referenced_artifacts, retold_hashes
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import UNREADABLE, Node, damaged, derive_id
from lamella.core.log.receipts import find_faulty_receipts
from lamella.core.log.records import EventKind, Record, Written
from lamella.engine.keeping.checkpoints import find_damaged_checkpoints
from lamella.engine.keeping.counting import are_whole
from lamella.engine.keeping.messages import miss_message
from lamella.errors import CallError, DivergedError, ErasedError, StoreDamagedError
from lamella.holdings import ChatListing, Chronicle, Damage, StoreStats
from lamella.ports import Clock, Store

_EXCERPT = 60
# How many damaged events of a conversation are told one by one.
_TOLD = 100
_BORDER = re.compile(r"\s+")
_LEFT_CHECKPOINT = "left after erasure; erasing it again removes it"


class ImportOutcome(StrEnum):
    """What became of a conversation that was brought in."""

    NEW = "new"
    EXTENDED = "extended"
    SAME = "same"
    OLDER = "older"


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found: where, who said it, and the words around."""

    conversation: str
    title: str
    message: str
    role: Voice
    excerpt: str


class Conversations:
    """What can be done with the conversations of a store as wholes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def load_log(self, conversation: str) -> Log:
        """A conversation's log; an error if there is none."""
        return self._load(conversation)[1]

    def load_log_with(self, conversation: str, message: str) -> Log:
        """A conversation's log that has a message; an error if it has none."""
        log = self.load_log(conversation)
        if message not in log.nodes:
            raise miss_message(log, message)
        return log

    def _load(self, conversation: str) -> tuple[Sequence[Record], Log]:
        """A conversation's events, and what they fold to."""
        records = self._store.load(conversation)
        return records, _fold(conversation, records)

    def find_all(self, names: Sequence[str]) -> list[str]:
        """The same conversations, if all of them are there; what is wrong with the first that is not, else."""
        alive = {listed.conversation for listed in self.list_alive()}
        for name in names:
            if name not in alive:
                self.load_log(name)
        return list(names)

    def take_out(self, conversation: str) -> Chronicle:
        """A whole conversation with all its contents."""
        records, log = self._load(conversation)
        hashes = tuple(dict.fromkeys(name for record in records for name in record.contents))
        return Chronicle(
            conversation=conversation,
            title=log.title,
            created=log.created,
            records=tuple(records),
            contents=self._store.read_contents(conversation, hashes),
        )

    def read_contents(self, conversation: str, hashes: Sequence[str]) -> Mapping[str, bytes]:
        """Those of the contents that a conversation already holds here."""
        return self._store.read_contents(conversation, hashes)

    def take_in(self, chronicle: Chronicle) -> ImportOutcome:
        """Bring a conversation in. One that is there already is extended, never doubled and never cut."""
        there = list(self._store.load(chronicle.conversation))
        ours = list(chronicle.records)
        shared = min(len(there), len(ours))
        if there[:shared] != ours[:shared]:
            raise DivergedError(
                f"The store has {chronicle.conversation} with another history from event {_parting(there, ours):,} on.",
                hint="Delete one of the two, or import into another store.",
            )
        if len(ours) <= len(there):
            return ImportOutcome.SAME if len(ours) == len(there) else ImportOutcome.OLDER
        missing = tuple(ours[shared:])
        named = {name for record in missing for name in record.contents}
        contents = {name: data for name, data in chronicle.contents.items() if name in named}
        self._store.append(
            chronicle.conversation,
            Written(records=missing, contents=contents),
            expected=len(there),
            title=chronicle.title or None,
        )
        return ImportOutcome.EXTENDED if there else ImportOutcome.NEW

    def search(self, words: str) -> Iterator[Hit]:
        """Every message of every branch that holds the words, whatever their case."""
        wanted = words.casefold()
        for listed in self.list_alive():
            for node in self.load_log(listed.conversation).nodes.values():
                at = _find(node.text, wanted)
                if at is not None:
                    yield Hit(
                        conversation=listed.conversation,
                        title=listed.title,
                        message=node.id,
                        role=node.role,
                        excerpt=_cut_around(node.text, at, at + len(words)),
                    )

    def fork(self, conversation: str, message: str) -> None:
        """Go on from a message; the branch left behind stays."""
        log = self.load_log_with(conversation, message)
        if message != log.head:
            self._append(log, write_event(ForkEvent(head=message), at=self.moment()))

    def rename(self, conversation: str, title: str) -> None:
        """Give a conversation a title."""
        log = self.load_log(conversation)
        self._append(log, write_event(RenameEvent(title=title), at=self.moment()), title=title)

    def _append(self, log: Log, written: Written, *, title: str | None = None) -> None:
        self._store.append(log.conversation, written, expected=log.version, title=title)

    def erase(self, conversation: str) -> None:
        """Remove a conversation's content for good; its tombstone stays. Repeating it ends what was interrupted."""
        if all(listed.conversation != conversation for listed in self._store.list_conversations()):
            raise _unknown(conversation)
        self._store.erase_conversation(conversation, at=self.moment())

    def erase_artifact(self, conversation: str, artifact: str) -> int:
        """Remove an artifact from a conversation for good, and say how many contents went.

        That is every version of it, with its pictures, the instructions that drew it in, and every summary of talk,
        which may tell of it.
        """
        records, log = self._load(conversation)
        own = dict.fromkeys(
            (*_find_contents(records, lambda event: referenced_artifacts(event, artifact)), *log.find_results(artifact))
        )
        if not own:
            raise CallError(
                f"{conversation} never had an artifact {artifact!r}.",
                hint=lambda door: f"See its attachments with {door.show_chat(conversation)}.",
            )
        contents = tuple({**own, **dict.fromkeys(_find_contents(records, retold_hashes))})
        written = write_erasure(artifact, contents, at=self.moment())
        self._store.erase_contents(conversation, contents, written, expected=log.version)
        return len(contents)

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """The store's own hashes, then every message id derived again from what the message says, and checkpoints."""
        changed: set[str | None] = set()
        for damage in self._store.verify(conversation):
            changed |= {damage.conversation} if damage.place.startswith("event") else set()
            yield damage
        names = [conversation] if conversation else [listed.conversation for listed in self.list_alive()]
        for name in names:
            # Checkpoints of events that are damaged are not accused of telling what those said before.
            yield from self._verify_log(name, checkpoints=name not in changed)

    def _verify_log(self, conversation: str, *, checkpoints: bool) -> Iterator[Damage]:
        try:
            records = self._store.load(conversation)
        except ErasedError:
            return
        except StoreDamagedError as error:
            yield Damage(conversation=conversation, place="log", what=error.message)
            return
        yield from _find_damaged_counts(conversation, records)
        try:
            log = _fold(conversation, records)
        except StoreDamagedError:
            yield from _list_damaged_events(conversation, records)
            return
        yield from self._find_damaged_receipts(conversation, records, log)
        for node in log.nodes.values():
            yield from _find_faulty_message(conversation, node)
        if checkpoints:
            yield from self._verify_checkpoints(conversation, records)

    def _verify_checkpoints(
        self, conversation: str, records: Sequence[Record], *, erased_at: int = 0
    ) -> Iterator[Damage]:
        """Checkpoints derived again. Of those from before an erasure none should be there."""
        try:
            kept = self._store.read_checkpoints(conversation)
            left = [checkpoint.version for checkpoint in kept if checkpoint.version <= erased_at]
            for version in left:
                yield Damage(conversation=conversation, place=f"checkpoint {version}", what=_LEFT_CHECKPOINT)
            yield from find_damaged_checkpoints(conversation, records, kept[len(left) :])
        except StoreDamagedError as error:
            yield Damage(conversation=conversation, place="checkpoints", what=error.message)

    def _find_damaged_receipts(self, conversation: str, records: Sequence[Record], log: Log) -> Iterator[Damage]:
        """Compactions that could not be applied again."""
        hashes = [name for record in records if record.kind is EventKind.COMPACTION for name in record.contents]
        contents = self._store.read_contents(conversation, hashes) if hashes else {}
        for number, what in find_faulty_receipts(records, said=log.said(), contents=contents):
            yield Damage(conversation=conversation, place=f"event {number}", what=what)

    def verify_erased(self, conversation: str) -> Iterator[Damage]:
        """What is left of an erased conversation, or of what was erased in one that goes on."""
        try:
            records = self._store.load(conversation)
        except ErasedError:
            records = ()
        erased = _erased(records)
        if not erased and any(record.kind is EventKind.ERASURE for record in records):
            yield Damage(conversation=conversation, place="log", what="everything erased was attached again since")
            return
        if not erased:
            yield from self._store.verify_erased(conversation)
            return
        for name in self._store.read_contents(conversation, sorted(erased)):
            yield Damage(conversation=conversation, place=f"content {name}", what="left after erasure")
        for number in _counted_before_erasure(records):
            yield Damage(conversation=conversation, place=f"event {number}", what="has counts from before an erasure")
        yield from self._verify_checkpoints(conversation, records, erased_at=_last_erasure(records))
        places = {f"content {name}" for name in erased}
        yield from (damage for damage in self._store.verify() if damage.conversation is None and damage.place in places)
        # Where bytes may linger is said of the whole store; that this conversation is not erased is no news.
        yield from (damage for damage in self._store.verify_erased(conversation) if damage.conversation is None)

    def stats(self) -> StoreStats:
        return self._store.stats()

    def close(self) -> None:
        self._store.close()

    def list_alive(self) -> list[ChatListing]:
        """Every conversation that was not erased, the last changed first."""
        return [listed for listed in self._store.list_conversations() if listed.erased is None]

    def moment(self) -> str:
        """Now, as it is written down."""
        return self._clock.now().isoformat().replace("+00:00", "Z")


def _parting(there: Sequence[Record], ours: Sequence[Record]) -> int:
    return next(i for i, (one, other) in enumerate(zip(there, ours, strict=False), start=1) if one != other)


def _fold(conversation: str, records: Sequence[Record]) -> Log:
    log = Log(conversation)
    log.extend(records)
    if not log.version:
        raise _unknown(conversation)
    return log


def _unknown(conversation: str) -> CallError:
    return CallError(
        f"There is no conversation {conversation!r}.", hint=lambda door: f"See {door.list_chats()} for those there are."
    )


def _find_contents(records: Iterable[Record], find: Callable[[Event], Iterable[str]]) -> Iterator[str]:
    for number, record in enumerate(records, start=1):
        try:
            yield from find(read_event(record))
        except (LookupError, TypeError, ValueError) as error:
            raise damaged(f"Event {number}", error) from error


def _erased(records: Iterable[Record]) -> frozenset[str]:
    """The contents that were erased and not attached again since."""
    erased: set[str] = set()
    for record in records:
        if record.kind is EventKind.ERASURE:
            erased.update(record.contents)
        else:
            erased.difference_update(record.contents)
    return frozenset(erased)


def _counted_before_erasure(records: Sequence[Record]) -> Iterator[int]:
    """The events before the last erasure that still have counts: some may be of what was erased."""
    before = records[: _last_erasure(records) - 1]
    return (number for number, record in enumerate(before, start=1) if record.counts)


def _last_erasure(records: Sequence[Record]) -> int:
    return max(number for number, record in enumerate(records, start=1) if record.kind is EventKind.ERASURE)


def _find_damaged_counts(conversation: str, records: Iterable[Record]) -> Iterator[Damage]:
    for number, record in enumerate(records, start=1):
        if not are_whole(record.counts):
            what = "has counts that are damaged; its texts are counted again"
            yield Damage(conversation=conversation, place=f"event {number}", what=what)


def _list_damaged_events(conversation: str, records: Iterable[Record]) -> Iterator[Damage]:
    """What is wrong with events that do not fold to a log, as far as somebody would read on."""
    found = list(_find_damaged_events(conversation, records))
    yield from found[:_TOLD]
    if len(found) > _TOLD:
        yield Damage(conversation=conversation, place="log", what=f"has {len(found) - _TOLD:,} more damaged events")


def _find_damaged_events(conversation: str, records: Iterable[Record]) -> Iterator[Damage]:
    """Every event that is wrong by itself. Only the first that does not fit is told: others may fail for its sake."""
    log, whole = Log(conversation), True
    for number, record in enumerate(records, start=1):
        try:
            event = read_event(record)
            if whole:
                log.extend((record,))
        except (*UNREADABLE, StoreDamagedError) as error:
            told = (
                error if isinstance(error, StoreDamagedError) else damaged(f"Event {number} of {conversation}", error)
            )
            yield Damage(conversation=conversation, place="log", what=told.message)
            whole = False
            continue
        if isinstance(event, MessageEvent | ReplyEvent):
            yield from _find_faulty_message(conversation, Node(event=event, at=record.at))


def _find_faulty_message(conversation: str, node: Node) -> Iterator[Damage]:
    what = _find_fault(conversation, node)
    if what is not None:
        yield Damage(conversation=conversation, place=f"message {node.id}", what=what)


def _find_fault(conversation: str, node: Node) -> str | None:
    """What is wrong with a message, if anything."""
    try:
        check_node(node)
        derived = derive_id(conversation, node.event)
    except (LookupError, TypeError, StoreDamagedError) as error:
        return f"cannot be read: {error}"
    return None if derived == node.id else "its id does not follow from its text"


def _cut_around(text: str, first: int, last: int) -> str:
    """What was found and some words around it, on one line; no word is cut but one that is longer than that."""
    start, end = max(0, first - _EXCERPT), min(len(text), last + _EXCERPT)
    before, found, after = text[start:first], text[first:last], text[last:end]
    if start and not text[start - 1].isspace():
        before = _BORDER.split(before, maxsplit=1)[-1]
    if end < len(text) and not text[end].isspace():
        after = _BORDER.split(after[::-1], maxsplit=1)[-1][::-1]
    shown = " ".join(f"{before}{found}{after}".split())
    return f"{'… ' if start else ''}{shown}{' …' if end < len(text) else ''}"


def _find(text: str, wanted: str) -> int | None:
    """Where a text holds what is wanted, whatever the case; folding case can change how long a text is."""
    folded = text.casefold()
    at = folded.find(wanted)
    if at < 0 or len(folded) == len(text):
        return at if at >= 0 else None
    lengths = accumulate(len(character.casefold()) for character in text)
    return next(index for index, end in enumerate(lengths) if end > at) if text else 0
