"""Records: each field of a file and of a task."""

from datetime import datetime

import pytest
from tests.unit.adapters.sources.dataview.books import BOOKS, TextFiles, rows

from lamella.adapters.sources.dataview.answers import DataviewMemory
from lamella.adapters.sources.dataview.language.parsing import FILE_FIELDS
from lamella.adapters.sources.dataview.language.values import tell_value
from lamella.adapters.sources.dataview.notes.records import FileRecord, NoteRecord
from lamella.adapters.sources.dataview.notes.shelf import NoteShelf


def note(path: str) -> NoteRecord:
    found = NoteShelf(TextFiles(), DataviewMemory().texts).note(path)
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
def test_a_file_has_fields(field: str, told: str) -> None:
    file = note("Books/Dune.md").find("file")
    assert isinstance(file, FileRecord)
    assert tell_value(file.find(field)) == told
    assert tell_value(file) == "[[Books/Dune]]"


def test_every_field_that_queries_may_name_is_there() -> None:
    file = note("daily/2026-11-15.md").file
    assert [name for name in FILE_FIELDS if file.find(name) is None] == []
    assert file.find("ctime") is None


def test_a_note_of_a_day_has_that_day_from_its_name_or_its_fields() -> None:
    assert note("daily/2026-11-15.md").file.find("day") == datetime(2026, 11, 15)  # noqa: DTZ001
    assert rows("LIST file.day", {"a.md": "date:: 2026-01-02"}) == ["- [[a]]: 2026-01-02"]


def test_a_disk_may_say_what_no_calendar_has() -> None:
    files = TextFiles({"a.md": ""})
    files.times["a.md"] = 10**30
    found = NoteShelf(files, DataviewMemory().texts).note("a.md")
    assert found is not None
    assert [found.file.find(name) for name in ("mtime", "mday")] == [None, None]


def test_a_task_is_asked_before_its_note() -> None:
    first, found, _ = note("Books/Dune.md").tasks
    asked = ("text", "status", "completed", "fullycompleted", "checked", "line", "path", "rating")
    assert [found.find(name) for name in asked] == ["Find it", "x", True, True, True, 11, "Books/Dune.md", 5]
    assert tell_value(first.find("section")) == "[[Books/Dune#To do]]"
    assert tell_value(first.find("children")) == "Find it"
    assert tell_value(first.find("due")) == "2026-11-20"
    assert first.find("fullyCompleted") is False


def test_links_in_fields_lead_to_notes() -> None:
    texts = BOOKS | {"x.md": "---\na: {b: ['[[Emma]]', '[[Nobody]]']}\n---\n"}
    assert rows('LIST a.b FROM "x"', texts) == ["- [[x]]: [[Books/Emma]], [[Nobody]]"]
