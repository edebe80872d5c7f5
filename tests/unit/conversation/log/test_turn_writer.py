"""The turn writer: turns and replies as events, under the ids they will always have."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from tests.unit.conversation.backends import Failing, make_backend

from lamella.conversation.adapters import AbandonedTurn
from lamella.conversation.conversation import Conversation
from lamella.conversation.log import TurnWriter
from lamella.conversation.turn import ModelAnswer
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import StoredCitation, Turn
from lamella.core.messages import ModelReply, StopReason
from lamella.core.values import replace
from lamella.errors import StoreUnavailableError
from lamella.ports import Checkpoint, ConversationListItem, Result
from lamella.stores.memory import InMemoryStore

NOTE = make_artifact(ArtifactKind.NOTE, text="A", source=ArtifactSource(path="a.md"))
EMPTY = "an id that the runner gives to the empty reply"


class Book:
    """What a writer wrote, append by append."""

    def __init__(self) -> None:
        self.written: list[EventBatch] = []

    def bodies(self, append: int) -> list[tuple[str, dict[str, object]]]:
        return [(record.kind.value, json.loads(record.body)) for record in self.written[append].records]


def keep(book: Book, *, edits: str | None = None) -> TurnWriter:
    log = FoldedLog("chat", head="p")
    return TurnWriter(
        log, name="chat", append=book.written.append, reload=_never, format_time=_moment, edited_message_id=edits
    )


def write(writer: TurnWriter, turn: Turn, parent: str, *, unanswered: str | None = None) -> None:
    writer.write_turn(
        turn,
        message_id="m",
        parent_id=parent,
        abandoned=None if unanswered is None else AbandonedTurn(id=unanswered),
        receipt=None,
        at=None,
    )


def _never() -> None:
    raise AssertionError("nobody else writes here")


def _moment(at: datetime | None) -> str:
    return "now" if at is None else at.isoformat()


def test_turn_is_one_event_with_contents() -> None:
    book, turn = Book(), Turn(text="one", attached=(NOTE,))
    write(keep(book), turn, "p")
    ((kind, body),) = book.bodies(0)
    assert (kind, body["id"], body["parent"]) == ("message", "m", "p")
    assert book.written[0].contents == {NOTE.hash: b"A"}
    assert book.written[0].records[0].at == "now"


def test_unanswered_turn_gets_empty_reply_in_same_append() -> None:
    book = Book()
    write(keep(book), Turn(text="two", attached=(NOTE,)), EMPTY, unanswered="waiting")
    (reply, empty), (message, asked) = book.bodies(0)
    assert (reply, empty) == ("reply", {"id": EMPTY, "parent": "waiting", "text": ""})
    assert (message, asked["parent"]) == ("message", EMPTY)
    assert list(book.written[0].contents) == [NOTE.hash]


def test_reply_has_its_id_and_question() -> None:
    book, at = Book(), datetime(2026, 3, 1, tzinfo=UTC)
    answer = ModelAnswer(
        reply=ModelReply(text="yes [^1]", stop=StopReason.END), citations=(StoredCitation(id="a.md", place="Costs"),)
    )
    keep(book).write_reply(answer, message_id="a", parent_id="p", at=at)
    said = {"id": "a", "parent": "p", "text": "yes [^1]", "sources": [{"id": "a.md", "place": "Costs"}]}
    assert book.bodies(0) == [("reply", said)]
    assert book.written[0].records[0].at == at.isoformat()


def test_only_the_first_turn_of_a_writer_replaces_a_message() -> None:
    book = Book()
    writer = keep(book, edits="old")
    write(writer, Turn(text="one"), "")
    write(writer, Turn(text="two"), "x")
    assert [(kind, body.get("target")) for append in (0, 1) for kind, body in book.bodies(append)] == [
        ("edit", "old"),
        ("message", None),
    ]


def test_failed_edit_is_still_edit_on_retry() -> None:
    failing = Failing(InMemoryStore())

    def append(written: EventBatch) -> None:
        failing.append("chat", written, expected=0)

    writer = TurnWriter(
        FoldedLog("chat"), name="chat", append=append, reload=_never, format_time=_moment, edited_message_id="old"
    )
    failing.down = True
    with pytest.raises(StoreUnavailableError):
        write(writer, Turn(text="one"), "")
    failing.down = False
    write(writer, Turn(text="one"), "")
    assert [record.kind.value for record in failing.load("chat")] == ["edit"]


class _LookedInto(InMemoryStore):
    """A store that remembers what was looked for in it."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[str] = []

    def find_conversation(self, name: str) -> ConversationListItem | None:
        self.looks.append("name")
        return super().find_conversation(name)

    def read_checkpoints(
        self, conversation_key: str, decode: Callable[[Checkpoint], Result], *, with_separate_data: bool = False
    ) -> Sequence[Result]:
        self.looks.append("checkpoints")
        return super().read_checkpoints(conversation_key, decode, with_separate_data=with_separate_data)

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        self.looks.append("events")
        return super().load(conversation_key, after=after)


def test_new_conversation_is_looked_up_once_and_existing_one_read_once() -> None:
    store = _LookedInto()
    backend = replace(make_backend(store), make_key=lambda name: f"key of {name}")
    conversation = Conversation.open(backend, "chat", {})
    assert store.looks == ["name"]
    conversation.rename("T")
    store.looks.clear()
    assert (Conversation.open(backend, "chat", {}).id, store.looks) == (
        "key of chat",
        ["name", "checkpoints", "events"],
    )
