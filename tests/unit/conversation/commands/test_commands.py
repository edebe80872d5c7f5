"""Commands between two turns: read when given, refused when they mean nothing, taken back by their opposite."""

from pathlib import Path

import pytest

from lamella import Conversation, Folder, Note, Url
from lamella.conversation.commands import ALL_NAMES, CommandResolver
from lamella.errors import InvalidOperationError, SourceNotFoundError


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for name, text in (("a.md", "Alpha."), ("docs/b.md", "Beta."), ("docs/c.md", "Gamma.")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def chat(vault: Path) -> Conversation:
    chat = Conversation(vault=vault, attachments="sticky", layout="in_place")
    chat.ask("Read.", attach=[Note(path="a.md"), Folder(path="docs"), Url(url="https://e.org", text="Page.")])
    chat.reply("Read it.")
    return chat


def test_empty_name_means_everything() -> None:
    assert ALL_NAMES == ""
    assert CommandResolver.__doc__


def test_pending_attachment_is_read_now_and_sent_unchanged(vault: Path) -> None:
    chat = Conversation(vault=vault)
    chat.attach(Note(path="a.md"))
    (vault / "a.md").write_text("Omega.", encoding="utf-8")
    assert "Alpha." in chat.ask("Hm?").messages[-1].text


def test_sticky_pending_attachment_is_sent_in_newest_text_with_warning(chat: Conversation, vault: Path) -> None:
    (vault / "new.md").write_text("First.", encoding="utf-8")
    chat.attach(Note(path="new.md"))
    (vault / "new.md").write_text("Second.", encoding="utf-8")
    turn = chat.ask("Hm?")
    assert "Second." in turn.messages[-1].text
    assert "First." not in turn.messages[-1].text
    assert "new.md changed since it was last sent; its new text is sent now." in turn.envelope.warnings


def test_deleted_file_is_sent_as_attached_with_warning(chat: Conversation, vault: Path) -> None:
    (vault / "new.md").write_text("First.", encoding="utf-8")
    chat.attach(Note(path="new.md"))
    (vault / "new.md").unlink()
    turn = chat.ask("Hm?")
    assert "First." in turn.messages[-1].text
    assert any(line.startswith("new.md stays as it was sent last: ") for line in turn.envelope.warnings)


def test_folder_is_detached_with_its_notes(chat: Conversation) -> None:
    assert set(chat.detach("docs/").detach) == {"docs/b.md", "docs/c.md"}
    chat.ask("Hm?")
    assert set(chat.working_set) == {"a.md", "https://e.org"}


def test_detach_all_also_cancels_pending_attachments(chat: Conversation, vault: Path) -> None:
    (vault / "new.md").write_text("First.", encoding="utf-8")
    chat.attach(Note(path="new.md"))
    done = chat.detach()
    assert set(done.detach) == {"a.md", "docs/b.md", "docs/c.md", "https://e.org"}
    assert (done.attach, done.warnings) == ((), ("new.md is no longer attached to the next turn.",))


def test_pending_pin_is_cancelled(chat: Conversation) -> None:
    assert chat.pin("a.md", "turn:1").pin[0] == "a.md"
    assert not chat.unpin("a.md", "turn:1")
    with pytest.raises(InvalidOperationError, match=r"a\.md is not pinned"):
        chat.unpin("a.md")


def test_pinned_artifact_is_dropped_only_after_unpin(chat: Conversation) -> None:
    chat.ask("Keep it.", pin=["a.md"])
    chat.reply("Yes.")
    with pytest.raises(InvalidOperationError, match=r"a\.md is pinned and stays"):
        chat.drop("a.md")
    chat.unpin("a.md")
    with pytest.raises(InvalidOperationError, match="unpinned with the next message, and not before"):
        chat.drop("a.md")
    chat.ask("Let it go.")
    chat.reply("Yes.")
    assert chat.drop("a.md").drop == ("a.md",)


def test_unknown_name_is_refused_with_known_ones(chat: Conversation) -> None:
    for do, told in (
        (chat.detach, "nothing.md is not attached."),
        (chat.drop, "nothing.md is not in the prompt."),
        (chat.pin, "nothing.md is neither an attachment nor a message of the prompt."),
        (chat.unpin, "nothing.md is not pinned."),
        (chat.refresh, "nothing.md is not known here."),
    ):
        with pytest.raises(InvalidOperationError) as refused:
            do("nothing.md")
        assert refused.value.message == told
        assert refused.value.hint
    with pytest.raises(SourceNotFoundError):
        chat.attach(Note(path="nothing.md"))
    for empty in (chat.drop, chat.pin, chat.unpin):
        with pytest.raises(InvalidOperationError, match="There is no name"):
            empty()
    assert not chat.pending_commands


def test_refresh_attaches_changed_notes_and_reports_unchanged(chat: Conversation, vault: Path) -> None:
    (vault / "a.md").write_text("Omega.", encoding="utf-8")
    done = chat.refresh()
    assert [one.id for one in done.attach] == ["a.md"]
    assert "a.md was read anew; its new text goes with the next turn." in done.warnings
    done = chat.refresh("https://e.org")
    assert done.warnings == ("https://e.org was given as a text and is not read anew; attach it again.",)
    (vault / "docs" / "b.md").unlink()
    assert any(line.startswith("docs/b.md stays as it is: ") for line in chat.refresh("docs/b.md").warnings)
    assert "docs/c.md is as it was." in chat.refresh("docs/c.md").warnings


def test_snapshot_is_replaced_only_by_refresh(vault: Path) -> None:
    chat = Conversation(vault=vault, attachments="sticky", layout="in_place")
    chat.ask("Read.", attach=[Note(path="a.md", policy="snapshot")])
    chat.reply("Read it.")
    (vault / "a.md").write_text("Omega.", encoding="utf-8")
    assert "Omega." not in chat.ask("Hm?").messages[-1].text
    chat.reply("Yes.")
    chat.refresh("a.md")
    assert "Omega." in chat.ask("And now?").messages[-1].text
    chat.reply("Yes.")
    (vault / "a.md").write_text("Psi.", encoding="utf-8")
    assert "Psi." not in chat.ask("And then?").messages[-1].text


def test_refreshed_folder_adds_new_note(chat: Conversation, vault: Path) -> None:
    (vault / "docs" / "d.md").write_text("Delta.", encoding="utf-8")
    assert [one.id for one in chat.refresh("docs").attach] == ["docs/d.md"]


def test_answers_to_command_are_not_repeated_as_turn_warnings(chat: Conversation, vault: Path) -> None:
    (vault / "docs" / "b.md").unlink()
    (vault / "docs" / "c.md").write_text("New.", encoding="utf-8")
    unchanged, missing, changed = chat.refresh("a.md", "docs/b.md", "docs/c.md").warnings
    assert unchanged == "a.md is as it was."
    assert "docs/c.md" in changed
    assert [line for line in chat.ask("Hm?").envelope.warnings if line in (unchanged, missing, changed)] == [missing]
