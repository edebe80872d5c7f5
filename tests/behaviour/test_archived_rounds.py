"""Tool rounds in archives: they stay with their answers when the file is edited, and when other files have changed."""

from pathlib import Path

from tests.unit.adapters.archive.markdown.chats import NAME, fold, make_backend, note, sources_of, take_in, take_out

from lamella.adapters.archive.markdown import parse_archive, render_archive
from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.backend import Backend
from lamella.engine.keeping.stored import StoredChat
from lamella.holdings import Chronicle


def talk(backend: Backend, output: str = "found it") -> Chronicle:
    """Two turns, each with a round; the first has a note."""
    chat = StoredChat(backend, NAME)
    for text, attach in (("What is there?", (note("a.md"),)), ("And else?", ())):
        chat.ask(Ask(text=text, attach=attach))
        call = ToolCall(id="c", name="look", arguments="{}")
        chat.reply(Answer(reply=Reply(text="Let me see.", stop=StopReason.TOOLS, calls=(call,))))
        chat.give([ToolOutput(call="c", output=output)])
        chat.reply(f"Answer to: {text}")
    return take_out(backend)


def rounds(chronicle: Chronicle) -> list[int]:
    return [len(told.rounds) for told in fold(chronicle).path()]


def test_a_question_edited_by_hand_leaves_the_rounds_of_all_answers(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend)).replace("**user**: What is there?", "**user**: What is here?")
    edited = parse_archive(text, sources=sources_of(backend))
    assert [told.message.text for told in fold(edited).path()] == ["What is here?", "And else?"]
    assert rounds(edited) == [1, 1]
    assert take_in(make_backend(), edited) == "new"


def test_an_answer_edited_by_hand_is_no_longer_what_the_rounds_led_to(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend)).replace("**ai**: Answer to: And else?", "**ai**: My own words.")
    assert rounds(parse_archive(text, sources=sources_of(backend))) == [1, 0]


def test_rounds_follow_their_questions_to_the_ids_that_changed_files_give_them(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    before = talk(backend)
    text = render_archive(before)
    (tmp_path / "a.md").write_text("B", encoding="utf-8")
    after = parse_archive(text, sources=sources_of(backend))
    assert fold(after).path()[0].message.id != fold(before).path()[0].message.id
    assert rounds(after) == [1, 1]
    assert take_in(make_backend(), after) == "new"


def test_what_a_tool_read_from_a_file_stays_when_the_file_has_changed(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend, output="A"))
    (tmp_path / "a.md").write_text("B", encoding="utf-8")
    after = parse_archive(text, sources=sources_of(backend))
    outputs = {result.output for told in fold(after).path() for one in told.rounds for result in one.results or ()}
    assert [after.contents[name] for name in outputs] == [b"A"]
