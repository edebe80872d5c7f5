"""Pending commands are part of archives, copies and transcripts of a conversation."""

import json
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Folder, Note
from lamella.archive.transcript import parse_transcript
from lamella.wiring import replay_transcript


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "a.md").write_text("Alpha.", encoding="utf-8")
    for number in range(12):
        text = f"# {number}\n\nOf subject{number}. {'Words. ' * 150}"
        (tmp_path / "docs" / f"{number:02}.md").write_text(text, encoding="utf-8")
    return tmp_path


def begin(engine: lamella.Engine, name: str = "talk") -> Conversation:
    conversation = engine.chat(name, layout="in_place", attachments="sticky", window=3_000, reserve=200)
    conversation.ask("Hello.")
    conversation.reply("Hello.")
    return conversation


def sent(chat: Conversation) -> list[str]:
    return [message.text for message in chat.preview("And now?").messages]


@pytest.mark.parametrize("with_vault", [True, False])
def test_archive_includes_pending_commands_also_without_note_texts(
    vault: Path, tmp_path: Path, *, with_vault: bool
) -> None:
    with lamella.open("memory:", vault=vault) as engine, lamella.open("memory:", vault=vault) as other:
        conversation = begin(engine)
        conversation.attach(Note(path="a.md"), Folder(path="docs"), question="subject5")
        conversation.pin("turn:1")
        page = engine.export_archive(conversation, tmp_path / "out", vault=vault if with_vault else None)
        brought, _, warnings = other.import_archive(page, vault=vault if with_vault else None)
        assert (sent(brought), list(warnings)) == (sent(conversation), [])
        assert brought.pending_commands.pin == conversation.pending_commands.pin


def test_note_changed_since_export_is_imported_with_warning(vault: Path, tmp_path: Path) -> None:
    with lamella.open("memory:", vault=vault) as engine, lamella.open("memory:", vault=vault) as other:
        conversation = begin(engine)
        conversation.attach(Note(path="a.md"))
        page = engine.export_archive(conversation, tmp_path / "out", vault=vault)
        (vault / "a.md").write_text("Omega.", encoding="utf-8")
        brought, _, warnings = other.import_archive(page, vault=vault)
        assert [one.text for one in brought.pending_commands.attach] == ["Omega."]
        assert any("a.md" in line for line in warnings)


def test_transcript_keeps_selection_and_rereads_notes(vault: Path) -> None:
    with lamella.open("memory:", vault=vault) as engine:
        conversation = begin(engine)
        conversation.ask("What of subject5?", attach=[Note(path="a.md", policy="snapshot"), Folder(path="docs")])
        conversation.reply("Yes.")
        (vault / "a.md").write_text("Omega.", encoding="utf-8")
        conversation.refresh("a.md")
        turn = conversation.ask("And now?")
        conversation.reply("Yes.")
        written = parse_transcript(json.dumps(conversation.transcript()).encode(), name="talk")
        *_, last = replay_transcript(written, overrides={}, base_folder=vault)
        assert [one.text for one in last.messages] == [one.text for one in turn.messages]
        assert "Omega." in turn.messages[-1].text


@pytest.mark.parametrize("blank", ["", " "])
def test_blank_name_is_not_everything(vault: Path, blank: str) -> None:
    with lamella.open("memory:", vault=vault) as engine:
        conversation = begin(engine)
        conversation.attach(Note(path="a.md"))
        for do in (conversation.detach, conversation.drop, conversation.pin, conversation.unpin, conversation.refresh):
            with pytest.raises(lamella.InvalidOperationError, match=f"{do.__name__} is (empty|blank)"):
                do(blank)
        assert [one.id for one in conversation.pending_commands.attach] == ["a.md"]
