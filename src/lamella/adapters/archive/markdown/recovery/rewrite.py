"""The same conversation with other texts: events whose files have changed or are gone, under ids that say so.

A message's id covers what is attached to it and the message before it. So other texts give other ids from there on,
and every event that names a message is made to name it by its new id.
"""

from collections.abc import Iterable

from lamella.adapters.archive.markdown.recovery.recovery import Recovery
from lamella.adapters.archive.markdown.refs import Ref, change_attached, change_refs
from lamella.core.log.events.artifact import StoredArtifact
from lamella.core.log.events.attachment import AttachmentEvent
from lamella.core.log.events.changes import DeleteEvent, ForkEvent, SwitchEvent
from lamella.core.log.events.codec import make_record, read_event
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.events.hashes import named_hashes
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import EditEvent, MessageEvent
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import CallsEvent, ResultsEvent
from lamella.core.log.events.stage import StageEvent
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told, derive_id
from lamella.core.log.records import EventKind, Record
from lamella.core.values import replace


def rewrite_records(conversation: str, records: Iterable[Record], recovery: Recovery) -> tuple[Record, ...]:
    """The events as they are with the files of now."""
    rewriter = _Rewriter(conversation, recovery)
    return tuple(rewriter.rewrite(record) for record in records)


class _Rewriter:
    """Folds the old log and the new one side by side: their active branches match, message by message."""

    def __init__(self, conversation: str, recovery: Recovery) -> None:
        self._recovery = recovery
        self._old = Log(conversation)
        self._new = Log(conversation)
        self._names: dict[str, str] = {}

    def rewrite(self, record: Record) -> Record:
        """One event with its new names; the next is rewritten on top of it."""
        rewritten = self._rewritten(record)
        self._old.extend([record])
        self._new.extend([rewritten])
        if record.kind is EventKind.DELETE:
            # Deleting a message gives those after it other ids.
            for old, new in zip(_ids(self._old.path()), _ids(self._new.path()), strict=True):
                self._rename(old, new)
        return rewritten

    def _rewritten(self, record: Record) -> Record:
        event = read_event(record)
        if isinstance(event, MessageEvent | AttachmentEvent):
            asked = self._ask_again(event) if isinstance(event, MessageEvent) else self._command_again(event)
            named = named_hashes(asked)
            kept = [name for name in record.contents if name in named]
            return make_record(asked, at=record.at, contents=tuple(dict.fromkeys((*kept, *named))))
        renamed = self._renamed(event)
        return record if renamed is event else make_record(renamed, at=record.at, contents=record.contents)

    def _ask_again(self, event: MessageEvent) -> MessageEvent:
        """A question under the id that follows from what it says now."""
        asked = replace(change_refs(event, self._change), parent=self._name(event.parent))
        if isinstance(asked, EditEvent):
            asked = replace(asked, target=self._name(asked.target))
        asked = replace(asked, id=derive_id(self._new.conversation, asked))
        self._rename(event.id, asked.id)
        return asked

    def _command_again(self, event: AttachmentEvent) -> AttachmentEvent:
        """What waits for a question; messages that it pins under their new ids."""
        pin, unpin = (tuple(map(self._name, names)) for names in (event.pin, event.unpin))
        return replace(change_attached(event, self._change), pin=pin, unpin=unpin)

    def _renamed(self, event: Event) -> Event:
        """Any other event, with every message in it under its new id."""
        match event:
            case ReplyEvent():
                answer = replace(event, parent=self._name(event.parent))
                answer = replace(answer, id=derive_id(self._new.conversation, answer))
                self._rename(event.id, answer.id)
                return answer
            case CallsEvent() | ResultsEvent():
                return replace(event, parent=self._name(event.parent))
            case DeleteEvent():
                return replace(event, target=self._name(event.target))
            case ForkEvent() | SwitchEvent():
                return replace(event, head=self._name(event.head))
            case CompactionEvent():
                return self._compact_again(event)
            case StageEvent(after=str() as after) if after:
                return replace(event, after=self._name(after))
            case _:
                return event

    def _compact_again(self, event: CompactionEvent) -> CompactionEvent:
        steps = tuple(replace(step, removed=tuple(map(self._name, step.removed))) for step in event.steps)
        before = None if event.before is None else self._name(event.before)
        return replace(event, parent=self._name(event.parent), steps=steps, before=before)

    def _name(self, message: str) -> str:
        return self._names.get(message, message)

    def _rename(self, old: str, new: str) -> None:
        """A message under its new id. Left without an answer it stands with an empty one, which compactions name."""
        self._names[old] = new
        self._names[self._empty_answer(old)] = self._empty_answer(new)

    def _empty_answer(self, message: str) -> str:
        return message_id(self._new.conversation, parent=message, role=Voice.REPLY, text="")

    def _change(self, ref: Ref) -> StoredArtifact | None:
        """A reference as it is now. Instructions keep the text they drew in, so they cannot name the text of now."""
        if ref.hash not in self._recovery.lost:
            return ref.stored
        artifact = self._recovery.changed.get((ref.path or "", ref.hash))
        if artifact is None or ref.inlined:
            return None
        return replace(ref.stored, hash=artifact.hash, has_images=artifact.has_images or bool(ref.stored.images))


def _ids(told: Iterable[Told]) -> list[str]:
    return [node.id for turn in told for node in (turn.message, turn.reply) if node is not None]
