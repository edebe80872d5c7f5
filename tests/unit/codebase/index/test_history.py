"""Commit messages as search words for the files of the commit."""

from pathlib import Path

from tests.unit.codebase.repositories import commit, write

from lamella.codebase.index import InMemoryTables, parse_focused_commits, refresh_commit_tables
from lamella.codebase.repository import GitFolder


def test_commits_are_read_newest_first_with_files(tmp_path: Path) -> None:
    root = write(tmp_path, {"a.py": "1", "b c.py": "1"})
    commit(root, "Begin: both")
    commit(write(root, {"a.py": "2"}), "Change one")
    found = list(parse_focused_commits(GitFolder(root).read_log(maximum=10) or b""))
    assert found == [("Change one", ["a.py"]), ("Begin: both", ["a.py", "b c.py"])]


def test_commit_of_many_files_is_ignored() -> None:
    names = b"\0".join(b"%d.py" % number for number in range(31))
    assert list(parse_focused_commits(b"\x01" + b"a" * 40 + b" Move\0\n" + names + b"\0")) == []


def test_history_is_read_only_after_new_commit(tmp_path: Path) -> None:
    root, tables = write(tmp_path, {"a.py": "1"}), InMemoryTables()
    commit(root, "Begin")
    refresh_commit_tables(tables, GitFolder(root))
    tables.execute("DELETE FROM touches")
    refresh_commit_tables(tables, GitFolder(root))
    assert tables.execute("SELECT * FROM touches") == []
    commit(write(root, {"a.py": "2"}), "Change")
    refresh_commit_tables(tables, GitFolder(root))
    assert tables.execute("SELECT * FROM touches") == [("a.py", 1), ("a.py", 2)]


def test_folder_without_git_has_no_history(tmp_path: Path) -> None:
    tables = InMemoryTables()
    refresh_commit_tables(tables, GitFolder(tmp_path))
    assert tables.execute("SELECT * FROM touches") == []
