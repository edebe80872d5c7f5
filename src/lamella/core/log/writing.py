"""Writing: what a conversation does, as records to append with the contents that they bring."""

from collections.abc import Iterable, Sequence

from lamella.core.log.call import Call
from lamella.core.log.events.call import store_call
from lamella.core.log.events.changes import ErasureEvent
from lamella.core.log.events.codec import write_event
from lamella.core.log.events.compaction import gather_receipt, make_compaction
from lamella.core.log.events.message import gather_turn, make_message
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import make_calls, make_results
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import Written
from lamella.core.log.turn import Turn
from lamella.core.messages.delta import Reply
from lamella.core.messages.rounds import ToolOutput, ToolRound


def write_message(turn: Turn, *, message_id: str, parent: str, at: str, edits: str | None = None) -> Written:
    """The event of a message asked, or of one that replaces another."""
    event = make_message(turn, message_id=message_id, parent=parent, edits=edits)
    return write_event(event, at=at, contents=gather_turn(turn))


def write_reply(text: str, *, message_id: str, parent: str, at: str, calls: Iterable[Call] = ()) -> Written:
    """The event of an answer, with the model calls that gave it. The rounds of its question become its own."""
    stored = tuple(map(store_call, calls))
    return write_event(ReplyEvent(id=message_id, parent=parent, text=text, calls=stored), at=at)


def write_calls(reply: Reply | ToolRound, *, parent: str, at: str, made: Iterable[Call] = ()) -> Written:
    """The event of an answer that calls tools, before anything is done about it; ``made`` are its model calls.

    ``parent`` is the question that is being answered. Outputs of a round that is told again are written on their own.
    """
    event, contents = make_calls(reply, parent=parent, made=map(store_call, made))
    return write_event(event, at=at, contents=contents)


def write_results(outputs: Iterable[ToolOutput], *, parent: str, at: str) -> Written:
    """The event of what came back for the calls written last: one output for each of them."""
    event, contents = make_results(outputs, parent=parent)
    return write_event(event, at=at, contents=contents)


def write_receipt(receipt: Receipt, *, at: str, before: str | None = None) -> Written:
    """The event of a compaction; ``before`` names a message that was asked already and is sent again after it."""
    return write_event(make_compaction(receipt, before=before), at=at, contents=gather_receipt(receipt))


def write_erasure(artifact: str, hashes: Sequence[str], *, at: str) -> Written:
    """The event that says an artifact was erased, and which contents went with it."""
    return write_event(ErasureEvent(artifact=artifact, contents=tuple(hashes)), at=at)


def join_written(*parts: Written) -> Written:
    """Several events in one append."""
    records = tuple(record for part in parts for record in part.records)
    contents: dict[str, bytes] = {}
    for part in parts:
        contents.update(part.contents)
    return Written(records=records, contents=contents)
