"""Records: each field of a file and of a task."""

from datetime import datetime

import pytest
from tests.unit.sources.dataview.sample_vault import BOOKS, TextFiles, rows

from lamella.sources.dataview.notes import FileRecord, NoteRecord, VaultNotes
from lamella.sources.dataview.parser import FILE_FIELDS
from lamella.sources.dataview.results import DataviewCache
from lamella.sources.dataview.values import format_value


def note(path: str) -> NoteRecord:
    found = VaultNotes(TextFiles(), DataviewCache().parsed_notes).find_note(path)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("name", "Dune"),
        ("path", "Books/Dune.md"),
        ("folder", "Books"),
        ("ext", "md"),
        ("link", "[[Books/Dune]]"),
        ("size", str(len(BOOKS["Books/Dune.md"]))),
        ("mtime", "2023-11-14 22:13:20"),
        ("mday", "2023-11-14"),
        ("day", "-"),
        ("tags", "#Classic, #book, #book/scifi"),
        ("etags", "#Classic, #book/scifi"),
        ("aliases", ""),
        ("inlinks", "[[Books/Emma]], [[People/Frank Herbert]], [[daily/2026-11-15]]"),
        ("outlinks", "[[People/Frank Herbert]]"),
        ("tasks", "Lend it to Jo [due:: 2026-11-20], Find it, Buy it ✅ 2026-01-02"),
    ],
)
def test_file_has_fields(field: str, told: str) -> None:
    file = note("Books/Dune.md").get("file")
    assert isinstance(file, FileRecord)
    assert format_value(file.get(field)) == told
    assert format_value(file) == "[[Books/Dune]]"


def test_every_field_that_queries_may_name_is_there() -> None:
    file = note("daily/2026-11-15.md").file
    assert [name for name in FILE_FIELDS if file.get(name) is None] == []
    assert file.get("ctime") is None


def test_note_day_comes_from_name_or_field() -> None:
    assert note("daily/2026-11-15.md").file.get("day") == datetime(2026, 11, 15)  # noqa: DTZ001
    assert rows("LIST file.day", {"a.md": "date:: 2026-01-02"}) == ["- [[a]]: 2026-01-02"]


def test_impossible_file_times_are_none() -> None:
    files = TextFiles({"a.md": ""})
    files.times["a.md"] = 10**30
    found = VaultNotes(files, DataviewCache().parsed_notes).find_note("a.md")
    assert found is not None
    assert [found.file.get(name) for name in ("mtime", "mday")] == [None, None]


def test_task_fields_win_over_note_fields() -> None:
    first, found, _ = note("Books/Dune.md").tasks
    asked = ("text", "status", "completed", "fullycompleted", "checked", "line", "path", "rating")
    assert [found.get(name) for name in asked] == ["Find it", "x", True, True, True, 11, "Books/Dune.md", 5]
    assert format_value(first.get("section")) == "[[Books/Dune#To do]]"
    assert format_value(first.get("children")) == "Find it"
    assert format_value(first.get("due")) == "2026-11-20"
    assert first.get("fullyCompleted") is False


def test_links_in_fields_lead_to_notes() -> None:
    texts = BOOKS | {"x.md": "---\na: {b: ['[[Emma]]', '[[Nobody]]']}\n---\n"}
    assert rows('LIST a.b FROM "x"', texts) == ["- [[x]]: [[Books/Emma]], [[Nobody]]"]
