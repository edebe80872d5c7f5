"""SQLite in trouble: a clear error, nothing lost, and the same call works once the trouble is over."""

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import attach, say, texts
from tests.contracts.repository import ROOT
from tests.waiting import HANG_SECONDS

from lamella.core.text.content import hash_bytes
from lamella.errors import (
    ConflictError,
    InvalidOperationError,
    LamellaError,
    SettingError,
    StoreCorruptedError,
    StoreUnavailableError,
)
from lamella.ports import Store
from lamella.stores.open_store import open_sqlite, open_store
from lamella.stores.sql_schema import Row, Transaction
from lamella.stores.sql_store import SqlStore
from lamella.stores.sqlite import SqliteDatabase

LARGE = b"large" * 200_000


@pytest.fixture
def path() -> Iterator[Path]:
    """A file in a folder that everyone may enter, and only its owner may change."""
    folder = Path(mkdtemp(prefix="lamella-"))
    folder.chmod(0o755)
    yield folder / "chats.db"
    subprocess.run(["rm", "-rf", str(folder)], check=True)


@pytest.fixture
def kept(path: Path, opened: OpenStore) -> Store:
    store = opened(f"sqlite:///{path}")
    store.append("c", say("one"), expected=0)
    return store


def _still_works(store: Store) -> None:
    assert texts(store, "c") == ["one"]
    assert store.append("c", attach(LARGE, text="two"), expected=1) == 2
    assert store.read_contents("c", [hash_bytes(LARGE)]) == {hash_bytes(LARGE): LARGE}
    assert list(store.verify()) == []


def test_sqlite_settings_make_writes_durable_and_erasure_real(path: Path) -> None:
    database = SqliteDatabase(str(path), timeout=1.0)

    def read(name: str) -> object:
        return database.run_read_transaction(lambda transaction: transaction.query(f"PRAGMA {name}")[0][0])

    told = {name: read(name) for name in ("journal_mode", "synchronous", "fullfsync", "foreign_keys", "secure_delete")}
    assert told == {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "foreign_keys": 1, "secure_delete": 1}
    database.close()


def test_full_disk_loses_nothing_and_append_works_later(path: Path) -> None:
    database = SqliteDatabase(str(path), timeout=1.0)
    store = open_sqlite(str(path))
    store.append("c", say("one"), expected=0)
    store.close()
    limited = _limited(database)
    with pytest.raises(StoreUnavailableError, match="full") as caught:
        limited.append("c", attach(LARGE, text="two"), expected=1)
    assert "Make room" in caught.value.hint
    assert texts(limited, "c") == ["one"]
    database.run_read_transaction(lambda transaction: transaction.query("PRAGMA max_page_count = 1000000"))
    _still_works(limited)
    limited.close()


def _limited(database: SqliteDatabase) -> Store:
    """A store whose file may not grow further: SQLite says then what it says of a full disk."""
    store = SqlStore(database, name="chats.db")
    database.run_read_transaction(lambda transaction: transaction.query("PRAGMA max_page_count = 20"))
    return store


def test_refused_write_loses_nothing(path: Path, kept: Store) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("chats.db-wal").stat().st_size + 10_000, hard))
    try:
        with pytest.raises(StoreUnavailableError, match="disk"):
            kept.append("c", attach(LARGE, text="two"), expected=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    _still_works(kept)


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Without the rights of root, whom no file refuses; for anyone else, as they are."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def test_read_only_file_is_reported(path: Path, kept: Store, opened: OpenStore) -> None:
    kept.close()
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    path.parent.chmod(0o777)
    with _as_nobody():
        store = opened(f"sqlite:///{path}")
        assert texts(store, "c") == ["one"]
        with pytest.raises(StoreUnavailableError, match="read-only") as caught:
            store.append("c", say("two"), expected=1)
        store.close()
    assert "Permit writing" in caught.value.hint
    path.chmod(0o644)
    _still_works(opened(f"sqlite:///{path}"))


def test_unwritable_folder_is_named(path: Path) -> None:
    path.parent.chmod(0o555)
    with _as_nobody(), pytest.raises(StoreUnavailableError, match="permit"):
        open_store(f"sqlite:///{path}")


def test_locked_file_times_out(path: Path) -> None:
    store = open_sqlite(str(path), timeout=0.3)
    store.append("c", say("one"), expected=0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match=r"locked by someone else for 0\.3 s"):
            store.append("c", say("two"), expected=1)
        assert texts(store, "c") == ["one"]
        other.execute("ROLLBACK")
    _still_works(store)
    store.close()


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match=f"there is no folder {tmp_path}/none"):
        open_store(f"sqlite:///{tmp_path}/none/chats.db")


def test_folder_is_not_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="it is a folder"):
        open_store(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("data", [b"# A note\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_foreign_file_is_unchanged(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(StoreCorruptedError):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == data


def test_empty_file_becomes_a_store(path: Path, opened: OpenStore) -> None:
    path.touch()
    assert opened(f"sqlite:///{path}").append("c", say("one"), expected=0) == 1


def test_file_cut_short_is_damaged_and_not_empty(path: Path, kept: Store, opened: OpenStore) -> None:
    kept.append("c", attach(LARGE), expected=1)
    kept.close()
    os.truncate(path, 4096 * 2)
    with pytest.raises(StoreCorruptedError):
        opened(f"sqlite:///{path}").load("c")


def test_interrupted_append_is_rolled_back(path: Path) -> None:
    database = SqliteDatabase(str(path), timeout=1.0)
    store = open_sqlite(str(path))

    def interrupted(transaction: object) -> None:
        database._fetch_rows("INSERT INTO contents (hash, data) VALUES ('x', 'y')")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        database.run_write_transaction(interrupted)
    assert store.stats().contents == 0
    assert store.append("c", say("one"), expected=0) == 1
    database.close()
    store.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "memory:", "memory://"])
def test_store_in_memory_has_no_file(url: str, opened: OpenStore) -> None:
    store = opened(url)
    assert store.append("c", say("one"), expected=0) == 1
    assert not Path(":memory:").exists()


def test_relative_path_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: OpenStore) -> None:
    monkeypatch.chdir(tmp_path)
    opened("sqlite:///my chats?.db").append("c", say("one"), expected=0)
    assert (tmp_path / "my chats?.db").exists()


@pytest.mark.parametrize("url", ["chats.db", "mysql://me:secret@host/db", "sqlite:chats.db", "sqlite:///", ""])
def test_unknown_store_address_is_refused_without_echo(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        open_store(url)
    assert "sqlite:///chats.db" in caught.value.hint
    assert "secret" not in caught.value.message


def test_missing_postgresql_driver_gives_install_command() -> None:
    script = """
import sys
sys.modules["psycopg"] = None
from lamella.stores.open_store import open_store
from lamella.errors import NotAvailableError
try:
    open_store("postgresql://localhost/chats")
except NotAvailableError as error:
    print(error.hint)
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == 'In the folder of the clone, install it with: pip install ".[postgres]"\n'


def test_opening_sqlite_loads_no_driver_of_another_database(tmp_path: Path) -> None:
    script = f"""
import sys
from lamella.stores.open_store import open_store
open_store("sqlite:///{tmp_path}/chats.db").close()
print([name for name in sys.modules if name.startswith("psycopg")])
"""
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


# Cuts the file short in the middle of a read, as a failing copy would, and says how the read ended.
CUT = """
import os, sys
from lamella.stores.sqlite import SqliteDatabase
from lamella.errors import StoreCorruptedError
path = sys.argv[1]
database = SqliteDatabase(path, timeout=1.0)

def read(transaction):
    transaction.query("SELECT count(*) FROM schema_version")
    os.truncate(path, 8_192)
    transaction.query("SELECT * FROM contents")

try:
    database.run_read_transaction(read)
except StoreCorruptedError as error:
    print(error.code)
"""


def test_file_truncated_while_reading_is_error_without_crash(path: Path) -> None:
    store = open_sqlite(str(path))
    store.append("c", attach(LARGE), expected=0)
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", CUT, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "store_damaged"), done.stderr


def _write_at_once(database: SqliteDatabase, works: Sequence[Callable[[Transaction], object]]) -> list[object]:
    """What each of several works that wait for the same lock gives, or how it fails."""
    first, begun = threading.Event(), threading.Event()

    def keep_open(_: Transaction) -> None:
        begun.set()
        assert first.wait(30)

    ended: list[object] = [None] * len(works)

    def write(number: int) -> None:
        try:
            ended[number] = database.run_write_transaction(works[number])
        except LamellaError as error:
            ended[number] = error

    threads = [threading.Thread(target=database.run_write_transaction, args=(keep_open,))]
    threads[0].start()
    assert begun.wait(30)
    threads += [threading.Thread(target=write, args=(number,)) for number in range(len(works))]
    for thread in threads[1:]:
        thread.start()
    # Long enough for all of them to come to the lock; whoever does not is written by itself, and a bit more is counted.
    time.sleep(0.3)
    first.set()
    for thread in threads:
        thread.join()
    return ended


@pytest.fixture
def counted(path: Path) -> Iterator[SqliteDatabase]:
    database = SqliteDatabase(str(path), timeout=30.0)
    database.run_write_transaction(
        lambda transaction: transaction.run("CREATE TABLE numbers (number INTEGER PRIMARY KEY)")
    )
    yield database
    database.close()


def _insert(number: int, path: Path, seen: set[int]) -> Callable[[Transaction], int]:
    def work(transaction: Transaction) -> int:
        transaction.run("INSERT INTO numbers VALUES (?)", number)
        with closing(sqlite3.connect(path)) as other:
            # Only what is committed is seen from elsewhere.
            seen.add(other.execute("SELECT count(*) FROM numbers").fetchone()[0])
        return number

    return work


def test_queued_writes_are_committed_together(path: Path, counted: SqliteDatabase) -> None:
    seen: set[int] = set()
    assert _write_at_once(counted, [_insert(n, path, seen) for n in range(30)]) == list(range(30))
    assert counted.query("SELECT count(*) FROM numbers") == [(30,)]
    assert len(seen) <= 5


def test_failed_write_in_batch_fails_only_itself(path: Path, counted: SqliteDatabase) -> None:
    def refuse(transaction: Transaction) -> None:
        transaction.run("INSERT INTO numbers VALUES (?)", 100)
        raise ConflictError(conversation_key="c", expected=1, found=2)

    ended = _write_at_once(counted, [_insert(0, path, set()), refuse, _insert(1, path, set())])
    assert isinstance(ended.pop(1), ConflictError)
    assert ended == [0, 1]
    assert counted.query("SELECT number FROM numbers") == [(0,), (1,)]


def test_waiters_for_foreign_lock_wait_once(path: Path, counted: SqliteDatabase) -> None:
    database = SqliteDatabase(str(path), timeout=2.0)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        alone = _fail_at_once(database, writers=1)
        # Waiting in line counts: one after another they would wait ten times as long, and the others again twice.
        assert _fail_at_once(database, writers=10) < 1.8 * alone
    database.close()


def _fail_at_once(database: SqliteDatabase, *, writers: int) -> float:
    begun = time.monotonic()
    threads = [threading.Thread(target=_fail_to_write, args=(database,)) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - begun


def _fail_to_write(database: SqliteDatabase) -> None:
    with pytest.raises(StoreUnavailableError, match="locked by someone else"):
        database.run_write_transaction(lambda transaction: transaction.query("SELECT 1"))


def test_conversations_of_many_threads_are_whole_and_in_order(path: Path, opened: OpenStore) -> None:
    store = opened(f"sqlite:///{path}")

    def talk(name: str) -> None:
        for number in range(20):
            assert store.append(name, say(f"{number}"), expected=number) == number + 1

    threads = [threading.Thread(target=talk, args=(f"chat {number}",)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(10):
        assert texts(store, f"chat {number}") == [f"{n}" for n in range(20)]
    assert list(store.verify()) == []


class _Watched(SqliteDatabase):
    """A database that remembers what it was asked."""

    def query(self, sql: str, *values: object) -> list[Row]:
        self.asked = (sql, values)
        return super().query(sql, *values)


def test_conversation_is_found_by_index(path: Path) -> None:
    with closing(_Watched(str(path), timeout=1.0)) as database:
        store = SqlStore(database, name="chats")
        store.append("k1", say("one"), expected=0, name="garden")
        assert store.find_conversation("garden") is not None
        sql, values = database.asked
        steps = [str(step[-1]) for step in database.query(f"EXPLAIN QUERY PLAN {sql}", *values)]
    assert [step for step in steps if step.startswith("SEARCH")]
    assert [step for step in steps if step.startswith("SCAN")] == []


def test_reads_do_not_wait_for_writes(path: Path) -> None:
    inside, looked, written = threading.Event(), threading.Event(), list[str]()
    with closing(SqliteDatabase(str(path), timeout=1.0)) as database:
        database.run_write_transaction(lambda transaction: transaction.run("CREATE TABLE t (n)"))

        def write(transaction: Transaction) -> None:
            transaction.run("INSERT INTO t VALUES (1)")
            inside.set()
            looked.wait(5)

        def commit() -> None:
            database.run_write_transaction(write)
            written.append("done")

        thread = threading.Thread(target=commit)
        thread.start()
        inside.wait(5)
        assert (database.query("SELECT count(*) FROM t"), written) == ([(0,)], [])
        looked.set()
        thread.join()
        assert (database.query("SELECT count(*) FROM t"), written) == ([(1,)], ["done"])


def test_read_on_closed_database_raises_error(path: Path) -> None:
    database = SqliteDatabase(str(path), timeout=1.0)
    database.close()
    with pytest.raises(InvalidOperationError, match="is closed"):
        database.query("SELECT 1")
