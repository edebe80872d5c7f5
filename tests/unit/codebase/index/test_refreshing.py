"""Bringing an index up to what is there."""

from functools import partial
from pathlib import Path
from time import time_ns

from tests.unit.codebase.repositories import WATCH, write

from lamella.codebase.index import CodeIndexRefresher, InMemoryTables, make_searchable_columns
from lamella.codebase.repository import FolderFiles


class _Counting(FolderFiles):
    """Remembers what was read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.seen: list[str] = []

    def read(self, path: str) -> bytes:
        self.seen.append(path)
        return super().read(path)


def make(root: Path) -> tuple[CodeIndexRefresher, _Counting, InMemoryTables]:
    files, tables = _Counting(root), InMemoryTables()
    # Long after they were written, so that whatever changes them from now on changes their state.
    later = partial(int, time_ns() + 10**12)
    return (
        CodeIndexRefresher(tables, files, anchors=WATCH.anchors, find_secrets=WATCH.find_secrets, now_ns=later),
        files,
        tables,
    )


def test_only_changed_files_are_read(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "alpha", "b.py": "beta", "c.py": "gamma"})
    refresher, files, tables = make(root)
    assert list(refresher.refresh().states) == ["a.py", "b.py", "c.py"]
    files.seen.clear()
    write(root, {"b.py": "another text"})
    (root / "c.py").unlink()
    assert list(refresher.refresh().states) == ["a.py", "b.py"]
    assert files.seen == ["b.py"]
    match = "SELECT count(*) FROM words WHERE words MATCH ?"
    assert [tables.execute(match, (word,))[0][0] for word in ("alpha", "beta", "another", "gamma")] == [1, 0, 1, 0]


def test_file_excluded_by_content_is_not_read_again(tmp_path: Path) -> None:
    refresher, files, tables = make(write(tmp_path, {"a.py": b"\0", "b.py": "x"}))
    first, second = refresher.refresh(), refresher.refresh()
    assert files.seen == ["a.py", "b.py"]
    assert first.left_out == second.left_out == (("a.py", "it is binary"),)
    assert tables.execute("SELECT count(*) FROM words") == [(1,)]


def test_progress_is_reported(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    make(write(tmp_path, {"a.py": "", "b.py": ""}))[0].refresh(report=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_file_is_found_by_parts_of_names() -> None:
    path, symbols, body, parts = make_searchable_columns("src/PodSpec.py", "class PodTemplate: ...")
    assert path == "src/PodSpec.py pod spec"
    assert symbols == "PodTemplate pod template"
    assert body == "class PodTemplate: ..."
    assert parts == "pod template"
