"""A conversation as lines with the ids to fork at."""

from lamella.cli.prompt_tables import format_source_lines, format_turn
from lamella.conversation.log import CompactionMarker
from lamella.schemas.messages import CitedSourceJson, ReplyJson, TurnJson

REPLY = ReplyJson(message="a1", at="", text="Beans,\nand peas.\x1b[2J", cut=None)
SAID = TurnJson(message="q1", at="", text="What grows?", attached=["garden.md"], reply=REPLY)


def test_turn_is_formatted_with_ids_and_attachments() -> None:
    assert format_turn(SAID, ()) == [
        "q1  user: What grows?",
        "                  + garden.md",
        "a1  reply: Beans,\nand peas.\\x1b[2J",
    ]


def test_markers_follow_their_message() -> None:
    markers = [CompactionMarker(message=name, voided=(f"r-{name}",)) for name in ("a1", "q1", "gone")]
    lines = format_turn(SAID, markers)
    assert lines[2] == "                  ~ undone: r-q1"
    assert lines[4:] == ["                  ~ undone: r-a1"]


def test_question_without_an_answer_is_a_line() -> None:
    waiting = TurnJson(message="q1", at="", text="What grows?", attached=[], reply=None)
    assert format_turn(waiting, ()) == ["q1  user: What grows?"]


def test_source_is_formatted_with_place_and_passage() -> None:
    source = CitedSourceJson(
        number=2, id="a.md", title="a", path="a.md", place="Beds#North", text="Beans,\n\nand peas."
    )
    assert format_source_lines(source) == [
        "                  [^2] a.md > Beds > North",
        "                    | Beans,",
        "                    |",
        "                    | and peas.",
    ]


def test_erased_source_is_marked() -> None:
    source = CitedSourceJson(number=1, id="a.md", title="", path="", place="", text=None)
    assert format_source_lines(source) == ["                  [^1] a.md", "                    | deleted"]
