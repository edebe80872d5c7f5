"""Edits by hand: the file's text wins, context stays with its message, and the branch as it was is kept."""

import pytest
from tests.unit.adapters.archive.markdown.chats import (
    attached,
    chat,
    fold,
    make_desk,
    next_turn,
    page,
    said,
    take_in,
    take_out,
)

from lamella.adapters.archive.markdown.archive import parse_archive, render_archive
from lamella.core.log.records import EventKind
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import Backend
from lamella.errors import BadInputError
from lamella.holdings import Chronicle

EDITED = "The messages were edited by hand; the file's text is used, and the branch as it was is kept beside it."
STAMP = "[Timestamp: 2026/11/15 10:00:07]"


@pytest.fixture
def desk() -> Backend:
    return make_desk()


@pytest.fixture
def text(desk: Backend) -> str:
    """Three turns, the second with a page."""
    stored = chat(desk, ("one", "first answer"))
    stored.ask(Ask(text="two", attach=(page("https://example.org", "the page"),)))
    stored.reply("second answer")
    stored.ask(Ask(text="three"))
    stored.reply("third answer")
    return render_archive(take_out(desk))


def read(desk: Backend, text: str) -> Chronicle:
    """The edited conversation: what was, then the edits; all of it verifies, goes on, and comes in twice as once."""
    chronicle = parse_archive(text, sources=None)
    before = take_out(desk)
    assert chronicle.records[: len(before.records)] == before.records
    assert take_in(desk, chronicle) == "extended"
    assert take_in(desk, parse_archive(text, sources=None)) == "same"
    assert parse_archive(render_archive(take_out(desk)), sources=None) == take_out(desk)
    return chronicle


def test_a_changed_question_is_a_branch_with_the_same_context(desk: Backend, text: str) -> None:
    old = said(take_out(desk))
    edited = read(desk, text.replace("**user**: two", "**user**: zwei"))
    assert edited.warnings == (EDITED,)
    assert said(edited) == ["one", "first answer", "zwei", "second answer", "three", "third answer"]
    assert attached(edited) == [[], ["https://example.org"], []]
    log = fold(edited)
    assert [node.text for told in log.path(log.branches()[0]) for node in (told.message, told.reply) if node] == old
    assert "the page" in next_turn(desk).messages[0].text


def test_a_changed_answer_is_another_answer_to_the_same_question(desk: Backend, text: str) -> None:
    edited = read(desk, text.replace("first answer", "first answer, mended", 1))
    assert said(edited)[:3] == ["one", "first answer, mended", "two"]
    assert len(fold(edited).branches()) == 2
    assert attached(edited) == [[], ["https://example.org"], []]


def test_a_changed_last_answer_adds_two_events_and_rewrites_nothing(desk: Backend, text: str) -> None:
    before = take_out(desk)
    edited = read(desk, text.replace("third answer", "third answer, mended", 1))
    kinds = [record.kind for record in edited.records[len(before.records) :]]
    assert kinds == [EventKind.SWITCH, EventKind.REPLY]


def test_a_turn_taken_out_is_gone_from_the_branch_and_the_others_keep_their_context(desk: Backend, text: str) -> None:
    start, end = text.index("**user**: one"), text.index("**user**: two")
    edited = read(desk, text[:start] + text[end:])
    assert said(edited) == ["two", "second answer", "three", "third answer"]
    assert attached(edited) == [["https://example.org"], []]


def test_a_turn_put_in_has_no_context_and_moves_none(desk: Backend, text: str) -> None:
    added = f"**user**: new\n{STAMP}\n\n**ai**: answer to new\n{STAMP}\n\n"
    edited = read(desk, text.replace("**user**: two", f"{added}**user**: two"))
    assert said(edited)[2:5] == ["new", "answer to new", "two"]
    assert attached(edited) == [[], [], ["https://example.org"], []]
    assert edited.warnings == (EDITED,)


def test_context_named_for_a_new_turn_is_said_not_to_be_attached(desk: Backend, text: str) -> None:
    added = f"**user**: new\n[Context: Notes: a.md, b.md]\n{STAMP}\n\n"
    edited = read(desk, text.replace("<!-- lamella", f"{added}<!-- lamella"))
    assert edited.warnings == (EDITED, "Turn 4 is new in the file; its context is not attached: a.md, b.md.")
    assert said(edited)[-1] == "new"


def test_turns_added_at_the_end_go_on_from_the_last(desk: Backend, text: str) -> None:
    before = take_out(desk)
    edited = read(desk, text + "\n**user**: four\n\n**user**: five\n\n**ai**: fifth answer\n")
    assert said(edited)[-5:] == ["third answer", "four", "", "five", "fifth answer"]
    assert len(fold(edited).branches()) == 1
    assert edited.records[len(before.records)].kind is EventKind.MESSAGE


def test_turns_taken_off_the_end_leave_a_branch_that_ends_earlier(desk: Backend, text: str) -> None:
    start, end = text.index("**user**: three"), text.index("<!-- lamella")
    edited = read(desk, text[:start] + text[end:])
    assert said(edited) == ["one", "first answer", "two", "second answer"]
    assert edited.records[-1].kind is EventKind.FORK
    assert len(fold(edited).branches()) == 2


def test_all_messages_may_be_taken_out(desk: Backend, text: str) -> None:
    start, end = text.index("**user**: one"), text.index("<!-- lamella")
    edited = read(desk, text[:start] + text[end:])
    assert said(edited) == []


def test_an_answer_taken_away_leaves_its_question_open(desk: Backend, text: str) -> None:
    start, end = text.index("**ai**: third"), text.index("<!-- lamella")
    edited = read(desk, text[:start] + text[end:])
    assert said(edited)[-1] == "three"


def test_an_open_question_answered_by_hand_is_answered(desk: Backend) -> None:
    chat(desk, ("one", "two")).ask(Ask(text="open"))
    text = render_archive(take_out(desk))
    before = take_out(desk)
    edited = read(desk, text.replace("<!-- lamella", "**ai**: closed\n\n<!-- lamella"))
    assert said(edited)[-2:] == ["open", "closed"]
    assert len(edited.records) == len(before.records) + 1


def test_a_template_typed_by_the_user_stays_what_it_was_where_the_text_is_the_same(desk: Backend) -> None:
    stored = chat(desk)
    attach = (page("https://example.org", "p"),)
    stored.ask(Ask(text="about {} here", attach=attach))
    stored.reply("answer")
    stored.ask(Ask(text="last"))
    text = render_archive(take_out(desk))
    edited = read(desk, text.replace("**ai**: answer", "**ai**: mended"))
    assert said(edited) == [said(edited)[0], "mended", "last"]


def test_blanks_that_an_editor_trimmed_are_no_edit(desk: Backend) -> None:
    chat(desk, ("one  \ntwo\n\n", "\nanswer \n"))
    chronicle = take_out(desk)
    text = render_archive(chronicle)
    trimmed = "\n".join(line.rstrip() for line in text.split("\n"))
    assert trimmed != text
    assert parse_archive(trimmed, sources=None) == chronicle


def test_a_changed_context_or_time_changes_nothing_and_it_is_said(desk: Backend, text: str) -> None:
    changed = text.replace("URLs: https://example.org]", "URLs: https://elsewhere.org]")
    chronicle = parse_archive(changed, sources=None)
    assert chronicle.records == take_out(desk).records
    assert chronicle.warnings == ("The context or time of message 3 was changed by hand; that changes nothing.",)


def test_a_changed_title_renames_the_conversation(desk: Backend, text: str) -> None:
    edited = read(desk, text.replace('title: ""', "title: By hand"))
    assert edited.title == "By hand"
    assert fold(edited).title == "By hand"
    assert edited.warnings == ("The title was changed by hand; the conversation is renamed.",)


def test_text_before_the_messages_is_no_part_of_the_conversation(desk: Backend, text: str) -> None:
    assert parse_archive(text.replace("**user**: one", "# Mine\n\n**user**: one"), sources=None) == take_out(desk)


def test_the_time_of_an_edited_message_is_the_one_the_file_shows(desk: Backend, text: str) -> None:
    before = take_out(desk).records[-1]
    changed = text.replace("third answer", "mended", 1)
    assert parse_archive(changed, sources=None).records[-1].at == before.at
    late = changed.replace("**ai**: mended\n[Timestamp: 2026/11/15 10:00:05]", "**ai**: mended\n[Timestamp: {}]")
    for shown, at in (("2027/01/02 03:04:05", "2027-01-02T03:04:05Z"), ("soon", before.at)):
        assert parse_archive(late.replace("{}", shown, 1), sources=None).records[-1].at == at
    assert parse_archive(late.replace("\n[Timestamp: {}]", "", 1), sources=None).records[-1].at == before.at


def test_a_change_in_the_whole_file_that_reaches_the_comment_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="has another text than it was written with") as caught:
        parse_archive(text.replace("third answer", "mended"), sources=None)
    assert "Undo" in caught.value.hint
