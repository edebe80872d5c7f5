"""Inspection: what a store holds is derived again and compared, and what can be derived is repaired."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from lamella.core.log.branch import check_asides, check_node
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.log import Log
from lamella.core.log.nodes import UNREADABLE, Node, damaged, derive_id
from lamella.core.log.receipts import find_faulty_receipts
from lamella.core.log.records import EventKind, Record
from lamella.engine.keeping.checkpoints.faults import find_damaged_checkpoints
from lamella.engine.keeping.counting import are_whole
from lamella.engine.keeping.names import miss_chat
from lamella.engine.keeping.titles import read_title, tell_title
from lamella.errors import ErasedError, StoreDamagedError
from lamella.holdings import Damage
from lamella.ports import Store

# How many damaged events of a conversation are told one by one.
_TOLD = 100
_LEFT_CHECKPOINT = "left after erasure; erasing it again removes it"


class Inspection:
    """Looks through a store, conversation by conversation."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def verify(self, conversation: str | None = None) -> Iterator[Damage]:
        """The store's own hashes, then every message id derived again from what the message says, and checkpoints.

        A title in a list is compared with what the events say.
        """
        changed: set[str | None] = set()
        for damage in self._store.verify(conversation):
            changed |= {damage.conversation} if damage.place.startswith("event") else set()
            yield damage
        listed = {one.conversation: one.title for one in self._store.list_conversations() if one.erased is None}
        for key in [conversation] if conversation else listed:
            # Checkpoints of events that are damaged are not accused of telling what those said before.
            yield from self._verify_log(key, title=listed.get(key, ""), checkpoints=key not in changed)

    def repair(self, damages: Iterable[Damage]) -> list[str]:
        """Derive again what is damaged and can be derived from events; the keys of those that were repaired."""
        repaired = []
        for key in dict.fromkeys(damage.conversation for damage in damages if damage.derived):
            # Where events are damaged as well there is nothing to go by.
            with suppress(StoreDamagedError):
                if key is not None:
                    self._store.repair(key, lambda records: read_title(records) or "")
                    repaired.append(key)
        return repaired

    def _verify_log(self, conversation: str, *, title: str, checkpoints: bool) -> Iterator[Damage]:
        try:
            records = self._store.load(conversation)
        except ErasedError:
            return
        except StoreDamagedError as error:
            yield Damage(conversation=conversation, place="log", what=error.message)
            return
        if not records:
            # Its key cannot be read, so that nothing is found by it.
            yield Damage(conversation=conversation, place="log", what="has no events")
            return
        yield from _find_damaged_counts(conversation, records)
        try:
            log = fold_log(conversation, records)
        except StoreDamagedError:
            yield from _list_damaged_events(conversation, records)
            return
        told = tell_title(log)
        # Before titles were made of questions, lists showed none where events gave none.
        if title not in {told.replace("\0", "\ufffd"), log.title.replace("\0", "\ufffd")}:
            what = f"says that its title is {title!r}; its events say {told!r}"
            yield Damage(conversation=conversation, place="conversation", what=what, derived=True)
        yield from self._find_damaged_receipts(conversation, records, log)
        for node in log.nodes.values():
            yield from _find_faulty_message(conversation, node)
        yield from _find_faulty_asides(conversation, log)
        if checkpoints:
            yield from self._verify_checkpoints(conversation, records)

    def _verify_checkpoints(
        self, conversation: str, records: Sequence[Record], *, erased_at: int = 0
    ) -> Iterator[Damage]:
        """Checkpoints derived again. Of those from before an erasure none should be there."""
        try:
            kept = self._store.read_checkpoints(conversation, lambda one: one, apart=True)
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


def fold_log(conversation: str, records: Sequence[Record]) -> Log:
    """What a conversation's events fold to; an error if there are none."""
    log = Log(conversation)
    log.extend(records)
    if not log.version:
        raise miss_chat(conversation)
    return log


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


def _find_faulty_asides(conversation: str, log: Log) -> Iterator[Damage]:
    """Model calls after a message, or before the first, that no reply has and that cannot be read."""
    for message, events in log.asides.items():
        try:
            check_asides(events)
        except StoreDamagedError as error:
            yield Damage(conversation=conversation, place=f"calls after {message or 'the start'}", what=error.message)


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
