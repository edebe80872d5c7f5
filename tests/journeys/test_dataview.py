"""Queries in a stored chat: a note changes, the query is asked again, and the update is in the prompt."""

from datetime import date
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Dataview, Note
from lamella.errors import ArtifactError, SourceNotFoundError, SourceUnreadableError, TextError

QUERY = 'TABLE status FROM #project WHERE status != "done" SORT file.name'


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    vault = tmp_path / "notes"
    vault.mkdir()
    write(vault, "Home.md", f"# Home\n```dataview\n{QUERY}\n```\nEnd.\n")
    write(vault, "Pier.md", "---\ntags: project\nstatus: open\n---\n")
    write(vault, "Quay.md", "#project\nstatus:: waiting\n")
    return vault


def write(vault: Path, name: str, text: str) -> None:
    (vault / name).write_text(text, encoding="utf-8")


def sent(turn: lamella.Turn) -> str:
    return "".join(message.text for message in turn.messages)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_attached_query_result_includes_changed_note(tmp_path: Path, vault: Path, layout: str) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with lamella.open(url, vault=vault) as engine:
        conversation = engine.chat("pier", layout=layout, attachments="sticky")
        first = conversation.ask("What is open?", attach=[Dataview(path="Home.md", query=QUERY)])
        assert "| [[Pier]] | open |\n| [[Quay]] | waiting |" in first.messages[-1].text
        conversation.reply("The pier, and the quay waits.")
        again = conversation.ask("Sure?")
        assert "[[Pier]]" not in again.messages[-1].text
        conversation.reply("Yes.")
    write(vault, "Quay.md", "#project\nstatus:: done\n")
    with lamella.open(url, vault=vault) as engine:
        conversation = engine.chat("pier")
        turn = conversation.ask("And now?")
        assert "| [[Pier]] | open |" in turn.messages[-1].text
        assert "waiting" not in turn.messages[-1].text.replace("-| [[Quay]] | waiting |", "")
        assert any("#dataview:" in warning and "changed" in warning for warning in turn.envelope.warnings)
        conversation.reply("Only the pier.")
        assert "[[Quay]]" not in conversation.ask("Good.").messages[-1].text


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_note_with_query_is_updated_when_other_note_changes_result(tmp_path: Path, vault: Path, layout: str) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", vault=vault) as engine:
        conversation = engine.chat("pier", layout=layout, attachments="sticky")
        first = conversation.ask("What is open?", attach=[Note(path="Home.md")])
        assert "```dataview-result\n2 rows\n" in sent(first)
        conversation.reply("Two.")
        write(vault, "Dock.md", "#project\nstatus:: new\n")
        turn = conversation.ask("And now?")
        assert "| [[Dock]] | new |" in turn.messages[-1].text
        conversation.reply("Three.")
        turn = conversation.ask("Still?")
        assert "[[Dock]]" not in turn.messages[-1].text


def test_two_queries_of_one_note_are_two_and_keep_their_names(tmp_path: Path, vault: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", vault=vault) as engine:
        conversation = engine.chat("pier", layout="in_place", attachments="sticky")
        names = []
        for query in ("LIST FROM #project", "LIST FROM #project LIMIT 2", "TASK"):
            turn = conversation.ask("?", attach=[Dataview(path="no such note.md", query=query)])
            names += [
                segment.id for layer in turn.envelope.layers for segment in layer.segments if segment.form == "full"
            ]
            conversation.reply("Yes.")
        assert len({name for name in names if "#dataview:" in name}) == 3


def test_snapshot_of_query_is_unchanged(tmp_path: Path, vault: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", vault=vault) as engine:
        conversation = engine.chat("pier", layout="in_place", attachments="sticky")
        attach = [Dataview(path="Home.md", query=QUERY, policy="snapshot")]
        conversation.ask("What is open?", attach=attach)
        conversation.reply("Two.")
        write(vault, "Dock.md", "#project\nstatus:: new\n")
        assert "[[Dock]]" not in sent(conversation.ask("And now?", attach=attach))


def test_stored_chat_uses_current_day_in_query(tmp_path: Path, vault: Path) -> None:
    with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", vault=vault) as engine:
        before = date.today()  # noqa: DTZ011 - the day as people at this machine count it
        text = sent(engine.chat("day").ask("?", attach=[Dataview(path="Home.md", query="LIST WHERE date(today)")]))
        after = date.today()  # noqa: DTZ011 - the same
    assert any(f"3 rows, asked on {day}" in text for day in (before, after))


def test_invalid_query_is_error_and_chat_continues(vault: Path) -> None:
    chat = Conversation(vault=vault)
    for query, why in (
        ("LIST GROUP BY a", "GROUP BY"),
        ("LIST WHERE date(today)", "no day is known"),
        ("(" * 99, "begins"),
    ):
        with pytest.raises(SourceUnreadableError, match=why):
            chat.ask("?", attach=[Dataview(path="Home.md", query=query)])
    with pytest.raises(ArtifactError, match="no query"):
        chat.ask("?", attach=[Dataview(path="Home.md", query="")])
    with pytest.raises(TextError):
        chat.ask("?", attach=[Dataview(path="Home.md", query='LIST "\ud800"')])
    assert "2 rows" in sent(chat.ask("?", attach=[Dataview(path="Home.md", query="LIST FROM #project")]))
    with pytest.raises(SourceNotFoundError, match="no vault"):
        Conversation().ask("?", attach=[Dataview(path="Home.md", query="LIST")])
