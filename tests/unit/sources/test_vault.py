"""A vault: notes below one folder, read safely."""

import subprocess
import sys
from pathlib import Path
from time import time_ns

import pytest
from tests.unit.pictures import png

from lamella.core.artifacts.model import ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.errors import (
    BadInputError,
    PathOutsideVaultError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreadableError,
)
from lamella.sources.readers import VaultFileCache
from lamella.sources.vault import MAX_FILE_BYTES, Vault


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


def test_file_is_read_as_requested_kind(vault: Vault) -> None:
    attachment = UnresolvedAttachment(
        kind=ArtifactKind.ACTIVE_NOTE, name="docs/api-docs.md", policy=AttachmentPolicy.PIN, via="folder:docs"
    )
    note = vault.read(attachment)
    assert (note.id, note.kind, note.title, note.text) == (
        "docs/api-docs.md",
        ArtifactKind.ACTIVE_NOTE,
        "api-docs",
        "API #public",
    )
    assert (note.policy, note.source.via) == (AttachmentPolicy.PIN, "folder:docs")


def test_given_title_replaces_name(vault: Vault) -> None:
    assert (
        vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="docs/api-docs.md", title="Mine")).title == "Mine"
    )


def test_unusual_file_name_is_its_id(vault: Vault) -> None:
    assert (
        vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="Bob's & co, [x].md")).id == "Bob's & co, [x].md"
    )


def test_path_with_a_detour_is_the_same_note(vault: Vault) -> None:
    assert vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="docs/../a.md")).id == "a.md"


def test_crlf_and_bom_are_normalized(root: Path, vault: Vault) -> None:
    (root / "w.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo  \r\n")
    assert vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="w.md")).text == "one\ntwo  \n"
    # Once, whatever else is looked for in the text: a return that is before the end of a line stays.
    for text in (b"one\r\r\n", b"![[img/plan.png]]\r\r\n"):
        (root / "w.md").write_bytes(text)
        assert vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="w.md")).text.endswith("\r\n")


@pytest.mark.parametrize("path", ["../outside.md", "docs/../../outside.md", "../elsewhere/more.md"])
def test_path_that_leaves_the_vault_is_refused(vault: Vault, path: str) -> None:
    with pytest.raises(PathOutsideVaultError, match="outside the vault") as caught:
        vault.read_text(path)
    assert caught.value.code == "source_outside"


def test_absolute_path_is_refused_even_into_the_vault(root: Path, vault: Vault) -> None:
    with pytest.raises(PathOutsideVaultError):
        vault.read_text(str(root / "a.md"))


def test_link_that_leaves_the_vault_is_refused(root: Path, vault: Vault, tmp_path: Path) -> None:
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    for path in ("link.md", "linked/more.md"):
        with pytest.raises(PathOutsideVaultError):
            vault.read_text(path)
    with pytest.raises(PathOutsideVaultError):
        vault.list_notes(ArtifactKind.FOLDER, "linked")


def test_links_leaving_vault_are_unlisted_and_reported(root: Path, vault: Vault, tmp_path: Path) -> None:
    before = vault.list_notes(ArtifactKind.FOLDER, "docs").paths
    (root / "docs" / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "docs" / "linked").symlink_to(tmp_path)
    assert vault.list_notes(ArtifactKind.FOLDER, "docs").paths == before
    assert vault.list_notes(ArtifactKind.FOLDER, "docs").skipped_links == ("docs/link.md", "docs/linked")
    assert vault.list_notes(ArtifactKind.FOLDER, ".").skipped_links == ("docs/link.md", "docs/linked")


def test_link_within_the_vault_is_followed(root: Path, vault: Vault) -> None:
    (root / "alias.md").symlink_to(root / "a.md")
    assert vault.read_text("alias.md") == "A"


def test_link_to_itself_is_error(root: Path, vault: Vault) -> None:
    (root / "loop.md").symlink_to(root / "loop.md")
    (root / "docs" / "up").symlink_to(root)
    with pytest.raises(SourceNotFoundError):
        vault.read_text("loop.md")
    assert "docs/up/a.md" not in vault.list_notes(ArtifactKind.FOLDER, "docs").paths


def test_missing_file_error_suggests_similar_one(vault: Vault) -> None:
    with pytest.raises(SourceNotFoundError, match=r"no file docs/api-doc\.md") as caught:
        vault.read_text("docs/api-doc.md")
    assert "docs/api-docs.md" in caught.value.hint


@pytest.mark.parametrize("path", ["docs", "a.md/x", "\0"])
def test_path_that_is_no_file_is_missing(vault: Vault, path: str) -> None:
    with pytest.raises(SourceNotFoundError):
        vault.read_text(path)


def test_missing_vault_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no vault folder"):
        Vault(tmp_path / "nowhere")
    with pytest.raises(SourceNotFoundError, match="no vault folder"):
        Vault(tmp_path / "outside.md")


def test_non_utf8_file_error_names_byte(root: Path, vault: Vault) -> None:
    (root / "latin.md").write_bytes("café".encode("latin-1"))
    with pytest.raises(SourceUnreadableError, match="byte 4 is 0xe9"):
        vault.read_text("latin.md")


def test_oversized_file_is_refused_before_reading(root: Path, vault: Vault) -> None:
    with (root / "huge.md").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(SourceTooLargeError, match=f"{MAX_FILE_BYTES + 1:,} bytes"):
        vault.read_text("huge.md")


def test_folder_lists_notes_sorted_without_hidden_ones(vault: Vault) -> None:
    assert vault.list_notes(ArtifactKind.FOLDER, "docs").paths == (
        "docs/api-docs.md",
        "docs/deep/b.md",
        "docs/image.png.md",
    )
    assert not any("obsidian" in path for path in vault.list_notes(ArtifactKind.FOLDER, ".").paths)


def test_missing_folder_is_an_error(vault: Vault) -> None:
    with pytest.raises(SourceNotFoundError, match="no folder nowhere"):
        vault.list_notes(ArtifactKind.FOLDER, "nowhere")
    assert not vault.has_folder("nowhere")
    assert not vault.has_folder("../elsewhere")
    assert not vault.has_folder("a.md")
    assert vault.has_folder("docs/deep")


def test_tag_lists_notes_with_tag_or_subtag(vault: Vault) -> None:
    assert vault.list_notes(ArtifactKind.TAG, "#public").paths == ("docs/api-docs.md", "docs/deep/b.md")
    assert vault.list_notes(ArtifactKind.TAG, "nothing").paths == ()


def test_unreadable_note_does_not_stop_tag_search(root: Path, vault: Vault) -> None:
    (root / "docs" / "latin.md").write_bytes("café #public".encode("latin-1"))
    glance = vault.open_readers().catalog
    assert glance is not None
    assert glance.list_notes(ArtifactKind.TAG, "#public").paths == ("docs/api-docs.md", "docs/deep/b.md")
    assert glance.list_notes(ArtifactKind.TAG, "#other").paths == ()
    assert glance.list_notes(ArtifactKind.TAG, "#public").unreadable == ("docs/latin.md is not UTF-8: byte 4 is 0xe9.",)


def test_snapshot_is_fixed_and_vault_is_current(root: Path, vault: Vault) -> None:
    glance = vault.open_readers().catalog
    assert glance is not None
    assert glance.find_notes_named("new") == []
    (root / "docs" / "new.md").write_text("New", encoding="utf-8")
    assert glance.find_notes_named("new") == []
    assert vault.find_notes_named("new") == ["docs/new.md"]
    later = vault.open_readers().catalog
    assert later is not None
    assert later.find_notes_named("new") == ["docs/new.md"]


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
def test_link_finds_the_exact_path_else_every_note_of_that_name(vault: Vault, name: str, paths: list[str]) -> None:
    assert vault.find_notes_named(name) == paths


def test_name_that_two_notes_have_finds_both(root: Path, vault: Vault) -> None:
    (root / "docs" / "a.md").write_text("other", encoding="utf-8")
    (root / "docs" / "deep" / "c.md").write_text("c", encoding="utf-8")
    (root / "docs" / "c.md").write_text("c", encoding="utf-8")
    assert vault.find_notes_named("a") == ["a.md"]
    assert vault.find_notes_named("c") == ["docs/c.md", "docs/deep/c.md"]


@pytest.mark.parametrize("target", ["plan.png", "../img/plan.png", "img/plan.png"])
def test_embedded_image_is_found_beside_note_in_vault_or_by_name(vault: Vault, target: str) -> None:
    assert vault.read_bytes(vault.resolve_embed_path(target, note_path="docs/n.md")) == png(4, 3)


@pytest.mark.parametrize("target", ["gone.png", "../../outside.png", "https://e.org/a.png", "data:image/png;base64,AA"])
def test_embedded_image_that_cannot_be_found_is_refused(vault: Vault, target: str) -> None:
    with pytest.raises(BadInputError):
        vault.resolve_embed_path(target, note_path="docs/n.md")


def test_ambiguous_image_is_not_resolved(root: Path, vault: Vault) -> None:
    (root / "docs" / "deep" / "plan.png").write_bytes(png(9, 9))
    with pytest.raises(SourceNotFoundError, match="2 times"):
        vault.resolve_embed_path("plan.png", note_path="docs/n.md")


COUNTED = """
import sys
from pathlib import Path

from lamella import Conversation

reads = []
sys.addaudithook(lambda event, given: reads.append(given[0]) if event == "os.scandir" else None)
chat = Conversation(vault=Path(sys.argv[1]), keep_ledger=False)
links = " ".join(f"{{[[note {number}]]}}" for number in range(0, 2_000, 100))
turn = chat.ask(f"Read {links} and {{#red}} and {{#blue, #green}}.")
assert len(turn.envelope.layers[2].segments) == 22, len(turn.envelope.layers[2].segments)
print(len(reads), len(set(map(str, reads))))
"""


def test_turn_with_many_links_and_tags_reads_each_folder_once(tmp_path: Path) -> None:
    for number in range(2_000):
        file = tmp_path / f"folder {number // 40}" / f"note {number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text({7: "#red", 8: "#blue"}.get(number, "plain"), encoding="utf-8")
    # Every read of a folder is told to hooks of the interpreter, and those stay: hence a process of its own.
    done = subprocess.run([sys.executable, "-c", COUNTED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["51", "51"]


def read(vault: Vault, path: str) -> str:
    return vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name=path)).text


def test_note_is_read_with_embeds_and_lists_them(root: Path, vault: Vault) -> None:
    (root / "docs" / "n.md").write_text("![[api-docs]] ![](deep/b.md)\n![[plan.png]]", encoding="utf-8")
    note = vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="docs/n.md"))
    assert note.source.embedded_notes == ("docs/api-docs.md", "docs/deep/b.md")
    assert note.text.startswith('<embedded_note path="docs/api-docs.md">\nAPI #public\n</embedded_note>\n')
    assert note.text.endswith("![[plan.png]]")
    assert note.hash != vault.read(UnresolvedAttachment(kind=ArtifactKind.CODE, name="docs/n.md")).hash


def test_change_of_embedded_note_changes_note(root: Path, vault: Vault) -> None:
    (root / "n.md").write_text("![[a]] ![[later]]", encoding="utf-8")
    first = read(vault, "n.md")
    (root / "a.md").write_text("changed", encoding="utf-8")
    (root / "later.md").write_text("came", encoding="utf-8")
    assert "changed" not in first
    assert "changed" in read(vault, "n.md")
    assert "came" in read(vault, "n.md")


@pytest.mark.parametrize("embeds", ["![[b]]", "![[b]] ![[gone]]", "```dataview\nLIST\n```"])
def test_embedded_notes_are_rechecked_for_each_snapshot(root: Path, embeds: str) -> None:
    vault = Vault(root, file_cache=VaultFileCache(now_ns=lambda: time_ns() + 60_000_000_000))
    (root / "n.md").write_text(embeds, encoding="utf-8")
    (root / "b.md").write_text("before", encoding="utf-8")
    first = read(vault.snapshot(), "n.md")
    assert read(vault.snapshot(), "n.md") == first
    (root / "b.md").rename(root / "renamed.md")
    assert read(vault.snapshot(), "n.md") != first


@pytest.mark.parametrize(
    "target",
    ["../outside", "../outside.md", "/etc/hostname", "../elsewhere/more", "link", "folder/more", ".obsidian/hidden"],
)
def test_hidden_and_outside_notes_are_not_embedded(root: Path, vault: Vault, tmp_path: Path, target: str) -> None:
    (root / "link.md").symlink_to(tmp_path / "outside.md")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    for text in (f"![[{target}]]", f"![](<{target}>)", f"![](<{target}.md>)"):
        (root / "n.md").write_text(text, encoding="utf-8")
        assert "secret" not in read(vault, "n.md")
        assert "#public" not in read(vault, "n.md")


def test_embed_prefers_note_in_same_folder(root: Path, vault: Vault) -> None:
    for path in ("x/same.md", "y/same.md", "x/n.md", "n.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("![[same]]" if path.endswith("n.md") else path, encoding="utf-8")
    assert "\nx/same.md\n" in read(vault, "x/n.md")
    assert read(vault, "n.md") == "![[same]] (not embedded: 2 notes are called same: x/same.md, y/same.md)"


def test_vault_may_leave_embeds_alone(root: Path) -> None:
    (root / "n.md").write_text("![[a]]", encoding="utf-8")
    assert read(Vault(root, follows_embeds=False), "n.md") == "![[a]]"


def test_canvas_is_read_as_words_and_a_broken_one_is_refused(root: Path, vault: Vault) -> None:
    (root / "c.canvas").write_text('{"nodes": [{"id": "1", "type": "text", "text": "Hi"}]}', encoding="utf-8")
    canvas = vault.read(UnresolvedAttachment(kind=ArtifactKind.CANVAS, name="c.canvas"))
    assert canvas.text == "Canvas: 1 card, 0 groups, 0 connections.\n\n[1] text\nHi\n"
    (root / "c.canvas").write_text("{", encoding="utf-8")
    with pytest.raises(SourceUnreadableError, match="is not a canvas"):
        vault.read(UnresolvedAttachment(kind=ArtifactKind.CANVAS, name="c.canvas"))


@pytest.mark.parametrize("name", ["Tides", "TIDES", "Ebbe und Flut", "Cafe\u0301", "caf\u00e9"])
def test_note_is_found_by_alias_in_any_case_and_unicode_form(root: Path, vault: Vault, name: str) -> None:
    front = "---\naliases: [Tides, Ebbe und Flut, Caf\u00e9]\n---\n"
    (root / "docs" / "t.md").write_text(front, encoding="utf-8")
    (root / "docs" / "long.md").write_text("---\nx: " + "y" * 9_000 + "\nalias: Long\n---\n", encoding="utf-8")
    (root / "docs" / "odd.md").write_bytes(b"\xff")
    assert vault.find_notes_named(name) == ["docs/t.md"]
    assert vault.find_notes_named("long") == ["docs/long.md"]


def test_ambiguous_alias_finds_both_and_name_wins(root: Path, vault: Vault) -> None:
    for path in ("x.md", "y.md"):
        (root / path).write_text("---\naliases: [Twin, a]\n---\n", encoding="utf-8")
    assert vault.find_notes_named("twin") == ["x.md", "y.md"]
    assert vault.find_notes_named("A") == ["a.md"]


def test_path_matches_any_unicode_form(root: Path, vault: Vault) -> None:
    (root / "Cafe\u0301.md").write_text("coffee", encoding="utf-8")
    note = vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="Caf\u00e9.md"))
    assert (note.text, note.id) == ("coffee", "Cafe\u0301.md")
    assert vault.find_notes_named("CAF\u00c9") == ["Cafe\u0301.md"]
    assert vault.find_notes_named("docs/deep/b") == vault.find_notes_named("deep/B") == ["docs/deep/b.md"]


def test_hidden_notes_are_not_listed_found_embedded_or_read(root: Path, vault: Vault) -> None:
    (root / ".lamellaignore").write_text("docs/deep/\n", encoding="utf-8")
    (root / "n.md").write_text("![[b]] ![](docs/deep/b.md)", encoding="utf-8")
    (root / "by-link.md").symlink_to("docs/deep/b.md")
    assert vault.list_notes(ArtifactKind.TAG, "public").paths == ("docs/api-docs.md",)
    assert vault.find_notes_named("b") == []
    assert not vault.has_folder("docs/deep")
    assert read(vault, "n.md") == "![[b]] ![](docs/deep/b.md)"
    for path in ("docs/deep/b.md", "docs/../docs/deep/b.md", "by-link.md"):
        with pytest.raises(SourceNotFoundError, match=r"left out of this vault by \.lamellaignore"):
            read(vault, path)


def test_obsidian_excluded_notes_are_unlisted_but_readable(root: Path, vault: Vault) -> None:
    (root / ".obsidian" / "app.json").write_text('{"userIgnoreFilters": ["docs/deep/"]}', encoding="utf-8")
    assert vault.list_notes(ArtifactKind.FOLDER, "docs").paths == ("docs/api-docs.md", "docs/image.png.md")
    assert read(vault, "docs/deep/b.md").startswith("---")


def test_copies_of_a_text_are_found_whatever_ends_their_lines(root: Path, vault: Vault) -> None:
    (root / "docs" / "lines.md").write_bytes(b"one\ntwo\n")
    known = vault.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="docs/lines.md"))
    (root / "copy.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    (root / "copy.py").write_bytes(b"one\ntwo\n")
    (root / "other.md").write_bytes(b"one\ntwx\n")
    assert vault.find_identical_files(known) == ("copy.md", "docs/lines.md")


def test_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("same", encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", OPENED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


# A file that was touched within two seconds is not trusted; for this vault it is a minute later.
OPENED = """
import sys
import time
from pathlib import Path

from lamella.sources.readers import VaultFileCache
from lamella.sources.vault import Vault
from lamella.core.artifacts.model import ArtifactKind
from lamella.core.artifacts.model import UnresolvedAttachment

opened = []
sys.addaudithook(lambda event, given: opened.append(given[0]) if event == "open" else None)
file = Path(sys.argv[1]) / "a.md"
vault = Vault(file.parent, file_cache=VaultFileCache(now_ns=lambda: time.time_ns() + 60_000_000_000))
for text in (None, "longer"):
    if text:
        file.write_text(text)
        opened.pop()
    for _ in range(3):
        vault.snapshot().read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name="a.md"))
    print(sum(str(name).endswith("a.md") for name in opened))
"""
