"""Verify a store by deriving its data again from the events, and repair what can be derived."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from lamella.conversation.checkpoints import iter_damaged_checkpoints
from lamella.conversation.log import find_title, get_title
from lamella.conversation.names import conversation_not_found_error
from lamella.conversation.token_counts import are_counts_intact
from lamella.core.log.branch import iter_invalid_receipts, read_auxiliary_calls, validate_message_node
from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import DECODING_ERRORS, MessageNode, damaged_record_error, derive_message_id
from lamella.errors import ConversationErasedError, StoreCorruptedError
from lamella.ports import Store, StoreProblem

# How many damaged events of a conversation are reported one by one.
_MAX_LISTED_PROBLEMS = 100
_CHECKPOINT_AFTER_ERASURE = "left after erasure; erasing it again removes it"


class StoreInspector:
    """Verifies the conversations of a store.

    ``find_request_problems`` derives the requests of a conversation and compares them with their stored hashes.
    """

    def __init__(
        self, store: Store, *, find_request_problems: Callable[[str], Iterator[StoreProblem]] | None = None
    ) -> None:
        self._store = store
        self._find_request_problems = find_request_problems

    def verify(self, conversation_key: str | None = None) -> Iterator[StoreProblem]:
        """Yield the problems of one conversation or of all.

        Checks the hashes of the store, then message ids, receipts, counts, checkpoints and listed titles against the
        events.
        """
        changed: set[str | None] = set()
        for damage in self._store.verify(conversation_key):
            changed |= {damage.conversation} if damage.location.startswith("event") else set()
            yield damage
        listed = {one.conversation: one.title for one in self._store.list_conversations() if one.erased_at is None}
        for key in [conversation_key] if conversation_key else listed:
            # If events are damaged, their checkpoints cannot be compared with them and are not reported.
            yield from self._verify_log(key, title=listed.get(key, ""), checkpoints=key not in changed)

    def repair(self, problems: Iterable[StoreProblem]) -> list[str]:
        """Rebuild damaged data that can be derived from events; return the keys of the repaired conversations."""
        repaired = []
        for key in dict.fromkeys(damage.conversation for damage in problems if damage.is_repairable):
            # If the events are damaged too, nothing can be derived from them.
            with suppress(StoreCorruptedError):
                if key is not None:
                    self._store.rebuild_list_row(key, lambda records: find_title(records) or "")
                    repaired.append(key)
        return repaired

    def _verify_log(self, conversation_key: str, *, title: str, checkpoints: bool) -> Iterator[StoreProblem]:
        try:
            records = self._store.load(conversation_key)
        except ConversationErasedError:
            return
        except StoreCorruptedError as error:
            yield StoreProblem(conversation=conversation_key, location="log", description=error.message)
            return
        if not records:
            # The stored key is unreadable, so no events are found under it.
            yield StoreProblem(conversation=conversation_key, location="log", description="has no events")
            return
        yield from _iter_damaged_token_counts(conversation_key, records)
        try:
            log = build_log(conversation_key, records)
        except StoreCorruptedError:
            yield from _list_damaged_events(conversation_key, records)
            return
        expected = get_title(log)
        # Older versions listed an empty title if no event set one. Stores replace NUL characters.
        if title not in {expected.replace("\0", "\ufffd"), log.title.replace("\0", "\ufffd")}:
            what = f"says that its title is {title!r}; its events say {expected!r}"
            yield StoreProblem(
                conversation=conversation_key, location="conversation", description=what, is_repairable=True
            )
        yield from self._iter_invalid_receipts(conversation_key, records, log)
        for node in log.nodes.values():
            yield from _iter_message_problems(conversation_key, node)
        yield from _iter_invalid_auxiliary_calls(conversation_key, log)
        if checkpoints:
            yield from self._verify_checkpoints(conversation_key, records)
            if self._find_request_problems is not None:
                # Damaged contents are reported already.
                with suppress(StoreCorruptedError):
                    yield from self._find_request_problems(conversation_key)

    def _verify_checkpoints(
        self, conversation_key: str, records: Sequence[EventRecord], *, erased_at: int = 0
    ) -> Iterator[StoreProblem]:
        """Compare checkpoints with the events; none from before the event ``erased_at`` may exist."""
        try:
            stored = self._store.read_checkpoints(conversation_key, lambda one: one, with_separate_data=True)
            left = [checkpoint.version for checkpoint in stored if checkpoint.version <= erased_at]
            for version in left:
                yield StoreProblem(
                    conversation=conversation_key,
                    location=f"checkpoint {version}",
                    description=_CHECKPOINT_AFTER_ERASURE,
                )
            yield from iter_damaged_checkpoints(conversation_key, records, stored[len(left) :])
        except StoreCorruptedError as error:
            yield StoreProblem(conversation=conversation_key, location="checkpoints", description=error.message)

    def _iter_invalid_receipts(
        self, conversation_key: str, records: Sequence[EventRecord], log: FoldedLog
    ) -> Iterator[StoreProblem]:
        """Yield compactions that could not be applied again."""
        hashes = [name for record in records if record.kind is EventKind.COMPACTION for name in record.contents]
        contents = self._store.read_contents(conversation_key, hashes) if hashes else {}
        for number, what in iter_invalid_receipts(records, message_ids=log.all_message_ids(), contents=contents):
            yield StoreProblem(conversation=conversation_key, location=f"event {number}", description=what)

    def verify_erased(self, conversation_key: str) -> Iterator[StoreProblem]:
        """Yield what is left of an erased conversation, or of contents erased from an existing one."""
        try:
            records = self._store.load(conversation_key)
        except ConversationErasedError:
            records = ()
        erased = _list_erased_content_hashes(records)
        if not erased and any(record.kind is EventKind.ERASURE for record in records):
            yield StoreProblem(
                conversation=conversation_key, location="log", description="everything erased was attached again since"
            )
            return
        if not erased:
            yield from self._store.verify_erased(conversation_key)
            return
        for name in self._store.read_contents(conversation_key, sorted(erased)):
            yield StoreProblem(
                conversation=conversation_key, location=f"content {name}", description="left after erasure"
            )
        for number in _iter_counted_events_before_erasure(records):
            yield StoreProblem(
                conversation=conversation_key,
                location=f"event {number}",
                description="has counts from before an erasure",
            )
        yield from self._verify_checkpoints(conversation_key, records, erased_at=_find_last_erasure_number(records))
        places = {f"content {name}" for name in erased}
        yield from (
            damage for damage in self._store.verify() if damage.conversation is None and damage.location in places
        )
        # Keep only the reports about the whole store. That this conversation still exists is expected here.
        yield from (damage for damage in self._store.verify_erased(conversation_key) if damage.conversation is None)


def build_log(conversation_key: str, records: Sequence[EventRecord]) -> FoldedLog:
    """Fold the events of a conversation into a log; raises ``InvalidOperationError`` if there are none."""
    log = FoldedLog(conversation_key)
    log.extend(records)
    if not log.version:
        raise conversation_not_found_error(conversation_key)
    return log


def _list_erased_content_hashes(records: Iterable[EventRecord]) -> frozenset[str]:
    """Return the contents that were erased and not attached again since."""
    erased: set[str] = set()
    for record in records:
        if record.kind is EventKind.ERASURE:
            erased.update(record.contents)
        else:
            erased.difference_update(record.contents)
    return frozenset(erased)


def _iter_counted_events_before_erasure(records: Sequence[EventRecord]) -> Iterator[int]:
    """Return the events before the last erasure that still have token counts, which may be of erased text."""
    before = records[: _find_last_erasure_number(records) - 1]
    return (number for number, record in enumerate(before, start=1) if record.counts)


def _find_last_erasure_number(records: Sequence[EventRecord]) -> int:
    return max(number for number, record in enumerate(records, start=1) if record.kind is EventKind.ERASURE)


def _iter_damaged_token_counts(conversation_key: str, records: Iterable[EventRecord]) -> Iterator[StoreProblem]:
    for number, record in enumerate(records, start=1):
        if not are_counts_intact(record.counts):
            what = "has counts that are damaged; its texts are counted again"
            yield StoreProblem(conversation=conversation_key, location=f"event {number}", description=what)


def _list_damaged_events(conversation_key: str, records: Iterable[EventRecord]) -> Iterator[StoreProblem]:
    """Yield the problems of events that do not fold to a log, up to a limit, and the number of the rest."""
    found = list(_iter_damaged_events(conversation_key, records))
    yield from found[:_MAX_LISTED_PROBLEMS]
    if len(found) > _MAX_LISTED_PROBLEMS:
        yield StoreProblem(
            conversation=conversation_key,
            location="log",
            description=f"has {len(found) - _MAX_LISTED_PROBLEMS:,} more damaged events",
        )


def _iter_damaged_events(conversation_key: str, records: Iterable[EventRecord]) -> Iterator[StoreProblem]:
    """Yield every event that is invalid by itself, and the first one that does not fit into the log.

    After that one, later events may fail only because of it.
    """
    log, whole = FoldedLog(conversation_key), True
    for number, record in enumerate(records, start=1):
        try:
            event = decode_event(record)
            if whole:
                log.extend((record,))
        except (*DECODING_ERRORS, StoreCorruptedError) as error:
            problem = (
                error
                if isinstance(error, StoreCorruptedError)
                else damaged_record_error(f"Event {number} of {conversation_key}", error)
            )
            yield StoreProblem(conversation=conversation_key, location="log", description=problem.message)
            whole = False
            continue
        if isinstance(event, QuestionEvent | ReplyEvent):
            yield from _iter_message_problems(conversation_key, MessageNode(event=event, at=record.at))


def _iter_invalid_auxiliary_calls(conversation_key: str, log: FoldedLog) -> Iterator[StoreProblem]:
    """Yield auxiliary calls that cannot be read and belong to no reply."""
    for message, events in log.auxiliary_calls.items():
        try:
            read_auxiliary_calls(events)
        except StoreCorruptedError as error:
            yield StoreProblem(
                conversation=conversation_key,
                location=f"calls after {message or 'the start'}",
                description=error.message,
            )


def _iter_message_problems(conversation_key: str, node: MessageNode) -> Iterator[StoreProblem]:
    what = _message_problem(conversation_key, node)
    if what is not None:
        yield StoreProblem(conversation=conversation_key, location=f"message {node.id}", description=what)


def _message_problem(conversation_key: str, node: MessageNode) -> str | None:
    """Return what is wrong with a message, or None."""
    try:
        validate_message_node(node)
        derived = derive_message_id(conversation_key, node.event)
    except (LookupError, TypeError, StoreCorruptedError) as error:
        return f"cannot be read: {error}"
    return None if derived == node.id else "its id does not match its text"
