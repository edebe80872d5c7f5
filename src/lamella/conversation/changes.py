"""Changes of the conversations of a store, by whichever process made them.

``ChangeFeed`` compares the list of conversations with the one before, and reads only the events that are new.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from lamella.core.log.events.codec import decode_event
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.events.message import EditEvent, QuestionEvent
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import DECODING_ERRORS
from lamella.errors import ConversationErasedError, StoreCorruptedError
from lamella.ports import ConversationListItem, Store

# After a longer gap, such as an import, single turns are not reported.
_MAX_READ_EVENTS = 64


class ChangeKind(StrEnum):
    """What changed in a conversation."""

    CREATED = "created"
    CHANGED = "changed"
    ERASED = "erased"
    TURN_BEGUN = "turn_begun"
    TURN_ENDED = "turn_ended"
    ATTACHMENTS = "attachments"


class ConversationChange(Struct, frozen=True, kw_only=True):
    """A change of a conversation; ``message`` is the question of a turn, and ``reply`` its answer."""

    kind: ChangeKind
    conversation: ConversationListItem
    message_id: str | None = None
    reply_id: str | None = None


class ChangeFeed:
    """Finds what changed in a store since the last time; the first time, nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, ConversationListItem] | None = None

    def poll(self) -> list[ConversationChange]:
        """Return the changes since the last call, in the order of the conversations' last changes."""
        listed = {one.conversation: one for one in self._store.list_conversations()}
        before, self._known = self._known, listed
        if before is None:
            return []
        # The list has the last changed first.
        changed = [one for one in reversed(listed.values()) if before.get(one.conversation) != one]
        return [change for one in changed for change in self._list_changes(before.get(one.conversation), one)]

    def _list_changes(self, before: ConversationListItem | None, now: ConversationListItem) -> list[ConversationChange]:
        if now.erased_at is not None:
            return [] if before is None else [ConversationChange(kind=ChangeKind.ERASED, conversation=now)]
        kind = ChangeKind.CREATED if before is None else ChangeKind.CHANGED
        known = 0 if before is None else before.event_count
        records: Sequence[EventRecord] = ()
        if now.event_count - known <= _MAX_READ_EVENTS:
            try:
                records = self._store.load(now.conversation, after=known)
            except (ConversationErasedError, StoreCorruptedError):
                # The next poll finds the tombstone; a damaged log is reported where it is read.
                records = ()
        return [ConversationChange(kind=kind, conversation=now), *_describe_events(now, records)]


def _describe_events(listed: ConversationListItem, records: Sequence[EventRecord]) -> list[ConversationChange]:
    """Return the turns that began or ended with these events, and whether attachments changed."""
    found: list[ConversationChange] = []
    for record in records:
        if record.kind is EventKind.ATTACHMENT:
            found.append(ConversationChange(kind=ChangeKind.ATTACHMENTS, conversation=listed))
        elif record.kind in (EventKind.MESSAGE, EventKind.EDIT, EventKind.REPLY):
            try:
                event = decode_event(record)
            except DECODING_ERRORS:
                continue
            if isinstance(event, ReplyEvent):
                found.append(
                    ConversationChange(
                        kind=ChangeKind.TURN_ENDED, conversation=listed, message_id=event.parent, reply_id=event.id
                    )
                )
            elif isinstance(event, QuestionEvent | EditEvent):
                found.append(ConversationChange(kind=ChangeKind.TURN_BEGUN, conversation=listed, message_id=event.id))
    return found
