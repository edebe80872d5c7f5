"""Migrations: forward from every version, all together or not at all; newer stores are refused."""

import json
from pathlib import Path

import pytest
from tests.checkpoints import list_checkpoints
from tests.conformance.conftest import OpenStore, make_url
from tests.conformance.stores.golden.dumps import FOLDER, dump, golden_file, restore
from tests.conformance.stores.golden.story import BEGINS, CHECKPOINT, COUNTS, LINE, NAME, read_back, write_story
from tests.conformance.stores.material import say, tamper, texts

from lamella.core.values import replace
from lamella.errors import LamellaError, SettingError, StoreCorruptedError, StoreVersionError
from lamella.ports import Store
from lamella.stores.open_store import open_store
from lamella.stores.postgresql import open_postgresql
from lamella.stores.sql_schema import load_migrations
from lamella.stores.sql_store import SqlStore
from lamella.stores.sqlite import SqliteDatabase

DIALECTS = ("sqlite", "postgresql")
EVERY_VERSION = [(dialect, version) for dialect in DIALECTS for version in range(1, len(load_migrations(dialect)) + 1)]


@pytest.mark.parametrize(("dialect", "version"), EVERY_VERSION)
def test_store_of_every_version_opens_completely(dialect: str, version: int, tmp_path: Path, opened: OpenStore) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    store = opened(url)
    assert read_back(store) == json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
    assert list(store.verify()) == []
    assert list(store.verify_erased("gone")) == []
    assert store.stats().schema == len(load_migrations(dialect))
    assert store.append("boat", say("and on"), expected=1) == 2


@pytest.mark.parametrize(("dialect", "version"), EVERY_VERSION)
def test_token_counts_exist_from_their_version_on(
    dialect: str, version: int, tmp_path: Path, opened: OpenStore
) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    assert [record.counts for record in opened(url).load("boat")] == [COUNTS if version > 1 else b""]


@pytest.mark.parametrize(("dialect", "version"), EVERY_VERSION)
def test_checkpoints_exist_from_their_version_on(dialect: str, version: int, tmp_path: Path, opened: OpenStore) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    kept = CHECKPOINT if version > 5 else replace(CHECKPOINT, separate_data=b"")
    assert list_checkpoints(opened(url), "boat") == ([kept] if version > 2 else [])


@pytest.mark.parametrize(("dialect", "version"), EVERY_VERSION)
def test_names_exist_from_their_version_on_and_keys_before(
    dialect: str, version: int, tmp_path: Path, opened: OpenStore
) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    store = opened(url)
    found = store.find_conversation(NAME if version > 3 else "boat")
    assert found is not None
    assert (found.conversation, found.name) == ("boat", NAME if version > 3 else "boat")
    assert store.find_conversation("gone") is None
    assert store.append("another", say("of that name"), expected=0, name="gone") == 1


@pytest.mark.parametrize(("dialect", "version"), EVERY_VERSION)
def test_shared_table_rows_exist_from_their_version_on(
    dialect: str, version: int, tmp_path: Path, opened: OpenStore
) -> None:
    url = make_url(dialect, tmp_path)
    restore(url, golden_file(dialect, version).read_text(encoding="utf-8"))
    name, text = LINE
    assert opened(url).shared_table.get_many(name, at=BEGINS) == ({name: text} if version > 4 else {})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_newest_version_writes_its_golden_file(dialect: str, tmp_path: Path, opened: OpenStore) -> None:
    url = make_url(dialect, tmp_path)
    write_story(opened(url))
    newest = golden_file(dialect, len(load_migrations(dialect)))
    assert dump(url) == newest.read_text(encoding="utf-8")


def test_both_databases_have_the_same_versions() -> None:
    assert len(load_migrations("sqlite")) == len(load_migrations("postgresql")) >= 1


def open_with(url: str, migrations: tuple[str, ...]) -> Store:
    """Open a store as a version of Lamella with other migrations would."""
    if url.startswith("sqlite"):
        database = SqliteDatabase(url.removeprefix("sqlite:///"), timeout=5.0)
        try:
            return SqlStore(database, name="chats.db", migrations=migrations)
        except LamellaError:
            database.close()
            raise
    return open_postgresql(url, timeout=5.0, migrations=migrations)


def _migrations(url: str) -> tuple[str, ...]:
    return load_migrations("sqlite" if url.startswith("sqlite") else "postgresql")


NEXT = "ALTER TABLE conversations ADD COLUMN starred INTEGER;\nUPDATE conversations SET starred = 0;\n"


def test_older_store_is_migrated_on_open(url: str, opened: OpenStore) -> None:
    opened(url).append("c", say("one"), expected=0)
    newer = open_with(url, (*_migrations(url), NEXT))
    assert newer.stats().schema == len(_migrations(url)) + 1
    assert texts(newer, "c") == ["one"]
    assert newer.append("c", say("two"), expected=1) == 2
    newer.close()
    assert tamper(url, "SELECT starred FROM conversations") == [(0,)]


def test_newer_store_is_refused_and_unchanged(url: str) -> None:
    newer, newest = open_with(url, (*_migrations(url), NEXT)), len(_migrations(url))
    newer.append("c", say("one"), expected=0)
    newer.close()
    with pytest.raises(StoreVersionError, match=rf"schema version {newest + 1}.*up to {newest}"):
        open_store(url)
    again = open_with(url, (*_migrations(url), NEXT))
    assert texts(again, "c") == ["one"]
    again.close()


def test_failed_migration_changes_nothing(url: str, opened: OpenStore) -> None:
    opened(url).append("c", say("one"), expected=0)
    broken = "ALTER TABLE conversations ADD COLUMN half INTEGER;\nINSERT INTO nowhere VALUES (1);\n"
    with pytest.raises(StoreCorruptedError, match="nowhere"):
        open_with(url, (*_migrations(url), NEXT, broken))
    store = opened(url)
    assert store.stats().schema == len(_migrations(url))
    assert texts(store, "c") == ["one"]
    with pytest.raises(Exception, match="starred"):
        tamper(url, "SELECT starred FROM conversations")


def test_unfinished_store_is_created_on_next_open(url: str, opened: OpenStore) -> None:
    with pytest.raises(StoreCorruptedError):
        open_with(url, (*_migrations(url), "INSERT INTO nowhere VALUES (1);\n"))
    assert opened(url).append("c", say("one"), expected=0) == 1


def test_foreign_database_is_unchanged(url: str) -> None:
    _, schema = (None, "") if url.startswith("sqlite") else (None, url.rpartition("schema=")[2])
    if schema:
        tamper(url, f"CREATE SCHEMA {schema}")
    tamper(url, "CREATE TABLE recipes (name TEXT)")
    with pytest.raises(SettingError, match="recipes"):
        open_store(url)
