"""Manual edits: the text of the file wins, context stays with its message, and the old branch is kept."""

import pytest
from tests.unit.archive.markdown.chats import (
    attached,
    chat,
    export_log,
    fold,
    import_log,
    make_backend,
    next_turn,
    page,
    said,
)

from lamella.archive.markdown.archive import parse_archive, render_archive
from lamella.conversation.backend import Backend
from lamella.conversation.turn import TurnRequest
from lamella.core.log.events.kinds import EventKind
from lamella.errors import BadInputError
from lamella.ports import ConversationExport

EDITED = "The messages were edited by hand; the file's text is used, and the branch as it was is kept beside it."
STAMP = "[Timestamp: 2026/11/15 10:00:07]"


@pytest.fixture
def backend() -> Backend:
    return make_backend()


@pytest.fixture
def text(backend: Backend) -> str:
    """Three turns, the second with a page."""
    conversation_log = chat(backend, ("one", "first answer"))
    conversation_log.ask(TurnRequest(text="two", attach=(page("https://example.org", "the page"),)))
    conversation_log.reply("second answer")
    conversation_log.ask(TurnRequest(text="three"))
    conversation_log.reply("third answer")
    return render_archive(export_log(backend))


def read(backend: Backend, text: str) -> ConversationExport:
    """The edited conversation: what was, then the edits; all of it verifies, goes on, and comes in twice as once."""
    export = parse_archive(text, sources=None)
    before = export_log(backend)
    assert export.records[: len(before.records)] == before.records
    assert import_log(backend, export) == "extended"
    assert import_log(backend, parse_archive(text, sources=None)) == "same"
    assert parse_archive(render_archive(export_log(backend)), sources=None) == export_log(backend)
    return export


@pytest.mark.layout("library")
def test_changed_question_is_a_branch_with_the_same_context(backend: Backend, text: str) -> None:
    old = said(export_log(backend))
    edited = read(backend, text.replace("**user**: two", "**user**: zwei"))
    assert edited.warnings == (EDITED,)
    assert said(edited) == ["one", "first answer", "zwei", "second answer", "three", "third answer"]
    assert attached(edited) == [[], ["https://example.org"], []]
    log = fold(edited)
    assert [
        node.text
        for record in log.branch_records(log.list_branch_heads()[0])
        for node in (record.message, record.reply)
        if node
    ] == old
    assert "the page" in next_turn(backend).messages[0].text


def test_changed_answer_is_another_answer_to_the_same_question(backend: Backend, text: str) -> None:
    edited = read(backend, text.replace("first answer", "first answer, mended", 1))
    assert said(edited)[:3] == ["one", "first answer, mended", "two"]
    assert len(fold(edited).list_branch_heads()) == 2
    assert attached(edited) == [[], ["https://example.org"], []]


def test_changed_last_answer_adds_two_events(backend: Backend, text: str) -> None:
    before = export_log(backend)
    edited = read(backend, text.replace("third answer", "third answer, mended", 1))
    kinds = [record.kind for record in edited.records[len(before.records) :]]
    assert kinds == [EventKind.SWITCH, EventKind.REPLY]


def test_removed_turn_leaves_branch_and_others_keep_context(backend: Backend, text: str) -> None:
    start, end = text.index("**user**: one"), text.index("**user**: two")
    edited = read(backend, text[:start] + text[end:])
    assert said(edited) == ["two", "second answer", "three", "third answer"]
    assert attached(edited) == [["https://example.org"], []]


def test_inserted_turn_has_no_context(backend: Backend, text: str) -> None:
    added = f"**user**: new\n{STAMP}\n\n**ai**: answer to new\n{STAMP}\n\n"
    edited = read(backend, text.replace("**user**: two", f"{added}**user**: two"))
    assert said(edited)[2:5] == ["new", "answer to new", "two"]
    assert attached(edited) == [[], [], ["https://example.org"], []]
    assert edited.warnings == (EDITED,)


def test_context_of_inserted_turn_warns(backend: Backend, text: str) -> None:
    added = f"**user**: new\n[Context: Notes: a.md, b.md]\n{STAMP}\n\n"
    edited = read(backend, text.replace("<!-- lamella", f"{added}<!-- lamella"))
    assert edited.warnings == (EDITED, "Turn 4 is new in the file; its context is not attached: a.md, b.md.")
    assert said(edited)[-1] == "new"


def test_appended_turns_continue_branch(backend: Backend, text: str) -> None:
    before = export_log(backend)
    edited = read(backend, text + "\n**user**: four\n\n**user**: five\n\n**ai**: fifth answer\n")
    assert said(edited)[-5:] == ["third answer", "four", "", "five", "fifth answer"]
    assert len(fold(edited).list_branch_heads()) == 1
    assert edited.records[len(before.records)].kind is EventKind.MESSAGE


def test_removed_last_turns_make_shorter_branch(backend: Backend, text: str) -> None:
    start, end = text.index("**user**: three"), text.index("<!-- lamella")
    edited = read(backend, text[:start] + text[end:])
    assert said(edited) == ["one", "first answer", "two", "second answer"]
    assert edited.records[-1].kind is EventKind.FORK
    assert len(fold(edited).list_branch_heads()) == 2


def test_all_messages_can_be_removed(backend: Backend, text: str) -> None:
    start, end = text.index("**user**: one"), text.index("<!-- lamella")
    edited = read(backend, text[:start] + text[end:])
    assert said(edited) == []


def test_removed_answer_leaves_question_open(backend: Backend, text: str) -> None:
    start, end = text.index("**ai**: third"), text.index("<!-- lamella")
    edited = read(backend, text[:start] + text[end:])
    assert said(edited)[-1] == "three"


def test_open_question_answered_by_hand_is_answered(backend: Backend) -> None:
    chat(backend, ("one", "two")).ask(TurnRequest(text="open"))
    text = render_archive(export_log(backend))
    before = export_log(backend)
    edited = read(backend, text.replace("<!-- lamella", "**ai**: closed\n\n<!-- lamella"))
    assert said(edited)[-2:] == ["open", "closed"]
    assert len(edited.records) == len(before.records) + 1


def test_typed_template_is_kept_if_text_is_unchanged(backend: Backend) -> None:
    conversation_log = chat(backend)
    attach = (page("https://example.org", "p"),)
    conversation_log.ask(TurnRequest(text="about {} here", attach=attach))
    conversation_log.reply("answer")
    conversation_log.ask(TurnRequest(text="last"))
    text = render_archive(export_log(backend))
    edited = read(backend, text.replace("**ai**: answer", "**ai**: mended"))
    assert said(edited) == [said(edited)[0], "mended", "last"]


def test_trimmed_whitespace_is_not_an_edit(backend: Backend) -> None:
    chat(backend, ("one  \ntwo\n\n", "\nanswer \n"))
    export = export_log(backend)
    text = render_archive(export)
    trimmed = "\n".join(line.rstrip() for line in text.split("\n"))
    assert trimmed != text
    assert parse_archive(trimmed, sources=None) == export


def test_changed_context_or_time_is_ignored_with_warning(backend: Backend, text: str) -> None:
    changed = text.replace("URLs: https://example.org]", "URLs: https://elsewhere.org]")
    export = parse_archive(changed, sources=None)
    assert export.records == export_log(backend).records
    assert export.warnings == ("The context or time of message 3 was changed by hand; that changes nothing.",)


def test_changed_title_renames_the_conversation(backend: Backend, text: str) -> None:
    edited = read(backend, text.replace("title: one", "title: By hand"))
    assert edited.title == "By hand"
    assert fold(edited).title == "By hand"
    assert edited.warnings == ("The title was changed by hand; the conversation is renamed.",)


def test_text_before_messages_is_ignored(backend: Backend, text: str) -> None:
    assert parse_archive(text.replace("**user**: one", "# Mine\n\n**user**: one"), sources=None) == export_log(backend)


def test_time_of_an_edited_message_is_the_one_the_file_shows(backend: Backend, text: str) -> None:
    before = export_log(backend).records[-1]
    changed = text.replace("third answer", "mended", 1)
    assert parse_archive(changed, sources=None).records[-1].at == before.at
    late = changed.replace("**ai**: mended\n[Timestamp: 2026/11/15 10:00:05]", "**ai**: mended\n[Timestamp: {}]")
    for shown, at in (("2027/01/02 03:04:05", "2027-01-02T03:04:05Z"), ("soon", before.at)):
        assert parse_archive(late.replace("{}", shown, 1), sources=None).records[-1].at == at
    assert parse_archive(late.replace("\n[Timestamp: {}]", "", 1), sources=None).records[-1].at == before.at


def test_change_in_the_whole_file_that_reaches_the_comment_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="has another text than it was written with") as caught:
        parse_archive(text.replace("third answer", "mended"), sources=None)
    assert "Undo" in caught.value.hint


def test_messages_of_long_file_keep_context_after_many_edits() -> None:
    note = "<url_content>\n<url>https://late.org</url>\n<content>x</content>\n</url_content>\n"
    turns = [f"{note if n == 1_101 else ''}{'same' if n % 3 else f'q {n}'}" for n in range(1_500)]
    talk = "".join(f"**user**: {asked}\n\n**ai**: a {n}\n\n" for n, asked in enumerate(turns))
    text = render_archive(parse_archive(talk, sources=None))

    def places(changed: str) -> list[int]:
        return [at for at, ids in enumerate(attached(parse_archive(changed, sources=None))) if ids]

    assert places(text) == [1_101]
    gone = text[text.index("**user**: q 3\n") : text.index("**user**: q 6\n")]
    assert places(text.replace(gone, "", 1)) == [1_098]
    one, two = text.split("**user**: q 0\n", 1)
    assert places(f"{one}**user**: new\n\n**user**: q 0\n{two.replace('**user**: same', '**user**: other')}") == [1_102]
