"""A vault: notes below one folder, read safely."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.pictures import png

from lamella.adapters.sources.vault import MAX_FILE_BYTES, Vault
from lamella.core.artifacts.model import Kind, Policy
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import (
    BadInputError,
    SourceMissingError,
    SourceOutsideError,
    SourceTooLargeError,
    SourceUnreadableError,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    for path, text in {
        "a.md": "A",
        "docs/api-docs.md": "API #public",
        "docs/deep/b.md": "---\ntags: [public/beta]\n---\n",
        "docs/image.png.md": "no picture",
        ".obsidian/hidden.md": "#public",
        "docs/.draft.md": "#public",
        "docs/table.csv": "1,2",
        "Bob's & co, [x].md": "B",
    }.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (root / "img").mkdir()
    (root / "img" / "plan.png").write_bytes(png(4, 3))
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "more.md").write_text("secret", encoding="utf-8")
    return root


@pytest.fixture
def vault(root: Path) -> Vault:
    return Vault(root)


def test_a_file_is_read_as_an_artifact_of_the_kind_asked_for(vault: Vault) -> None:
    wanted = Wanted(kind=Kind.ACTIVE_NOTE, name="docs/api-docs.md", policy=Policy.PIN, via="folder:docs")
    note = vault.read(wanted)
    assert (note.id, note.kind, note.title, note.text) == (
        "docs/api-docs.md",
        Kind.ACTIVE_NOTE,
        "api-docs",
        "API #public",
    )
    assert (note.policy, note.source.via) == (Policy.PIN, "folder:docs")


def test_a_title_that_is_given_stands_in_place_of_the_name(vault: Vault) -> None:
    assert vault.read(Wanted(kind=Kind.NOTE, name="docs/api-docs.md", title="Mine")).title == "Mine"


def test_a_name_with_strange_characters_is_read_and_is_its_id(vault: Vault) -> None:
    assert vault.read(Wanted(kind=Kind.NOTE, name="Bob's & co, [x].md")).id == "Bob's & co, [x].md"


def test_a_path_with_a_detour_is_the_same_note(vault: Vault) -> None:
    assert vault.read(Wanted(kind=Kind.NOTE, name="docs/../a.md")).id == "a.md"


def test_windows_line_ends_and_a_byte_order_mark_are_normalised(root: Path, vault: Vault) -> None:
    (root / "w.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo  \r\n")
    assert vault.read(Wanted(kind=Kind.NOTE, name="w.md")).text == "one\ntwo  \n"


@pytest.mark.parametrize("path", ["../outside.md", "docs/../../outside.md", "../elsewhere/more.md"])
def test_a_path_that_leaves_the_vault_is_refused(vault: Vault, path: str) -> None:
    with pytest.raises(SourceOutsideError, match="outside the vault") as caught:
        vault.read_text(path)
    assert caught.value.code == "source_outside"


def test_an_absolute_path_is_refused_even_into_the_vault(root: Path, vault: Vault) -> None:
    with pytest.raises(SourceOutsideError):
        vault.read_text(str(root / "a.md"))


def test_a_link_that_leaves_the_vault_is_refused(root: Path, vault: Vault, tmp_path: Path) -> None:
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    for path in ("link.md", "linked/more.md"):
        with pytest.raises(SourceOutsideError):
            vault.read_text(path)
    with pytest.raises(SourceOutsideError):
        vault.list_notes(Kind.FOLDER, "linked")


def test_links_that_leave_the_vault_are_not_listed_and_are_named(root: Path, vault: Vault, tmp_path: Path) -> None:
    before = vault.list_notes(Kind.FOLDER, "docs").paths
    (root / "docs" / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "docs" / "linked").symlink_to(tmp_path)
    assert vault.list_notes(Kind.FOLDER, "docs").paths == before
    assert vault.list_notes(Kind.FOLDER, "docs").links == ("docs/link.md", "docs/linked")
    assert vault.list_notes(Kind.FOLDER, ".").links == ("docs/link.md", "docs/linked")


def test_a_link_within_the_vault_is_followed(root: Path, vault: Vault) -> None:
    (root / "alias.md").symlink_to(root / "a.md")
    assert vault.read_text("alias.md") == "A"


def test_a_link_to_itself_is_an_error_and_no_endless_walk(root: Path, vault: Vault) -> None:
    (root / "loop.md").symlink_to(root / "loop.md")
    (root / "docs" / "up").symlink_to(root)
    with pytest.raises(SourceMissingError):
        vault.read_text("loop.md")
    assert "docs/up/a.md" not in vault.list_notes(Kind.FOLDER, "docs").paths


def test_a_missing_file_is_an_error_that_suggests_what_is_near(vault: Vault) -> None:
    with pytest.raises(SourceMissingError, match=r"no file docs/api-doc\.md") as caught:
        vault.read_text("docs/api-doc.md")
    assert "docs/api-docs.md" in caught.value.hint


@pytest.mark.parametrize("path", ["docs", "a.md/x", "\0"])
def test_a_path_that_is_no_file_is_missing(vault: Vault, path: str) -> None:
    with pytest.raises(SourceMissingError):
        vault.read_text(path)


def test_a_missing_vault_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="no vault folder"):
        Vault(tmp_path / "nowhere")
    with pytest.raises(SourceMissingError, match="no vault folder"):
        Vault(tmp_path / "outside.md")


def test_a_file_that_is_not_utf8_is_said_with_its_byte(root: Path, vault: Vault) -> None:
    (root / "latin.md").write_bytes("café".encode("latin-1"))
    with pytest.raises(SourceUnreadableError, match="byte 4 is 0xe9"):
        vault.read_text("latin.md")


def test_a_file_too_large_is_said_with_its_size_before_it_is_read(root: Path, vault: Vault) -> None:
    with (root / "huge.md").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(SourceTooLargeError, match=f"{MAX_FILE_BYTES + 1:,} bytes"):
        vault.read_text("huge.md")


def test_a_folder_lists_its_notes_sorted_and_leaves_out_what_is_hidden(vault: Vault) -> None:
    assert vault.list_notes(Kind.FOLDER, "docs").paths == ("docs/api-docs.md", "docs/deep/b.md", "docs/image.png.md")
    assert not any("obsidian" in path for path in vault.list_notes(Kind.FOLDER, ".").paths)


def test_a_missing_folder_is_an_error(vault: Vault) -> None:
    with pytest.raises(SourceMissingError, match="no folder nowhere"):
        vault.list_notes(Kind.FOLDER, "nowhere")
    assert not vault.has_folder("nowhere")
    assert not vault.has_folder("../elsewhere")
    assert not vault.has_folder("a.md")
    assert vault.has_folder("docs/deep")


def test_a_tag_lists_the_notes_that_carry_it_or_one_below_it(vault: Vault) -> None:
    assert vault.list_notes(Kind.TAG, "#public").paths == ("docs/api-docs.md", "docs/deep/b.md")
    assert vault.list_notes(Kind.TAG, "nothing").paths == ()


def test_a_note_that_cannot_be_read_does_not_stop_a_tag_and_is_said(root: Path, vault: Vault) -> None:
    (root / "docs" / "latin.md").write_bytes("café #public".encode("latin-1"))
    glance = vault.look().catalog
    assert glance is not None
    assert glance.list_notes(Kind.TAG, "#public").paths == ("docs/api-docs.md", "docs/deep/b.md")
    assert glance.list_notes(Kind.TAG, "#other").paths == ()
    assert glance.list_notes(Kind.TAG, "#public").unread == ("docs/latin.md is not UTF-8: byte 4 is 0xe9.",)


def test_a_glance_sees_the_vault_at_one_moment_and_the_vault_sees_it_as_it_is(root: Path, vault: Vault) -> None:
    glance = vault.look().catalog
    assert glance is not None
    assert glance.find_note("new") == []
    (root / "docs" / "new.md").write_text("New", encoding="utf-8")
    assert glance.find_note("new") == []
    assert vault.find_note("new") == ["docs/new.md"]
    later = vault.look().catalog
    assert later is not None
    assert later.find_note("new") == ["docs/new.md"]


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("a", ["a.md"]),
        ("./a", []),
        ("docs/API-docs", ["docs/api-docs.md"]),
        ("image.png", ["docs/image.png.md"]),
        ("a.md", ["a.md"]),
        ("API-Docs", ["docs/api-docs.md"]),
        ("docs/api-docs", ["docs/api-docs.md"]),
        ("nothing", []),
        ("hidden", []),
    ],
)
def test_a_link_finds_the_exact_path_else_every_note_of_that_name(vault: Vault, name: str, paths: list[str]) -> None:
    assert vault.find_note(name) == paths


def test_a_name_that_two_notes_have_finds_both(root: Path, vault: Vault) -> None:
    (root / "docs" / "a.md").write_text("other", encoding="utf-8")
    (root / "docs" / "deep" / "c.md").write_text("c", encoding="utf-8")
    (root / "docs" / "c.md").write_text("c", encoding="utf-8")
    assert vault.find_note("a") == ["a.md"]
    assert vault.find_note("c") == ["docs/c.md", "docs/deep/c.md"]


@pytest.mark.parametrize("target", ["plan.png", "../img/plan.png", "img/plan.png"])
def test_an_embedded_picture_is_found_beside_the_note_in_the_vault_or_by_its_name(vault: Vault, target: str) -> None:
    assert vault.read_bytes(vault.find_file(target, beside="docs/n.md")) == png(4, 3)


@pytest.mark.parametrize("target", ["gone.png", "../../outside.png", "https://e.org/a.png", "data:image/png;base64,AA"])
def test_an_embedded_picture_that_cannot_be_found_is_refused(vault: Vault, target: str) -> None:
    with pytest.raises(BadInputError):
        vault.find_file(target, beside="docs/n.md")


def test_a_picture_of_which_the_vault_has_two_is_not_guessed(root: Path, vault: Vault) -> None:
    (root / "docs" / "deep" / "plan.png").write_bytes(png(9, 9))
    with pytest.raises(SourceMissingError, match="2 times"):
        vault.find_file("plan.png", beside="docs/n.md")


COUNTED = """
import sys
from pathlib import Path

from lamella import Conversation

reads = []
sys.addaudithook(lambda event, given: reads.append(given[0]) if event == "os.scandir" else None)
chat = Conversation(vault=Path(sys.argv[1]), ledger=False)
links = " ".join(f"{{[[note {number}]]}}" for number in range(0, 10_000, 500))
turn = chat.ask(f"Read {links} and {{#red}} and {{#blue, #green}}.")
assert len(turn.envelope.layers[2].segments) == 22, len(turn.envelope.layers[2].segments)
print(len(reads), len(set(map(str, reads))))
"""


def test_a_turn_with_twenty_links_and_three_tags_reads_each_folder_of_a_large_vault_once(tmp_path: Path) -> None:
    for number in range(10_000):
        file = tmp_path / f"folder {number // 200}" / f"note {number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text({7: "#red", 8: "#blue"}.get(number, "plain"), encoding="utf-8")
    # Every read of a folder is told to hooks of the interpreter, and those stay: hence a process of its own.
    done = subprocess.run([sys.executable, "-c", COUNTED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["51", "51"]
