"""A conversation as JSON: branches and messages."""

from tests.bodies import as_json

from lamella.conversation.note_index import Citation
from lamella.core.artifacts.model import ArtifactId, ArtifactKind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.events.message import (
    ERASED_OUTPUT,
    QuestionEvent,
    StoredRound,
    StoredSystem,
    StoredToolCall,
    StoredToolResult,
)
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import MessageNode, TurnRecord
from lamella.core.values import replace
from lamella.schemas.messages import branch_to_json, rounds_to_json, turns_to_json


def ref(name: str, content: str) -> StoredArtifact:
    return StoredArtifact(id=ArtifactId(name), kind=ArtifactKind.NOTE, title="", hash=content, source=StoredSource())


QUESTION = QuestionEvent(
    id="q1",
    parent="",
    text="What grows?",
    results=(ref("tool:weather", "h1"),),
    attached=(ref("garden.md", "h2"), ref("garden.md", "h3")),
    system=StoredSystem(inlined=(ref("style.md", "h4"),)),
)
ASKED = MessageNode(event=QUESTION, at="2026-03-01T12:00:00Z")
ANSWER = MessageNode(event=ReplyEvent(id="a1", parent="q1", text="Beans."), at="2026-03-01T12:00:04Z")
TURN = TurnRecord(message=ASKED, reply=ANSWER)


def test_turn_json_lists_attachments_once() -> None:
    (turn,) = turns_to_json([TURN], {}, [()])
    assert as_json(turn) == {
        "message": "q1",
        "at": "2026-03-01T12:00:00Z",
        "text": "What grows?",
        "attached": ["tool:weather", "garden.md", "style.md"],
        "reply": {
            "message": "a1",
            "at": "2026-03-01T12:00:04Z",
            "text": "Beans.",
            "cut": None,
            "stop": None,
            "model": None,
            "tokens": None,
            "cost": None,
        },
        "turn": 1,
        "rounds": [],
        "sources": [],
    }


def test_pending_question_json_has_no_reply() -> None:
    question = MessageNode(event=QuestionEvent(id="q1", parent="", text="What grows?"))
    (said,) = turns_to_json([TurnRecord(message=question, reply=None)], {}, [()])
    assert (said.reply, list(said.attached)) == (None, [])


def test_branch_json_has_last_message_length_and_turn() -> None:
    body = as_json(branch_to_json("a1", [TURN, TURN], active=True))
    last = body.pop("last")
    assert body == {"branch": "a1", "active": True, "turns": 2}
    assert (last["message"], last["reply"]["text"]) == ("q1", "Beans.")
    assert as_json(branch_to_json("a1", [], active=False)) == {
        "branch": "a1",
        "active": False,
        "turns": 0,
        "last": None,
    }


def test_erased_output_is_marked_despite_equal_content() -> None:
    made = StoredRound(
        text="",
        calls=(StoredToolCall(id="c1", name="look", arguments="{}"),),
        provider_reply=None,
        model_calls=(),
        results=(StoredToolResult(call="c1", output="sha", failed=False),),
    )
    record = replace(TURN, reply=replace(ANSWER, rounds=(made,), erased=("sha",)))
    (body,) = rounds_to_json(record, {"sha": b"Page one."})
    assert [call.output for call in body.calls] == [ERASED_OUTPUT]


def test_turn_json_has_sources_of_reply() -> None:
    source = Citation(number=1, id="garden.md", title="garden", path="garden.md", place="Beds", text="Beans.")
    (turn,) = turns_to_json([TURN], {}, [[source]])
    assert as_json(turn)["sources"] == [
        {"number": 1, "id": "garden.md", "title": "garden", "path": "garden.md", "place": "Beds", "text": "Beans."}
    ]
