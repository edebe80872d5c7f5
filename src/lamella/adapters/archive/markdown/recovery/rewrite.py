"""The same conversation with other texts: events whose files have changed or are gone, under ids that say so.

A message's id covers what is attached to it and the message before it. So other texts give other ids from there on,
and every event that names a message is made to name it by its new id.
"""

from collections.abc import Iterable

from lamella.adapters.archive.markdown.cargo import ASKING
from lamella.adapters.archive.markdown.recovery.recovery import Recovery
from lamella.adapters.archive.markdown.refs import Raw, Ref, change_refs
from lamella.core.artifacts.make import canonical_json
from lamella.core.log.events import Body, named_hashes, parse_body
from lamella.core.log.ids import Voice, message_id
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, Told, derive_id
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
        self._names: dict[object, str] = {}

    def rewrite(self, record: Record) -> Record:
        """One event with its new names; the next is rewritten on top of it."""
        rewritten = self._rewritten(record, parse_body(record))
        self._old.extend([record])
        self._new.extend([rewritten])
        if record.kind is EventKind.DELETE:
            # Deleting a message gives those after it other ids.
            for old, new in zip(_ids(self._old.path()), _ids(self._new.path()), strict=True):
                self._rename(old, new)
        return rewritten

    def _rewritten(self, record: Record, body: Body) -> Record:
        if record.kind in ASKING:
            body = self._with_id(change_refs(body, self._change), Voice.USER)
            named = named_hashes(body)
            kept = [name for name in record.contents if name in named]
            contents = dict.fromkeys((*kept, *named))
            return replace(record, body=canonical_json(body), contents=tuple(contents))
        if record.kind is EventKind.REPLY:
            return replace(record, body=canonical_json(self._with_id(body, Voice.REPLY)))
        return replace(record, body=canonical_json(self._renamed(body)))

    def _with_id(self, body: Body, role: Voice) -> Body:
        """A message under the id that follows from what it says now."""
        named = {**body, "parent": self._renamed(body["parent"])}
        if "target" in body:
            named["target"] = self._renamed(body["target"])
        node = Node(id="", parent=str(named["parent"]), role=role, text=str(body["text"]), rest=named)
        named["id"] = derive_id(self._new.conversation, node.parent, node)
        self._rename(str(body["id"]), str(named["id"]))
        return named

    def _rename(self, old: str, new: str) -> None:
        """A message under its new id. Left without an answer it stands with an empty one, which compactions name."""
        self._names[old] = new
        self._names[self._empty_answer(old)] = self._empty_answer(new)

    def _empty_answer(self, message: str) -> str:
        return message_id(self._new.conversation, parent=message, role=Voice.REPLY, text="")

    def _renamed(self, value: object) -> object:
        """Any value of a body, with every message in it under its new id."""
        if isinstance(value, dict):
            return {name: self._renamed(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._renamed(inner) for inner in value]
        return self._names.get(value, value)

    def _change(self, ref: Ref) -> Raw | None:
        """A reference as it is now. Instructions keep the text they drew in, so they cannot name the text of now."""
        if ref.hash not in self._recovery.lost:
            return ref.raw
        artifact = self._recovery.changed.get((ref.path or "", ref.hash))
        if artifact is None or ref.inlined:
            return None
        changed = {**ref.raw, "hash": artifact.hash}
        if artifact.has_images or ref.pictures:
            return {**changed, "has_images": True}
        return {name: value for name, value in changed.items() if name != "has_images"}


def _ids(told: Iterable[Told]) -> list[str]:
    return [node.id for turn in told for node in (turn.message, turn.reply) if node is not None]
