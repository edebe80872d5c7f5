"""The files of a vault on disk, as queries ask for them."""

import os
import time
from datetime import date
from pathlib import Path

import pytest

from lamella.attach import Note
from lamella.core.artifacts.model import ArtifactKind, UnresolvedAttachment
from lamella.ports import SourceReaders
from lamella.sources.dataview.blocks import CatalogFiles
from lamella.sources.path_resolver import VaultlessPathResolver
from lamella.sources.vault import Vault

BLOCK = "```dataview\nLIST FROM #a\n```"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for path, text in {"one.md": "#a", "sub/two.md": "#a/b [[one]]", "sub/one.md": "", "home.md": BLOCK}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def read(sources: SourceReaders, path: str = "home.md", *, kind: ArtifactKind = ArtifactKind.NOTE) -> str:
    return sources.read(UnresolvedAttachment(kind=kind, name=path)).text


def test_file_states_follow_disk(root: Path) -> None:
    files = CatalogFiles(Vault(root))
    before = {state.path: state for state in files.list_states()}
    assert list(before) == ["home.md", "one.md", "sub/one.md", "sub/two.md"]
    assert before["one.md"].file_stat.size == 2
    os.utime(root / "one.md", ns=(5, 5))
    after = {state.path: state for state in files.list_states()}
    assert (after["one.md"].file_stat.modified_ns, after["home.md"]) == (5, before["home.md"])


def test_change_with_same_size_and_time_is_seen(root: Path) -> None:
    files = CatalogFiles(Vault(root))
    [before] = [one for one in files.list_states() if one.path == "one.md"]
    (root / "other.md").write_text("#b", encoding="utf-8")
    os.utime(root / "other.md", ns=(before.file_stat.modified_ns, before.file_stat.modified_ns))
    (root / "other.md").replace(root / "one.md")
    [after] = [one for one in files.list_states() if one.path == "one.md"]
    assert (after.file_stat.size, after.file_stat.modified_ns) == (before.file_stat.size, before.file_stat.modified_ns)
    assert after != before


def test_dangling_link_has_state_and_reason(root: Path) -> None:
    (root / "gone.md").symlink_to(root / "nowhere.md")
    (state,) = [one for one in CatalogFiles(Vault(root)).list_states() if one.path == "gone.md"]
    assert (state.file_stat.size, state.file_stat.modified_ns) == (0, 0)
    assert "Not searched: gone.md is a link to nothing." in read(Vault(root).open_readers())


def test_recently_written_file_is_not_settled(root: Path) -> None:
    written = time.time_ns()
    just_now, later = CatalogFiles(Vault(root), lambda: written), CatalogFiles(Vault(root), lambda: written + 10**10)
    assert {state.is_settled for state in just_now.list_states()} == {False}
    assert {state.is_settled for state in later.list_states()} == {True}


@pytest.mark.parametrize("kind", [ArtifactKind.NOTE, ArtifactKind.ACTIVE_NOTE])
def test_query_in_a_note_is_answered_when_the_note_is_read(root: Path, kind: ArtifactKind) -> None:
    expected = f"{BLOCK}\n\n```dataview-result\n2 rows\n- [[one]]\n- [[sub/two]]\n```"
    assert read(Vault(root).open_readers(), kind=kind) == expected


def test_other_files_and_read_text_have_no_query_results(root: Path) -> None:
    (root / "a.py").write_text(BLOCK, encoding="utf-8")
    vault = Vault(root)
    assert read(vault.open_readers(), "a.py", kind=ArtifactKind.CODE) == BLOCK
    assert vault.read_text("home.md") == BLOCK


def test_one_snapshot_sees_one_answer_and_next_sees_changes(root: Path) -> None:
    vault = Vault(root)
    look = vault.open_readers()
    before = read(look)
    (root / "new.md").write_text("#a", encoding="utf-8")
    assert read(look) == before
    assert "3 rows\n- [[new]]" in read(vault.open_readers())


def test_query_never_leaves_the_vault(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("key:: secret\n#a", encoding="utf-8")
    (root / "way.md").symlink_to(tmp_path / "secret.md")
    (root / "up").symlink_to(tmp_path)
    for query in (
        'LIST key FROM "../"',
        'LIST key FROM "/"',
        "LIST key",
        "LIST key FROM [[../secret]]",
        'LIST key FROM "up"',
    ):
        attachment = UnresolvedAttachment(kind=ArtifactKind.DATAVIEW, name="../secret.md", query=query)
        assert "secret" not in Vault(root).open_readers().read(attachment).text


def test_current_day_is_given_by_opener(root: Path) -> None:
    attachment = UnresolvedAttachment(kind=ArtifactKind.DATAVIEW, name="home.md", query='LIST date(today) FROM "one"')
    look = Vault(root, today=lambda: date(2026, 11, 15)).open_readers()
    assert look.read(attachment).text == "1 row, asked on 2026-11-15\n- [[one]]: 2026-11-15"


def test_query_without_vault_is_not_run(root: Path) -> None:
    attached = VaultlessPathResolver().get_file_attachment((root / "home.md").as_posix())
    assert isinstance(attached, Note)
    assert attached.text == f"{BLOCK}\n\n```dataview-result\nNot run: there is no vault to ask.\n```"


def test_embedded_note_includes_query_results(root: Path) -> None:
    (root / "frame.md").write_text("See ![[home]]", encoding="utf-8")
    text = read(Vault(root).open_readers(), "frame.md")
    assert '<embedded_note path="home.md">' in text
    assert "```dataview-result\n2 rows\n- [[one]]" in text


def test_query_in_unreadable_folder_says_so(root: Path) -> None:
    (root / os.fsdecode(b"caf\xe9.md")).write_text("#a", encoding="utf-8")
    assert "Not searched: The name of the file b'caf\\xe9.md' is not UTF-8." in read(Vault(root).open_readers())


def test_moved_note_with_query_is_found_by_text(root: Path) -> None:
    vault = Vault(root)
    artifact = vault.open_readers().read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="home.md"))
    (root / "home.md").rename(root / "sub" / "house.md")
    assert vault.snapshot().find_identical_files(artifact) == ("sub/house.md",)
