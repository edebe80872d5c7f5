"""Writes events down as a conversation does, and folds them."""

from collections.abc import Iterable, Sequence

from lamella.core.log.call import Call
from lamella.core.log.events.codec import write_calls, write_event, write_message, write_reply, write_results
from lamella.core.log.events.kinds import Event
from lamella.core.log.ids import Voice, message_id, turn_id
from lamella.core.log.log import Log
from lamella.core.log.nodes import derive_id
from lamella.core.log.records import Record, Written
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import NativeReply, Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput

AT = "2026-03-01T12:00:00Z"
CHAT = "chat"


class Scribe:
    """A log in the making, with all that was written for it."""

    def __init__(self) -> None:
        self.log = Log(CHAT)
        self.records: list[Record] = []
        self.contents: dict[str, bytes] = {}

    def write(self, written: Written) -> None:
        self.records += written.records
        self.contents |= written.contents
        self.log.extend(written.records)

    def ask(self, text: str, *, edits: str | None = None, **settings: object) -> str:
        turn = Turn(text=text, typed=text, **settings)  # type: ignore[arg-type]
        parent = self.log.nodes[edits].parent if edits else self.log.head
        name = turn_id(CHAT, parent, turn)
        self.write(write_message(turn, message_id=name, parent=parent, at=AT, edits=edits))
        return name

    def reply(self, text: str, calls: Iterable[Call] = ()) -> str:
        name = message_id(CHAT, parent=self.log.head, role=Voice.REPLY, text=text)
        self.write(write_reply(text, message_id=name, parent=self.log.head, at=AT, calls=calls))
        return name

    def call(self, *names: str, text: str = "", native: str | None = None, made: Sequence[Call] = ()) -> None:
        """The model calls tools; each call has its tool's name for an id."""
        calls = tuple(ToolCall(id=name, name=name, arguments=f'{{"of":"{name}"}}') for name in names)
        carried = None if native is None else NativeReply(format="wire", json=native)
        reply = Reply(text=text, stop=StopReason.TOOLS, calls=calls, carried=carried)
        self.write(write_calls(reply, parent=self.log.head, at=AT, made=made))

    def give(self, *outputs: tuple[str, str]) -> None:
        """What the tools gave back: names with outputs; one that begins with a mark failed."""
        given = [ToolOutput(call=name, output=text, failed=text.startswith("!")) for name, text in outputs]
        self.write(write_results(given, parent=self.log.head, at=AT))

    def run(self, name: str, output: str, text: str = "") -> None:
        """A whole round with one call."""
        self.call(name, text=text)
        self.give((name, output))

    def do(self, event: Event) -> None:
        self.write(write_event(event, at=AT))


def say(scribe: Scribe, turns: int = 3) -> list[str]:
    """So many turns, q1 and a1 to begin with; the ids of all messages."""
    names = []
    for number in range(1, turns + 1):
        names += [scribe.ask(f"q{number}"), scribe.reply(f"a{number}")]
    return names


def texts(log: Log, head: str | None = None) -> list[str]:
    return [node.text for told in log.path(head) for node in (told.message, told.reply) if node is not None]


def check(scribe: Scribe) -> None:
    """Every id is the one its message has by what it says, and folding all again gives the same."""
    log, again = scribe.log, Log(CHAT)
    again.extend(scribe.records)
    assert again == log
    assert again.branches() == log.branches()
    for name, node in log.nodes.items():
        assert derive_id(CHAT, node.event) == name == node.id
        assert not node.parent or node.parent in log.nodes
    parents = {node.parent for node in log.nodes.values()}
    assert set(log.nodes) - parents <= set(log.branches())
