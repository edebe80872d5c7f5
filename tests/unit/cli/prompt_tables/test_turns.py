"""What was said, in lines that can be forked at."""

from lamella.cli.prompt_tables import format_source_lines, format_turn
from lamella.conversation.log import CompactionMarker
from lamella.schemas.messages import CitedSourceJson, ReplyJson, TurnJson

REPLY = ReplyJson(message="a1", at="", text="Beans,\nand peas.\x1b[2J", cut=None)
SAID = TurnJson(message="q1", at="", text="What grows?", attached=["garden.md"], reply=REPLY)


def test_a_turn_has_its_messages_with_their_ids_and_what_came_with_them() -> None:
    assert format_turn(SAID, ()) == [
        "q1  user: What grows?",
        "                  + garden.md",
        "a1  reply: Beans,\nand peas.\\x1b[2J",
    ]


def test_marks_stand_below_the_message_they_followed_and_no_other() -> None:
    markers = [CompactionMarker(message=name, voided=(f"r-{name}",)) for name in ("a1", "q1", "gone")]
    lines = format_turn(SAID, markers)
    assert lines[2] == "                  ~ undone: r-q1"
    assert lines[4:] == ["                  ~ undone: r-a1"]


def test_a_question_without_an_answer_is_a_line() -> None:
    waiting = TurnJson(message="q1", at="", text="What grows?", attached=[], reply=None)
    assert format_turn(waiting, ()) == ["q1  user: What grows?"]


def test_a_source_is_its_place_with_the_passage_below_it() -> None:
    source = CitedSourceJson(
        number=2, id="a.md", title="a", path="a.md", place="Beds#North", text="Beans,\n\nand peas."
    )
    assert format_source_lines(source) == [
        "                  [^2] a.md > Beds > North",
        "                    | Beans,",
        "                    |",
        "                    | and peas.",
    ]


def test_a_source_that_was_erased_is_told_so() -> None:
    source = CitedSourceJson(number=1, id="a.md", title="", path="", place="", text=None)
    assert format_source_lines(source) == ["                  [^1] a.md", "                    | deleted"]
