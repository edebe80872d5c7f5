"""Writes events down as a conversation does, and folds them."""

from collections.abc import Iterable, Sequence

from lamella.core.log.call import ModelCall
from lamella.core.log.events.codec import (
    build_event_batch,
    build_question_batch,
    build_reply_batch,
    build_tool_calls_batch,
    build_tool_results_batch,
)
from lamella.core.log.events.kinds import Event, EventBatch, EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor, Turn, compute_message_id, question_id
from lamella.core.log.turn_records import derive_message_id
from lamella.core.messages import ModelReply, ProviderReply, StopReason, ToolCall, ToolOutput

AT = "2026-03-01T12:00:00Z"
CHAT = "chat"


class Scribe:
    """A log in the making, with all that was written for it."""

    def __init__(self) -> None:
        self.log = FoldedLog(CHAT)
        self.records: list[EventRecord] = []
        self.contents: dict[str, bytes] = {}

    def write(self, written: EventBatch) -> None:
        self.records += written.records
        self.contents |= written.contents
        self.log.extend(written.records)

    def ask(self, text: str, *, edits: str | None = None, **settings: object) -> str:
        turn = Turn(text=text, typed=text, **settings)  # type: ignore[arg-type]
        parent = self.log.nodes[edits].parent if edits else self.log.head
        name = question_id(CHAT, parent, turn)
        self.write(build_question_batch(turn, message_id=name, parent=parent, timestamp=AT, edited_message=edits))
        return name

    def reply(self, text: str, calls: Iterable[ModelCall] = ()) -> str:
        name = compute_message_id(CHAT, parent=self.log.head, role=MessageAuthor.REPLY, text=text)
        self.write(build_reply_batch(text, message_id=name, parent=self.log.head, timestamp=AT, model_calls=calls))
        return name

    def call(self, *names: str, text: str = "", native: str | None = None, made: Sequence[ModelCall] = ()) -> None:
        """The model calls tools; each call has its tool's name for an id."""
        calls = tuple(ToolCall(id=name, name=name, arguments=f'{{"of":"{name}"}}') for name in names)
        carried = None if native is None else ProviderReply(format="wire", json=native)
        reply = ModelReply(text=text, stop=StopReason.TOOL_CALLS, calls=calls, provider_reply=carried)
        self.write(build_tool_calls_batch(reply, parent=self.log.head, timestamp=AT, model_calls=made))

    def give(self, *outputs: tuple[str, str]) -> None:
        """What the tools gave back: names with outputs; one that begins with a mark failed."""
        given = [ToolOutput(call=name, output=text, failed=text.startswith("!")) for name, text in outputs]
        self.write(build_tool_results_batch(given, parent=self.log.head, timestamp=AT))

    def run(self, name: str, output: str, text: str = "") -> None:
        """A whole round with one call."""
        self.call(name, text=text)
        self.give((name, output))

    def do(self, event: Event) -> None:
        self.write(build_event_batch(event, timestamp=AT))


def say(scribe: Scribe, turns: int = 3) -> list[str]:
    """So many turns, q1 and a1 to begin with; the ids of all messages."""
    names = []
    for number in range(1, turns + 1):
        names += [scribe.ask(f"q{number}"), scribe.reply(f"a{number}")]
    return names


def texts(log: FoldedLog, head: str | None = None) -> list[str]:
    return [
        node.text for record in log.branch_records(head) for node in (record.message, record.reply) if node is not None
    ]


def check(scribe: Scribe) -> None:
    """Every id is the one its message has by what it says, and folding all again gives the same."""
    log, again = scribe.log, FoldedLog(CHAT)
    again.extend(scribe.records)
    assert again == log
    assert again.list_branch_heads() == log.list_branch_heads()
    for name, node in log.nodes.items():
        assert derive_message_id(CHAT, node.event) == name == node.id
        assert not node.parent or node.parent in log.nodes
    parents = {node.parent for node in log.nodes.values()}
    assert set(log.nodes) - parents <= set(log.list_branch_heads())
