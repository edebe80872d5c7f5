"""Archives on disk: the id decides the file, and no file is lost, doubled or half written."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.archive.markdown.chats import NAME, chat, export_log, import_log, make_backend, said

from lamella.archive.markdown import load_archive, parse_archive, save_archive
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.turn import TurnRequest
from lamella.errors import (
    BadInputError,
    HistoryConflictError,
    SourceNotFoundError,
    SourceUnreadableError,
    StoreUnavailableError,
    TextError,
)
from lamella.ports import ConversationExport


@pytest.fixture
def backend() -> Backend:
    return make_backend()


def talk(backend: Backend, title: str = "A talk", name: str = NAME) -> ConversationExport:
    chat(backend, ("one", "two"), name=name).rename(title)
    return export_log(backend, name)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_conversation_is_saved_under_title_and_loads_unchanged(backend: Backend, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "chats"
    export = talk(backend)
    path = save_archive(export, folder)
    assert path == folder / "A talk.md"
    assert names(folder) == ["A talk.md"]
    assert load_archive(path, None) == export


def test_saving_again_updates_the_same_file(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    assert save_archive(export_log(backend), tmp_path) == path
    assert names(tmp_path) == ["A talk.md"]
    assert said(load_archive(path, None)) == ["one", "two", "three"]


def test_pipe_with_archive_name_is_skipped(backend: Backend, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "A talk.md")
    with pytest.raises(BadInputError, match="holds something else"):
        save_archive(talk(backend), tmp_path, file="A talk.md")
    assert save_archive(talk(backend, name="other"), tmp_path) == tmp_path / "A talk 2.md"


def test_saving_unchanged_conversation_does_not_touch_file(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    before = path.stat()
    assert save_archive(export_log(backend), tmp_path) == path
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_renamed_file_is_found_by_id_and_keeps_name(backend: Backend, tmp_path: Path) -> None:
    save_archive(talk(backend), tmp_path).rename(tmp_path / "My own name.MD")
    Conversation.open(backend, NAME).rename("Another title")
    assert save_archive(export_log(backend), tmp_path) == tmp_path / "My own name.MD"
    assert names(tmp_path) == ["My own name.MD"]


def test_another_conversation_of_the_same_title_gets_a_number(backend: Backend, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        save_archive(talk(backend, "Same", name=name), tmp_path)
    save_archive(talk(backend, "SAME", name="d"), tmp_path)
    assert names(tmp_path) == ["SAME 4.md", "Same 2.md", "Same 3.md", "Same.md"]


def test_note_with_archive_name_is_not_overwritten(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "A talk.md").write_text("a note of mine", encoding="utf-8")
    (tmp_path / "A talk 2.md").mkdir()
    assert save_archive(talk(backend), tmp_path).name == "A talk 3.md"
    assert (tmp_path / "A talk.md").read_text(encoding="utf-8") == "a note of mine"


def test_other_files_in_folder_are_ignored(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "binary.md").write_bytes(b"---\n\xff\xfe\x00\n---\n")
    (tmp_path / "broken.md").write_text('---\nlamella: 1\ntitle: "half\n---\n', encoding="utf-8")
    (tmp_path / "empty.md").touch()
    (tmp_path / "nowhere.md").symlink_to(tmp_path / "gone.md")
    (tmp_path / "unclosed.md").write_text("---\n" + "x: y\n" * 2_000, encoding="utf-8")
    path = save_archive(talk(backend), tmp_path)
    assert load_archive(path, None).conversation_key == NAME


def test_file_with_long_front_matter_is_still_found(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    many = "".join(f"  - tag {n}\n" for n in range(2_000))
    path.write_text(path.read_text(encoding="utf-8").replace("---\n", f"---\ntags:\n{many}", 1), encoding="utf-8")
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    assert save_archive(export_log(backend), tmp_path) == path
    assert "  - tag 1999\n" in path.read_text(encoding="utf-8")


def test_text_added_around_messages_is_kept(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    text = path.read_text(encoding="utf-8")
    text = text.replace("created:", "tags: [mine]\ncreated:", 1).replace("**user**: one", "# Mine\n\n**user**: one", 1)
    path.write_text(text, encoding="utf-8")
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    save_archive(export_log(backend), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert "\ntags: [mine]\n---\n\n# Mine\n\n**user**: one\n" in text
    assert load_archive(path, None) == export_log(backend)


def test_manual_edits_are_not_overwritten_before_import(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    edited = path.read_text(encoding="utf-8").replace("**ai**: two", "**ai**: deux")
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(BadInputError, match=r"A talk\.md was edited by hand") as caught:
        save_archive(export_log(backend), tmp_path)
    assert "Import it first" in caught.value.hint
    assert path.read_text(encoding="utf-8") == edited
    import_log(backend, load_archive(path, None))
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    assert save_archive(export_log(backend), tmp_path) == path
    assert said(load_archive(path, None)) == ["one", "deux", "three"]


def test_damaged_archive_is_not_overwritten(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    path.write_text(path.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    with pytest.raises(BadInputError, match="cannot be read") as caught:
        save_archive(export_log(backend), tmp_path)
    assert "Move the file away" in caught.value.hint


def test_of_two_copies_the_one_with_the_title_is_updated(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    (tmp_path / "A copy.md").write_bytes(path.read_bytes())
    assert save_archive(export_log(backend), tmp_path) == path


def test_file_permissions_and_links_are_kept(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path / "real")
    path.chmod(0o640)
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.md"
    link.symlink_to(path)
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    assert save_archive(export_log(backend), folder) == link
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert said(load_archive(path, None))[-1] == "three"
    assert names(tmp_path / "real") == ["A talk.md"]


def test_new_file_and_folder_are_private(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path / "chats")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_newer_archive_is_not_overwritten(backend: Backend, tmp_path: Path) -> None:
    older = talk(backend)
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    path = save_archive(export_log(backend), tmp_path)
    newer = path.read_bytes()
    with pytest.raises(
        HistoryConflictError, match=r"A talk\.md has 4 events of 0190-chat; the store knows 3"
    ) as caught:
        save_archive(older, tmp_path)
    assert "Import the file first" in caught.value.hint
    assert path.read_bytes() == newer
    behind = make_backend()
    import_log(behind, older)
    import_log(behind, load_archive(path, None))
    assert save_archive(export_log(behind), tmp_path) == path


def test_archive_with_other_history_is_not_overwritten(backend: Backend, tmp_path: Path) -> None:
    older = talk(backend)
    other = make_backend()
    import_log(other, older)
    chat(backend, ("here", "yes"))
    chat(other, ("there", "no"))
    path = save_archive(export_log(backend), tmp_path)
    before = path.read_bytes()
    with pytest.raises(HistoryConflictError, match="another history from event 4 on") as caught:
        save_archive(export_log(other), tmp_path)
    assert "another folder" in caught.value.hint
    assert path.read_bytes() == before


def test_archive_of_other_conversation_is_not_overwritten(backend: Backend, tmp_path: Path) -> None:
    path = save_archive(talk(backend), tmp_path)
    before = path.read_bytes()
    other = make_backend()
    chat(other, ("something", "else")).rename("A talk")
    with pytest.raises(HistoryConflictError, match=r"A talk\.md holds another conversation that is called 0190-chat"):
        save_archive(export_log(other), tmp_path)
    assert names(tmp_path) == ["A talk.md"]
    assert path.read_bytes() == before


def test_overwritable_one_of_two_same_named_files_is_used(backend: Backend, tmp_path: Path) -> None:
    other = make_backend()
    chat(other, ("something", "else")).rename("A talk")
    theirs = save_archive(export_log(other), tmp_path)
    ours = save_archive(talk(backend), tmp_path / "elsewhere").rename(tmp_path / "Ours.md")
    before = theirs.read_bytes()
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    assert save_archive(export_log(backend), tmp_path) == ours
    assert theirs.read_bytes() == before


def test_folder_that_is_a_file_is_an_error_with_a_hint(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailableError, match="cannot be written to") as caught:
        save_archive(talk(backend), tmp_path / "file")
    assert "disk has room" in caught.value.hint


def test_unencodable_text_is_refused_before_writing(tmp_path: Path) -> None:
    odd = ConversationExport(conversation_key="x", title="\ud800", created="", records=())
    with pytest.raises(TextError):
        save_archive(odd, tmp_path)
    assert names(tmp_path) == []


FULL = """
import resource, sys
from pathlib import Path
from lamella.archive.markdown import parse_archive, save_archive
from lamella.errors import StoreUnavailableError

chronicle = parse_archive(Path(sys.argv[1]).read_text(encoding="utf-8"), sources=None)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    save_archive(chronicle, Path(sys.argv[2]))
except StoreUnavailableError as error:
    print(error.message)
"""


@pytest.mark.parametrize("saved", [0, 1])
def test_full_disk_leaves_old_file_only(backend: Backend, tmp_path: Path, saved: int) -> None:
    folder = tmp_path / "chats"
    folder.mkdir()
    talk(backend)
    for _ in range(saved):
        save_archive(export_log(backend), folder)
    before = {name: (folder / name).read_bytes() for name in names(folder)}
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    newer = save_archive(export_log(backend), tmp_path / "elsewhere")
    run = subprocess.run([sys.executable, "-c", FULL, newer, folder], capture_output=True, text=True, check=True)
    assert "File too large" in run.stdout
    assert {name: (folder / name).read_bytes() for name in names(folder)} == before


def test_files_that_cannot_be_read_are_errors_with_hints(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="There is no archive"):
        load_archive(tmp_path / "gone.md", None)
    with pytest.raises(SourceUnreadableError, match="cannot be read"):
        load_archive(tmp_path, None)
    (tmp_path / "latin.md").write_bytes(b"**user**: caf\xe9")
    with pytest.raises(SourceUnreadableError, match="byte 14 is 0xe9"):
        load_archive(tmp_path / "latin.md", None)
    (tmp_path / "no.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"^no\.md: The file has no line"):
        load_archive(tmp_path / "no.md", None)


# Ends itself just before the world is touched for the n-th time while it saves.
KILLED = """
import os, signal, sys
from pathlib import Path
from lamella.archive.markdown import parse_archive, save_archive

chronicle = parse_archive(Path(sys.argv[1]).read_text(encoding="utf-8"), sources=None)
left = int(sys.argv[3])

def count(event, given):
    global left
    if event in ("open", "os.link", "os.rename", "os.remove", "os.chmod", "os.mkdir", "tempfile.mkstemp"):
        left -= 1
        if left == 0 and not (event == "os.rename" and sys.argv[4] == "spare"):
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
save_archive(chronicle, Path(sys.argv[2]))
"""


@pytest.mark.parametrize("saved", [0, 1])
def test_killed_save_leaves_no_partial_file(backend: Backend, tmp_path: Path, saved: int) -> None:
    talk(backend)
    old = save_archive(export_log(backend), tmp_path / "old").read_bytes()
    Conversation.open(backend, NAME).ask(TurnRequest(text="three"))
    newer = save_archive(export_log(backend), tmp_path / "newer")
    for step in range(1, 40):
        folder = tmp_path / f"killed {step}"
        folder.mkdir()
        if saved:
            (folder / "A talk.md").write_bytes(old)
        # Between the two steps of a replacement, which follow each other at once, the new file has a name of ours.
        words = [str(newer), str(folder), str(step), "spare" if saved else ""]
        order = preloaded.Order(program=KILLED, words=words, environment=dict(os.environ), folder=str(tmp_path))
        run = preloaded.run(order, seconds=60)
        there = [(folder / name).read_bytes() for name in names(folder)]
        assert there in ([old] if saved else [], [newer.read_bytes()]), step
        if run.exit == 0 and there == [newer.read_bytes()]:
            break
    assert run.exit == 0
    assert step > 3


GOLDEN = Path(__file__).parent / "golden" / "format-1.md"


def test_format_1_golden_archive_is_read_and_rewritten(tmp_path: Path) -> None:
    text = GOLDEN.read_text(encoding="utf-8")
    export = parse_archive(text, sources=None)
    assert export.warnings == ()
    assert said(export) == ["Summarize this\n**ai**: no", "Here it is --> done\n", "Second, better", "Ja."]
    assert save_archive(export, tmp_path).read_text(encoding="utf-8") == text
