"""Refreshing: only what changed is read again, and one bad file keeps no other from being found."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from tests.unit.retrieval.vaults import date, find, indexed, paths, write

from lamella.core.artifacts.kinds import SourceMedium, make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, UnresolvedAttachment
from lamella.errors import ExtraNotInstalledError
from lamella.ports import IndexReport, SourceReaders
from lamella.retrieval.index import IndexRefresher, VaultIndex

NOTES = {"a.md": "alpha", "b/c.md": "beta", "d.txt": "gamma"}


def test_second_refresh_reads_nothing(tmp_path: Path) -> None:
    with indexed(write(tmp_path / "v", NOTES)) as index:
        assert isinstance(index._refresher, IndexRefresher)
        for file in (tmp_path / "v").rglob("*.*"):
            date(file, datetime(2025, 6, 1, 13, tzinfo=UTC))
        assert index.refresh() == IndexReport(read_count=0, removed_count=0, file_count=3)
        assert paths(index, "beta") == ["b/c.md"]


def test_new_changed_moved_and_deleted_files_are_updated(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    with indexed(root) as index:
        write(root, {"a.md": "delta", "new.md": "epsilon"})
        (root / "b" / "c.md").rename(root / "moved.md")
        (root / "d.txt").unlink()
        assert index.refresh() == IndexReport(read_count=3, removed_count=2, file_count=3)
        assert [paths(index, word) for word in ("alpha", "delta", "epsilon", "beta", "gamma")] == [
            [],
            ["a.md"],
            ["new.md"],
            ["moved.md"],
            [],
        ]


def test_change_of_same_size_and_time_is_seen(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    with indexed(root) as index:
        write(root, {"a.md": "omega"})
        index.refresh()
        assert paths(index, "omega") == ["a.md"]
        assert paths(index, "alpha") == []


def test_many_names_of_a_note_are_stored_once_and_all_found(tmp_path: Path) -> None:
    aliases = ", ".join(f"Other name {number:05}" for number in range(2_000))
    tags = ", ".join(f"camelTag{number:05}" for number in range(2_000))
    sections = "".join(f"# Part {number}\nText.\n" for number in range(1_000))
    root = write(tmp_path / "v", {"a.md": f"---\naliases: [{aliases}]\ntags: [{tags}]\n---\n{sections}"})
    with indexed(root) as index:
        assert index.file.stat().st_size < 10_000_000
        for question in ("01999", "[[Other name 01999]]", "#camelTag01999", "camelTag01999", "part 999"):
            assert paths(index, question) == ["a.md"]


def test_only_given_paths_are_refreshed(tmp_path: Path) -> None:
    root = write(tmp_path / "v", NOTES)
    with indexed(root) as index:
        write(root, {"a.md": "delta", "b/c.md": "zeta"})
        assert index.refresh(only_paths=["a.md"]).read_count == 1
        assert paths(index, "delta") == ["a.md"]
        assert paths(index, "zeta") == []
        (root / "a.md").unlink()
        assert index.refresh(only_paths=["a.md", "none.md"]).removed_count == 1


def test_progress_is_reported_per_file(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with indexed(write(tmp_path / "v", NOTES)) as index:
        index.refresh(rebuild=True, on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_unreadable_file_is_reported_and_others_are_found(tmp_path: Path) -> None:
    root = write(tmp_path / "v", {**NOTES, "binary.md": b"\xff\xfe\0\x01" * 500, "paper.pdf": b"%PDF-1.4 broken"})
    (root / "nowhere.md").symlink_to(root / "gone.md")
    with indexed(root) as index:
        report = index.refresh()
        assert [path for path, _ in report.unread if path != "nowhere.md"] == ["binary.md", "paper.pdf"]
        assert "not UTF-8" in dict(report.unread)["binary.md"]
        assert paths(index, "beta") == ["b/c.md"]
        write(root, {"binary.md": "mended text"})
        assert [path for path, _ in index.refresh().unread] == ["paper.pdf"]
        assert paths(index, "mended") == ["binary.md"]
        write(root, {"a.md": b"\xff"})
        index.refresh()
        assert paths(index, "alpha") == []


def test_hostile_files_are_indexed_within_limits(tmp_path: Path) -> None:
    notes = {
        "nul.md": "before\0after \0\0 needle",
        "line.md": "x" * 1_000_000 + " haystack",
        "deep.md": "\n".join(f"{'#' * (level % 9 + 1)} level {level}" for level in range(5_000)),
        "front.md": "---\n" + "a: &a [1]\n" * 2_000 + "tags: [x]\n---\nanchored",
        "open.md": "---\ntitle: never closed\nanything",
        "hashes.md": "#" * 100_000,
        "spaces.md": " \n" * 100_000 + "distant",
        "fences.md": "```\n" * 9_999 + "# inside",
        "empty.md": "",
    }
    with indexed(write(tmp_path / "v", notes)) as index:
        assert index.refresh().file_count == len(notes)
        found = {word: paths(index, word) for word in ("needle", "haystack", "anchored", "distant")}
        assert found == {
            "needle": ["nul.md"],
            "haystack": ["line.md"],
            "anchored": ["front.md"],
            "distant": ["spaces.md"],
        }
        assert "deep.md" in paths(index, "level 4321")
        assert paths(index, "[[empty]]") == ["empty.md"]


def test_files_outside_vault_are_not_indexed(tmp_path: Path) -> None:
    secret = write(tmp_path / "outside", {"secret.md": "treasure"})
    root = write(tmp_path / "v", NOTES)
    (root / "link.md").symlink_to(secret / "secret.md")
    (root / "folder").symlink_to(secret)
    (root / "within.md").symlink_to(root / "a.md")
    write(root, {".hidden/x.md": "treasure", ".obsidian/y.md": "treasure"})
    with indexed(root) as index:
        assert find(index, "treasure") == []
        assert paths(index, "alpha") == ["a.md", "within.md"]


def test_stored_chunk_count_is_correct(tmp_path: Path) -> None:
    root = write(tmp_path / "v", {f"{number}.md": "# A\nx\n# B\ny" for number in range(5)})
    with indexed(root) as index:
        write(root, {"0.md": "# A\nz", "1.md": b"\xff"})
        (root / "2.md").unlink()
        index.refresh()
        with closing(sqlite3.connect(index.file)) as database:
            [(kept,)] = database.execute("SELECT value FROM facts WHERE name = 'chunks'")
            [(there,)] = database.execute("SELECT count(*) FROM chunks")
        assert int(kept) == there == 5


def test_file_missing_an_extra_is_retried(tmp_path: Path) -> None:
    root = write(tmp_path / "v", {**NOTES, "paper.pdf": b"%PDF-1.4"})
    installed = False

    class Papers:
        def read(self, wanted: UnresolvedAttachment) -> Artifact:
            if not installed:
                raise ExtraNotInstalledError("The extra documents is missing.", hint="Install it.")
            return make_artifact(ArtifactKind.PDF, text="A rare gamut.", source=ArtifactSource(path=wanted.name))

    index = VaultIndex(
        tmp_path / "i" / "index.db",
        vault=root,
        open_readers=lambda: SourceReaders(readers={SourceMedium.PDF: Papers()}),
    )
    assert [path for path, _ in index.refresh().unread] == ["paper.pdf"]
    installed = True
    assert index.refresh().unread == ()
    assert paths(index, "gamut") == ["paper.pdf"]
    index.close()
