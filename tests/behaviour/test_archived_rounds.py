"""Tool rounds in archives: they stay with their answers when the file is edited, and when other files have changed."""

from pathlib import Path

from tests.unit.archive.markdown.chats import NAME, export_log, fold, import_log, make_backend, note, sources_of

from lamella.archive.markdown import parse_archive, render_archive
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import ModelAnswer, TurnRequest
from lamella.core.messages import ModelReply, StopReason, ToolCall, ToolOutput
from lamella.ports import ConversationExport


def talk(backend: Backend, output: str = "found it") -> ConversationExport:
    """Two turns, each with a round; the first has a note."""
    chat = Conversation.open(backend, NAME)
    for text, attach in (("What is there?", (note("a.md"),)), ("And else?", ())):
        chat.ask(TurnRequest(text=text, attach=attach))
        call = ToolCall(id="c", name="look", arguments="{}")
        chat.reply(ModelAnswer(reply=ModelReply(text="Let me see.", stop=StopReason.TOOL_CALLS, calls=(call,))))
        chat.submit_tool_outputs([ToolOutput(call="c", output=output)])
        chat.reply(f"Answer to: {text}")
    return export_log(backend)


def rounds(chronicle: ConversationExport) -> list[int]:
    return [len(record.completed_rounds) for record in fold(chronicle).branch_records()]


def test_edited_question_keeps_rounds_of_all_answers(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend)).replace("**user**: What is there?", "**user**: What is here?")
    edited = parse_archive(text, sources=sources_of(backend))
    assert [record.message.text for record in fold(edited).branch_records()] == ["What is here?", "And else?"]
    assert rounds(edited) == [1, 1]
    assert import_log(make_backend(), edited) == "new"


def test_edited_answer_drops_its_tool_rounds(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend)).replace("**ai**: Answer to: And else?", "**ai**: My own words.")
    assert rounds(parse_archive(text, sources=sources_of(backend))) == [1, 0]


def test_rounds_follow_questions_whose_ids_changed_with_files(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    before = talk(backend)
    text = render_archive(before)
    (tmp_path / "a.md").write_text("B", encoding="utf-8")
    after = parse_archive(text, sources=sources_of(backend))
    assert fold(after).branch_records()[0].message.id != fold(before).branch_records()[0].message.id
    assert rounds(after) == [1, 1]
    assert import_log(make_backend(), after) == "new"


def test_tool_output_survives_change_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("A", encoding="utf-8")
    backend = make_backend(tmp_path)
    text = render_archive(talk(backend, output="A"))
    (tmp_path / "a.md").write_text("B", encoding="utf-8")
    after = parse_archive(text, sources=sources_of(backend))
    outputs = {
        result.output
        for record in fold(after).branch_records()
        for one in record.completed_rounds
        for result in one.results or ()
    }
    assert [after.contents[name] for name in outputs] == [b"A"]
