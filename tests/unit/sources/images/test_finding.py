"""Finding the file that a note embeds."""

import json
from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella.errors import SourceNotFoundError, SourceUnreadableError
from lamella.sources.images import read_attachment_folder, resolve_embed
from lamella.sources.obsidian import OBSIDIAN_SETTINGS_FILE
from lamella.sources.vault import Vault


def put(root: Path, *paths: str) -> Vault:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(png(1, 1))
    return Vault(root)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("x.png", "notes/x.png"),
        ("./x.png", "notes/x.png"),
        ("../x.png", "x.png"),
        ("/x.png", "x.png"),
        ("img/y.png", "img/y.png"),
        ("../img/y.png", "img/y.png"),
        ("y.png", "img/y.png"),
        ("Y.PNG", "img/y.png"),
        ("deep/z.png", "img/deep/z.png"),
        ("elsewhere/z.png", "img/deep/z.png"),
        ("../../y.png", "img/y.png"),
        ("a%20b.png", "a b.png"),
        ("100%.png", "100%.png"),
        ("y.png?raw=1", "img/y.png"),
        ("y.png#center", "img/y.png"),
    ],
)
def test_embed_is_searched_beside_note_in_root_and_by_name(tmp_path: Path, target: str, found: str) -> None:
    vault = put(tmp_path, "notes/x.png", "x.png", "img/y.png", "img/deep/z.png", "a b.png", "100%.png")
    assert vault.resolve_embed_path(target, note_path="notes/n.md") == found


def test_ambiguous_image_name_is_refused(tmp_path: Path) -> None:
    vault = put(tmp_path, "one/a/x.png", "two/a/x.png", "two/b/x.png")
    with pytest.raises(SourceNotFoundError, match=r"in the vault 3 times: one/a/x\.png, two/a/x\.png, two/b/x\.png"):
        vault.resolve_embed_path("x.png", note_path="n.md")
    with pytest.raises(SourceNotFoundError, match="2 times"):
        vault.resolve_embed_path("a/x.png", note_path="n.md")
    assert vault.resolve_embed_path("b/x.png", note_path="n.md") == "two/b/x.png"


def test_folder_for_attachments_decides_before_names_do(tmp_path: Path) -> None:
    vault = put(tmp_path, "files/x.png", "old/x.png", "notes/here/y.png", "old/y.png")
    (tmp_path / ".obsidian").mkdir()
    settings = tmp_path / OBSIDIAN_SETTINGS_FILE
    settings.write_text(json.dumps({"attachmentFolderPath": "files"}), encoding="utf-8")
    assert vault.resolve_embed_path("x.png", note_path="notes/n.md") == "files/x.png"
    settings.write_text(json.dumps({"attachmentFolderPath": "./here"}), encoding="utf-8")
    assert vault.resolve_embed_path("y.png", note_path="notes/n.md") == "notes/here/y.png"


def test_image_outside_vault_is_not_found(tmp_path: Path) -> None:
    put(tmp_path, "secret.png", "vault/n.png")
    (tmp_path / "vault" / "link.png").symlink_to(tmp_path / "secret.png")
    vault = Vault(tmp_path / "vault")
    for target in ("../secret.png", "/../secret.png", str(tmp_path / "secret.png"), "link.png", "%2e%2e/secret.png"):
        with pytest.raises(SourceNotFoundError, match="is not in the vault"):
            vault.resolve_embed_path(target, note_path="n.md")


@pytest.mark.parametrize("settings", ["", "[]", "{", '{"attachmentFolderPath": 3}', "[" * 100_000])
def test_empty_obsidian_settings_are_accepted(settings: str) -> None:
    assert read_attachment_folder(lambda _path: settings) == ""


def test_unreadable_obsidian_settings_are_accepted() -> None:
    def fail(path: str) -> str:
        raise SourceUnreadableError(f"{path} cannot be read.", hint="Check it.")

    assert read_attachment_folder(fail) == ""


def test_obsidian_settings_are_read_only_if_needed() -> None:
    def fail() -> str:
        raise AssertionError

    there = {"notes/x.png"}
    found = resolve_embed(
        "x.png",
        note_path="notes/n.md",
        has_file=there.__contains__,
        find_files_named=lambda _name: [],
        get_attachment_folder=fail,
    )
    assert found == "notes/x.png"
