"""A conversation as data: branches and what was said."""

from lamella.core.artifacts.model import ArtifactId, Kind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.events.message import MessageEvent, StoredSystem
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.events.rounds import ERASED_OUTPUT, StoredResult, StoredRound, StoredToolCall
from lamella.core.log.nodes import Node, Told
from lamella.core.values import replace
from lamella.engine.sources import ReplySource
from lamella.views.chats import view_branch, view_branch_said, view_rounds, view_said


def ref(name: str, content: str) -> StoredArtifact:
    return StoredArtifact(id=ArtifactId(name), kind=Kind.NOTE, title="", hash=content, source=StoredSource())


QUESTION = MessageEvent(
    id="q1",
    parent="",
    text="What grows?",
    results=(ref("tool:weather", "h1"),),
    attached=(ref("garden.md", "h2"), ref("garden.md", "h3")),
    system=StoredSystem(inlined=(ref("style.md", "h4"),)),
)
ASKED = Node(event=QUESTION, at="2026-03-01T12:00:00Z")
ANSWER = Node(event=ReplyEvent(id="a1", parent="q1", text="Beans."), at="2026-03-01T12:00:04Z")
TURN = Told(message=ASKED, reply=ANSWER)


def test_a_turn_as_it_was_said_names_once_what_came_with_it() -> None:
    assert view_said(TURN) == {
        "message": "q1",
        "at": "2026-03-01T12:00:00Z",
        "text": "What grows?",
        "attached": ["tool:weather", "garden.md", "style.md"],
        "reply": {"message": "a1", "at": "2026-03-01T12:00:04Z", "text": "Beans."},
    }


def test_a_question_that_waits_has_no_reply() -> None:
    said = view_said(Told(message=Node(event=MessageEvent(id="q1", parent="", text="What grows?")), reply=None))
    assert (said["reply"], said["attached"]) == (None, [])


def test_a_branch_is_its_last_message_its_length_and_its_last_turn() -> None:
    assert view_branch("a1", [TURN, TURN], active=True) == {
        "branch": "a1",
        "active": True,
        "turns": 2,
        "last": view_said(TURN),
    }
    assert view_branch("a1", [], active=False) == {"branch": "a1", "active": False, "turns": 0, "last": None}


def test_an_output_that_was_erased_says_so_though_the_same_content_came_again() -> None:
    made = StoredRound(
        text="",
        calls=(StoredToolCall(id="c1", name="look", arguments="{}"),),
        carried=None,
        made=(),
        results=(StoredResult(call="c1", output="sha", failed=False),),
    )
    told = replace(TURN, reply=replace(ANSWER, rounds=(made,), erased=("sha",)))
    (body,) = view_rounds(told, {"sha": b"Page one."})
    assert [call["output"] for call in body["calls"]] == [ERASED_OUTPUT]


def test_a_turn_of_a_branch_has_what_the_numbers_in_its_reply_point_to() -> None:
    source = ReplySource(number=1, id="garden.md", title="garden", path="garden.md", place="Beds", text="Beans.")
    said = view_branch_said([TURN], {}, marks=(), sources=[[source]])
    turns = said["turns"]
    assert isinstance(turns, list)
    assert turns[0]["sources"] == [
        {"number": 1, "id": "garden.md", "title": "garden", "path": "garden.md", "place": "Beds", "text": "Beans."}
    ]
