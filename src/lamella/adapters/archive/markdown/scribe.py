"""Writing events down as a conversation would have, for messages that come from a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lamella.core.log.events.changes import ForkEvent, RenameEvent, SwitchEvent
from lamella.core.log.events.codec import make_record
from lamella.core.log.events.hashes import named_hashes
from lamella.core.log.events.kinds import Event
from lamella.core.log.events.message import MessageEvent, address
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import StoredRound, make_rounds
from lamella.core.log.ids import Voice
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, derive_id
from lamella.core.log.records import Record
from lamella.core.log.terms import Rewrite
from lamella.core.values import replace


@dataclass(slots=True, kw_only=True)
class Scribe:
    """Appends to a log; ``records`` are the events written so far."""

    log: Log
    records: list[Record] = field(default_factory=list)

    def ask(self, event: MessageEvent, *, at: str, edits: Node | None = None) -> None:
        """A question, or one in place of another. One before it that was never answered gets the empty reply."""
        if edits is None and self.log.head and self.log.nodes[self.log.head].role is Voice.USER:
            self.reply("", at=at)
        rewritten = self.log.rewritten if edits is None else Rewrite.HISTORY_EDITED
        asked = replace(event, parent=self.log.head if edits is None else edits.parent, rewritten=rewritten)
        name = derive_id(self.log.conversation, asked)
        self.write(
            address(asked, message_id=name, parent=asked.parent, edits=None if edits is None else edits.id), at=at
        )

    def reply(self, text: str, *, at: str, rounds: Iterable[StoredRound] = ()) -> None:
        """An answer to the question asked last, with the tool rounds that led to it."""
        for event in make_rounds(rounds, parent=self.log.head):
            self.write(event, at=at)
        answer = ReplyEvent(id="", parent=self.log.head, text=text)
        self.write(replace(answer, id=derive_id(self.log.conversation, answer)), at=at)

    def go(self, event: ForkEvent | SwitchEvent, *, at: str) -> None:
        """Another message becomes the last one."""
        self.write(event, at=at)

    def rename(self, title: str, *, at: str) -> None:
        """A title."""
        self.write(RenameEvent(title=title), at=at)

    def write(self, event: Event, *, at: str) -> None:
        """Any event, after those before."""
        record = make_record(event, at=at, contents=named_hashes(event))
        self.log.extend([record])
        self.records.append(record)
