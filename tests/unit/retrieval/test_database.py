"""The file of an index: private, shared by processes, and rebuilt when unreadable."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from lamella.errors import IndexUnavailableError
from lamella.retrieval.database import IndexFile, passes_integrity_check


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "index.db"


def test_index_file_and_folder_are_private(path: Path) -> None:
    with closing(IndexFile(path)) as file:
        with file.write_transaction():
            file.execute("INSERT INTO facts VALUES ('a', 'b')")
        assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_transaction_is_written_completely_or_not_at_all(path: Path) -> None:
    with closing(IndexFile(path)) as file:
        with suppress(ZeroDivisionError), file.write_transaction():
            file.execute("INSERT INTO facts VALUES ('half', 'x')")
            _ = 1 / 0
        assert file.execute("SELECT * FROM facts WHERE name = 'half'") == []


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\0" + b"\xff" * 5_000])
def test_invalid_file_is_replaced(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with closing(IndexFile(path)) as file:
        assert bool(file.rebuild_reason) == bool(content)
        assert file.execute("SELECT count(*) FROM notes") == [(0,)]
    assert passes_integrity_check(path)


def test_other_version_is_rebuilt_and_same_version_kept(path: Path) -> None:
    with closing(IndexFile(path)) as file, file.write_transaction():
        file.execute("INSERT INTO facts VALUES ('kept', 'x')")
    with closing(IndexFile(path)) as file:
        assert file.rebuild_reason is None
        assert file.execute("SELECT value FROM facts WHERE name = 'kept'") == [("x",)]
        file.execute("UPDATE facts SET value = '0 older' WHERE name = 'version'")
    with closing(IndexFile(path)) as file:
        assert file.rebuild_reason == "it was made by another version"
        assert file.execute("SELECT value FROM facts WHERE name = 'kept'") == []


def test_foreign_tables_are_replaced(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE theirs (a)")
    with closing(IndexFile(path)) as file:
        assert file.rebuild_reason
        assert file.execute("SELECT count(*) FROM notes") == [(0,)]


def test_writer_waiting_too_long_gets_error(path: Path) -> None:
    with closing(IndexFile(path)) as one, closing(IndexFile(path, timeout=0.05)) as other, one.write_transaction():
        with pytest.raises(IndexUnavailableError, match="locked") as caught, other.write_transaction():
            pass
        assert "index_folder" in caught.value.hint


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(IndexUnavailableError):
        IndexFile(tmp_path / "file" / "index.db")


def test_words_of_a_batch_are_written_as_one_segment(path: Path) -> None:
    texts = [" ".join(f"w{number}x{other}" for other in range(400)) for number in range(400)]
    with closing(IndexFile(path)) as file:
        with file.write_transaction():
            file.execute_many("INSERT INTO chunks (body) VALUES (?)", [(text,) for text in texts])
        assert file.execute("SELECT count(DISTINCT segid) FROM chunks_idx") == [(1,)]


def test_later_batches_do_not_rewrite_earlier_ones(path: Path) -> None:
    insert = "INSERT INTO chunks (rowid, body) VALUES (?, ?)"
    with closing(IndexFile(path)) as file:
        for batch in range(7):
            with file.write_transaction():
                words = [f"word{batch}x{number:x}" for number in range(30_000)]
                file.execute_many(insert, [(batch * 300 + at, " ".join(words[at::300])) for at in range(300)])
        assert file.execute("SELECT count(DISTINCT segid) FROM chunks_idx") == [(7,)]
