"""Writing events down as a conversation would have, for messages that come from a file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lamella.core.artifacts.make import canonical_json
from lamella.core.log.events import named_hashes
from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, derive_id
from lamella.core.log.records import EventKind, Record
from lamella.core.log.terms import Rewrite


@dataclass(slots=True, kw_only=True)
class Scribe:
    """Appends to a log; ``records`` are the events written so far."""

    log: Log
    records: list[Record] = field(default_factory=list)

    def ask(self, body: Mapping[str, object], *, at: str, edits: Node | None = None) -> None:
        """A question, or one in place of another. One before it that was never answered gets the empty reply."""
        if edits is None and self.log.head and self.log.nodes[self.log.head].role is Voice.USER:
            self.reply("", at=at)
        parent = self.log.head if edits is None else edits.parent
        rewritten = self.log.rewritten if edits is None else Rewrite.HISTORY_EDITED
        asked = self._named({**body, "parent": parent}, Voice.USER)
        if rewritten is not None:
            asked["rewritten"] = rewritten.value
        if edits is not None:
            asked["target"] = edits.id
        kind = EventKind.MESSAGE if edits is None else EventKind.EDIT
        self._write(Record(kind=kind, at=at, body=canonical_json(asked), contents=named_hashes(asked)))

    def reply(self, text: str, *, at: str) -> None:
        """An answer to the question asked last."""
        body = self._named({"parent": self.log.head, "text": text}, Voice.REPLY)
        self._write(Record(kind=EventKind.REPLY, at=at, body=canonical_json(body)))

    def go(self, kind: EventKind, head: str, *, at: str) -> None:
        """Another message becomes the last one."""
        self._write(Record(kind=kind, at=at, body=canonical_json({"head": head})))

    def rename(self, title: str, *, at: str) -> None:
        """A title."""
        self._write(Record(kind=EventKind.RENAME, at=at, body=canonical_json({"title": title})))

    def _named(self, body: Mapping[str, object], role: Voice) -> dict[str, object]:
        parent = str(body["parent"])
        node = Node(id="", parent=parent, role=role, text=str(body["text"]), rest=body)
        return {**body, "id": derive_id(self.log.conversation, parent, node)}

    def _write(self, record: Record) -> None:
        self.log.extend([record])
        self.records.append(record)
