"""A writer: what was planned is written, if the note is still what it was, and can be taken back."""

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lamella.errors import BadInputError, WriteDeniedError
from lamella.vault_writer import MAX_NOTE_CHARS, BackupFolder, NoteWriter


class Place:
    """A vault, its writer, and the folder of backups beside it."""

    def __init__(self, folder: Path) -> None:
        self.vault, self.backups = folder / "vault", folder / "kept" / "backups"
        self.vault.mkdir()
        self._moment = datetime(2026, 11, 17, 12, tzinfo=UTC)
        self.writer = NoteWriter(self.vault.resolve(), open_backups=lambda: BackupFolder(self.backups), now=self._now)

    def _now(self) -> datetime:
        self._moment += timedelta(seconds=1)
        return self._moment

    def put(self, path: str, text: str) -> None:
        (self.vault / path).write_bytes(text.encode())

    def text(self, path: str) -> str:
        return (self.vault / path).read_bytes().decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_plan_changes_nothing_and_write_keeps_backup(place: Place) -> None:
    place.put("a.md", "old\n")
    change = place.writer.plan_write("a.md", "new\n")
    assert (change.before, change.after) == ("old\n", "new\n")
    assert place.text("a.md") == "old\n"
    assert not place.backups.exists()
    kept = place.writer.write(change)
    assert place.text("a.md") == "new\n"
    assert (kept / "a.md").read_text(encoding="utf-8") == "old\n"


def test_backups_are_private_and_outside_of_the_vault(place: Place) -> None:
    place.put("a.md", "old\n")
    kept = place.writer.write(place.writer.plan_edit("a.md", "old", "new"))
    assert not kept.is_relative_to(place.vault)
    for one in (place.backups, kept, *kept.iterdir()):
        assert stat.S_IMODE(one.stat().st_mode) & 0o077 == 0


def test_new_note_creates_folders_with_their_permissions(place: Place) -> None:
    place.writer.write(place.writer.plan_write("garden/beans.md", "# Beans\n"))
    assert place.text("garden/beans.md") == "# Beans\n"
    folder, note = (stat.S_IMODE((place.vault / name).stat().st_mode) for name in ("garden", "garden/beans.md"))
    assert note == folder & 0o666


@pytest.mark.parametrize("meanwhile", ["changed", "removed", "made"])
def test_note_changed_since_plan_is_not_written(place: Place, meanwhile: str) -> None:
    if meanwhile != "made":
        place.put("a.md", "old\n")
    change = place.writer.plan_write("a.md", "new\n")
    if meanwhile == "removed":
        (place.vault / "a.md").unlink()
    else:
        place.put("a.md", "somebody else's\n")
    with pytest.raises(WriteDeniedError, match="was changed by somebody else"):
        place.writer.write(change)
    assert not (place.vault / "a.md").exists() or place.text("a.md") == "somebody else's\n"
    assert not place.backups.exists()


def test_note_changed_since_reading_is_not_planned(place: Place) -> None:
    place.put("a.md", "old\n")
    place.writer.remember_shown_text("a.md")
    place.writer.plan_write("a.md", "new\n")
    place.put("a.md", "somebody else's\n")
    with pytest.raises(WriteDeniedError, match="since it was read"):
        place.writer.plan_write("a.md", "new\n")
    place.writer.remember_shown_text("a.md")
    assert place.writer.plan_write("a.md", "new\n").before == "somebody else's\n"


def test_link_replacing_note_is_not_followed(place: Place, tmp_path: Path) -> None:
    place.put("a.md", "old\n")
    change = place.writer.plan_write("a.md", "new\n")
    (tmp_path / "mine.md").write_text("old\n", encoding="utf-8")
    (place.vault / "a.md").unlink()
    (place.vault / "a.md").symlink_to(tmp_path / "mine.md")
    with pytest.raises(WriteDeniedError, match="leads through a link"):
        place.writer.write(change)
    assert (tmp_path / "mine.md").read_text(encoding="utf-8") == "old\n"


def test_hard_linked_file_elsewhere_keeps_text(place: Place, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("old\n", encoding="utf-8")
    os.link(tmp_path / "mine.md", place.vault / "a.md")
    place.writer.write(place.writer.plan_write("a.md", "new\n"))
    assert (tmp_path / "mine.md").read_text(encoding="utf-8") == "old\n"


def test_missing_backup_prevents_write(place: Place, tmp_path: Path) -> None:
    place.put("a.md", "old\n")
    (tmp_path / "kept").write_text("a file stands where the folder should be", encoding="utf-8")
    with pytest.raises(WriteDeniedError, match="No backup can be kept"):
        place.writer.write(place.writer.plan_write("a.md", "new\n"))
    assert place.text("a.md") == "old\n"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (4 * MAX_NOTE_CHARS + 1)], ids=["no text", "too long"])
def test_undecodable_note_is_not_overwritten(place: Place, content: bytes) -> None:
    (place.vault / "a.md").write_bytes(content)
    with pytest.raises(BadInputError):
        place.writer.plan_write("a.md", "new\n")
    assert (place.vault / "a.md").read_bytes() == content


def test_oversized_or_invalid_text_is_refused(place: Place) -> None:
    for text in ("x" * (MAX_NOTE_CHARS + 1), "\ud800"):
        with pytest.raises(BadInputError):
            place.writer.plan_write("a.md", text)


def test_missing_note_cannot_be_edited(place: Place) -> None:
    with pytest.raises(BadInputError, match=r"no note a\.md"):
        place.writer.plan_edit("a.md", "old", "new")


def test_changes_are_restored_in_reverse_order(place: Place) -> None:
    place.put("a.md", "one\n")
    for text in ("two\n", "three\n"):
        place.writer.write(place.writer.plan_write("a.md", text))
    place.writer.write(place.writer.plan_write("new.md", "made\n"))
    assert place.writer.restore() == ("new.md", True)
    assert not (place.vault / "new.md").exists()
    assert place.writer.restore("a.md") == ("a.md", False)
    assert place.text("a.md") == "two\n"
    assert place.writer.restore() == ("a.md", False)
    assert place.text("a.md") == "one\n"
    with pytest.raises(WriteDeniedError, match="no change to undo"):
        place.writer.restore()
    # What was taken away can still be read.
    assert any(path.read_bytes() == b"made\n" for path in place.backups.glob("*/new.md"))


def test_manually_changed_note_is_not_restored(place: Place) -> None:
    place.put("a.md", "one\n")
    place.writer.write(place.writer.plan_write("a.md", "two\n"))
    place.put("a.md", "by hand\n")
    with pytest.raises(WriteDeniedError) as caught:
        place.writer.restore("a.md")
    assert "lies in" in caught.value.hint
    assert place.text("a.md") == "by hand\n"


def test_broken_record_does_not_prevent_other_restores(place: Place) -> None:
    place.put("a.md", "one\n")
    place.writer.write(place.writer.plan_write("a.md", "two\n"))
    broken = place.backups / "99999999T000000000000Z-00000000"
    broken.mkdir()
    (broken / "change.json").write_text('{"path": "../../etc/passwd"}', encoding="utf-8")
    assert place.writer.restore() == ("a.md", False)


def test_equivalent_paths_name_same_note(place: Place) -> None:
    place.put("a.md", "one\n")
    place.writer.remember_shown_text("a.md")
    place.put("a.md", "two, by hand\n")
    with pytest.raises(WriteDeniedError):
        place.writer.plan_write("./a.md", "three\n")
    place.writer.write(place.writer.plan_write(".//new.md", "made\n"))
    assert place.writer.restore("new.md") == ("new.md", True)
