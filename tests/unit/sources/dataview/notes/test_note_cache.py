"""A shelf: each note is read once, when it is asked for; files that change make another shelf."""

from tests.unit.sources.dataview.sample_vault import BOOKS, TextFiles

from lamella.sources.dataview.notes import VaultNotes
from lamella.sources.dataview.results import DataviewCache


def test_only_queried_notes_are_read_once() -> None:
    files = TextFiles()
    shelf = VaultNotes(files, DataviewCache().parsed_notes)
    for _ in range(2):
        for path in sorted(shelf.select_below("Books")):
            shelf.find_note(path)
    assert files.reads == ["Books/Dune.md", "Books/Emma.md", "Books/Unread/Ulysses.md"]
    assert shelf.find_note("nowhere.md") is None


def test_digest_is_another_as_soon_as_a_file_is() -> None:
    def digest(change: dict[str, str], times: dict[str, int] | None = None) -> str:
        files = TextFiles(BOOKS | change)
        files.times |= times or {}
        return VaultNotes(files, DataviewCache().parsed_notes).digest

    assert digest({}) == digest({})
    others = [digest({"Home.md": "other"}), digest({"new.md": ""}), digest({}, {"Home.md": 5})]
    assert len({digest({}), *others}) == 4


def test_link_leads_by_path_then_by_name_and_to_the_nearest() -> None:
    texts = dict.fromkeys(("a/b/twin.md", "sub/twin.md", "one.md", "sub/one.md", "a/b/c/d.md"), "")
    shelf = VaultNotes(TextFiles(texts), DataviewCache().parsed_notes)
    led = {
        ("twin", "a/b/x.md"): "a/b/twin.md",
        ("twin", "a/b/c/d.md"): "sub/twin.md",
        ("one.md", "sub/x.md"): "sub/one.md",
        ("one", "a/x.md"): "one.md",
        ("/one", "sub/x.md"): "one.md",
        ("../one", "sub/x.md"): "one.md",
        ("b/TWIN", "one.md"): "a/b/twin.md",
        ("../../../etc/passwd", "one.md"): "../../../etc/passwd",
    }
    assert {(target, beside): shelf.resolve_link(target, note_path=beside) for target, beside in led} == led


def test_links_resolve_relative_to_note_or_stay() -> None:
    shelf = VaultNotes(TextFiles(), DataviewCache().parsed_notes)
    assert [shelf.resolve_link(target, note_path="Home.md") for target in ("Emma", "Nobody", "")] == [
        "Books/Emma.md",
        "Nobody",
        "Home.md",
    ]


def test_notes_are_selected_by_tags_folders_and_links() -> None:
    shelf = VaultNotes(TextFiles(), DataviewCache().parsed_notes)
    assert shelf.select_tagged("#Book/SCIFI") == {"Books/Dune.md"}
    assert shelf.select_below("Home") == {"Home.md"}
    assert shelf.select_linking_to("Books/Emma.md") == {"Home.md", "daily/2026-11-15.md"}
    assert shelf.select_linked_from("Home.md") == {"Books/Emma.md"}
