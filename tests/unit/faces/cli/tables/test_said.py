"""What was said, in lines that can be forked at."""

from lamella.engine.keeping.marks import CompactionMark
from lamella.faces.cli.tables.said import tell_said, tell_source
from lamella.views.chats import ReplyBody, SaidBody, SourceBody

REPLY = ReplyBody(message="a1", at="", text="Beans,\nand peas.\x1b[2J")
SAID = SaidBody(message="q1", at="", text="What grows?", attached=["garden.md"], reply=REPLY)


def test_a_turn_has_its_messages_with_their_ids_and_what_came_with_them() -> None:
    assert tell_said(SAID, ()) == [
        "q1  user: What grows?",
        "                  + garden.md",
        "a1  reply: Beans,\nand peas.\\x1b[2J",
    ]


def test_marks_stand_below_the_message_they_followed_and_no_other() -> None:
    marks = [CompactionMark(message=name, voided=(f"r-{name}",)) for name in ("a1", "q1", "gone")]
    lines = tell_said(SAID, marks)
    assert lines[2] == "                  ~ undone: r-q1"
    assert lines[4:] == ["                  ~ undone: r-a1"]


def test_a_question_without_an_answer_is_a_line() -> None:
    waiting = SaidBody(message="q1", at="", text="What grows?", attached=[], reply=None)
    assert tell_said(waiting, ()) == ["q1  user: What grows?"]


def test_a_source_is_its_place_with_the_passage_below_it() -> None:
    source = SourceBody(number=2, id="a.md", title="a", path="a.md", place="Beds#North", text="Beans,\n\nand peas.")
    assert tell_source(source) == [
        "                  [^2] a.md > Beds > North",
        "                    | Beans,",
        "                    |",
        "                    | and peas.",
    ]


def test_a_source_that_was_erased_is_told_so() -> None:
    source = SourceBody(number=1, id="a.md", title="", path="", place="", text=None)
    assert tell_source(source) == ["                  [^1] a.md", "                    | erased since"]
