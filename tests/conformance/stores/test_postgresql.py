"""PostgreSQL in trouble: a clear error, nothing lost, nothing doubled, and the same call works when it is back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import psycopg
import pytest
from tests import servers
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import LATER, attach, say, split_schema, tamper, texts
from tests.conformance.stores.proxy import Proxy
from tests.waiting import wait_until

from lamella.errors import LamellaError, SettingError, StoreCorruptedError, StoreUnavailableError
from lamella.ports import Checkpoint, Store
from lamella.stores.append import load_checkpoints
from lamella.stores.open_store import open_store
from lamella.stores.postgresql import PostgresDatabase
from lamella.stores.sql_schema import Database, Result

MINE = "application_name = 'lamella-test'"


@pytest.fixture
def address() -> str:
    """A new store whose connections can be told from those of other tests."""
    return servers.shared().make_store_url() + "&application_name=lamella-test"


@pytest.fixture
def kept(address: str, opened: OpenStore) -> Store:
    store = opened(address)
    store.append("c", say("one"), expected=0)
    return store


def _lose_connections(address: str) -> int:
    query = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {MINE} AND pid <> pg_backend_pid()"
    return len(tamper(address.replace("&application_name=lamella-test", ""), query))


def test_lost_connections_are_reopened_silently(address: str, kept: Store) -> None:
    with psycopg.connect(split_schema(address)[0]):
        assert _lose_connections(address) >= 1
    assert kept.append("c", say("two"), expected=1) == 2
    _lose_connections(address)
    assert texts(kept, "c") == ["one", "two"]


@pytest.mark.parametrize("column", ["kind", "at", "body", "contents", "hash"])
def test_event_that_is_not_utf8_is_damage_and_hides_no_other(address: str, kept: Store, column: str) -> None:
    kept.append("d", say("two"), expected=0)
    where, schema = split_schema(address.replace("&application_name=lamella-test", ""))
    with psycopg.connect(where, autocommit=True) as other:
        with suppress(psycopg.errors.DuplicateObject):
            other.execute("CREATE CAST (bytea AS text) WITHOUT FUNCTION")
        damaged = (
            f"UPDATE {schema}.events SET {column} = CAST(CAST('\\xff7b' AS bytea) AS text) WHERE conversation = 'c'"
        )
        assert other.execute(damaged.encode()).rowcount == 1
    assert any(problem.conversation == "c" for problem in kept.verify())
    with suppress(StoreCorruptedError):
        kept.load("c")
    assert texts(kept, "d") == ["two"]
    assert kept.append("d", say("three"), expected=1) == 2


def test_connection_lost_during_append_does_not_duplicate(address: str, kept: Store) -> None:
    where, schema = split_schema(address.replace("&application_name=lamella-test", ""))
    versions: list[int] = []
    with psycopg.connect(where) as other:
        other.execute(f"SELECT id FROM {schema}.conversations FOR UPDATE".encode())
        waiting = threading.Thread(target=lambda: versions.append(kept.append("c", say("two"), expected=1)))
        waiting.start()
        _wait_for(address, "wait_event_type = 'Lock'")
        assert _lose_connections(address) >= 1
    waiting.join()
    assert versions == [2]
    assert texts(kept, "c") == ["one", "two"]


def _wait_for(address: str, state: str) -> None:
    query = f"SELECT 1 FROM pg_stat_activity WHERE {MINE} AND {state}"
    wait_until(lambda: tamper(address, query), f"a connection comes to {state}")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with TemporaryDirectory(prefix="lm-") as folder, Proxy(Path(folder), servers.shared().folder) as running:
        yield running


@pytest.fixture
def through(proxy: Proxy) -> Iterator[Store]:
    """A store behind the proxy, with one event."""
    url = servers.shared().make_store_url().replace(str(servers.shared().folder), str(proxy.folder))
    store = open_store(url, timeout=3.0)
    store.append("c", say("one"), expected=0)
    yield store
    store.close()


def test_server_stop_within_pipeline_loses_and_duplicates_nothing(proxy: Proxy, through: Store) -> None:
    # Its last words come in place of the word that everything is done, on a line that seems to be good.
    proxy.end_at = b"INTO holdings"
    assert through.append("c", attach(b"content", text="two"), expected=1) == 2
    assert proxy.lost == 1
    assert texts(through, "c") == ["one", "two"]
    assert list(through.verify()) == []


def test_commit_with_lost_answer_is_not_repeated(proxy: Proxy, through: Store) -> None:
    proxy.lose_commit = True
    assert through.append("c", attach(b"x", text="two"), expected=1) == 2
    assert proxy.lost == 1
    assert texts(through, "c") == ["one", "two"]
    assert list(through.verify()) == []


def test_append_of_events_takes_one_round_trip(proxy: Proxy, through: Store) -> None:
    before = proxy.asked
    through.append("c", say("two"), expected=1)
    through.append("new", say("one"), expected=0, name="begun")
    through.append("new", say("two", "three"), expected=1)
    assert proxy.asked - before == 3
    assert (texts(through, "c"), texts(through, "new")) == (["one", "two"], ["one", "two", "three"])
    assert list(through.verify()) == []


def test_single_statement_append_with_lost_answer_is_not_repeated(proxy: Proxy, through: Store) -> None:
    proxy.lose_commit = True
    assert through.append("c", say("two"), expected=1) == 2
    proxy.lose_commit = True
    assert through.append("new", say("one"), expected=0, name="begun") == 1
    assert proxy.lost == 2
    assert (texts(through, "c"), texts(through, "new")) == (["one", "two"], ["one"])
    assert list(through.verify()) == []


def test_retried_append_after_lost_answer_is_not_duplicated(proxy: Proxy, through: Store) -> None:
    proxy.lose_commit = proxy.shut = True
    with pytest.raises(StoreUnavailableError):
        through.append("c", say("two"), expected=1)
    proxy.shut = False
    assert through.append("c", say("two"), expected=1) == 2
    assert texts(through, "c") == ["one", "two"]


def test_append_after_lost_answer_can_still_conflict(proxy: Proxy, through: Store) -> None:
    proxy.lose_commit = proxy.shut = True
    with pytest.raises(StoreUnavailableError):
        through.append("c", say("two"), expected=1)
    proxy.shut = False
    with pytest.raises(LamellaError) as caught:
        through.append("c", say("something else"), expected=1)
    assert caught.value.code == "conflict"


def test_unreachable_server_is_named_and_used_again_later() -> None:
    with servers.running() as server:
        store = open_store(server.make_store_url(), timeout=2.0)
        store.append("c", say("one"), expected=0)
        server.stop()
        for call in (lambda: store.append("c", say("two"), expected=1), lambda: store.load("c")):
            with pytest.raises(StoreUnavailableError, match=r"postgresql://.*cannot be used.*connection") as caught:
                call()
            assert "Try again" in caught.value.hint
        server.start()
        assert texts(store, "c") == ["one"]
        assert store.append("c", say("two"), expected=1) == 2
        store.close()


def test_append_waits_for_restarting_server() -> None:
    with servers.running() as server:
        store = open_store(server.make_store_url(), timeout=30.0)
        store.append("c", say("one"), expected=0)
        server.stop()
        starting = threading.Timer(0.5, server.start)
        starting.start()
        assert store.append("c", say("two"), expected=1) == 2
        starting.join()
        assert texts(store, "c") == ["one", "two"]
        store.close()


@pytest.mark.parametrize(
    ("state", "told"),
    [("53100", "full"), ("25006", "read-only"), ("42501", "permit"), ("58030", "cannot be used"), ("55P03", "locked")],
)
def test_server_error_is_reported_and_append_can_be_retried(address: str, kept: Store, state: str, told: str) -> None:
    function = f"BEGIN RAISE EXCEPTION 'as it would be' USING ERRCODE = '{state}'; END"
    tamper(address, f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${function}$$")
    tamper(address, "CREATE TRIGGER refuse BEFORE INSERT ON contents FOR EACH ROW EXECUTE FUNCTION refuse()")
    tamper(address, "ALTER TABLE contents ENABLE ALWAYS TRIGGER refuse")
    with pytest.raises(StoreUnavailableError, match=f"{told}.*as it would be"):
        kept.append("c", attach(b"x", text="two"), expected=1)
    assert texts(kept, "c") == ["one"]
    tamper(address, "DROP TRIGGER refuse ON contents")
    assert kept.append("c", attach(b"x", text="two"), expected=1) == 2


def test_read_only_server_can_be_read(address: str, kept: Store, opened: OpenStore) -> None:
    reading = opened(address + "&options=-c%20default_transaction_read_only%3Don")
    assert texts(reading, "c") == ["one"]
    with pytest.raises(StoreUnavailableError, match="read-only"):
        reading.append("c", say("two"), expected=1)
    assert kept.append("c", say("two"), expected=1) == 2


def test_locked_conversation_times_out(address: str) -> None:
    store = open_store(address, timeout=0.3)
    store.append("c", say("one"), expected=0)
    where, schema = split_schema(address)
    with psycopg.connect(where) as other:
        other.execute(f"SELECT id FROM {schema}.conversations FOR UPDATE".encode())
        with pytest.raises(StoreUnavailableError, match="locked"):
            store.append("c", say("two"), expected=1)
        assert texts(store, "c") == ["one"]
    assert store.append("c", say("two"), expected=1) == 2
    store.close()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:secret@127.0.0.1:1/chats", "refused"),
        ("postgresql://me:secret@/chats?host=/nowhere", "nowhere"),
        ("postgresql://lamella:secret@/nowhere?host={host}", "nowhere"),
        ("postgresql://stranger:secret@/postgres?host={host}", "stranger"),
    ],
)
def test_unreachable_server_is_named_without_password(url: str, told: str) -> None:
    with pytest.raises(StoreUnavailableError, match=told) as caught:
        open_store(url.format(host=servers.shared().folder), timeout=2.0)
    assert "secret" not in caught.value.message + caught.value.hint


def test_missing_database_or_role_hint_points_to_address() -> None:
    for user, database in (("lamella", "nowhere"), ("stranger", "postgres")):
        with pytest.raises(StoreUnavailableError) as caught:
            open_store(f"postgresql://{user}@/{database}?host={servers.shared().folder}", timeout=2.0)
        assert "in the address" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sec%zzret@host/chats",
        "postgresql://host/chats?no_such=1",
        "postgresql://me:sec@zzret@localhost/chats",
    ],
)
def test_address_that_cannot_be_read_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(SettingError, match="cannot be read") as caught:
        open_store(url)
    assert "zzret" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("schema", ["Has Capitals", "x;DROP TABLE y", ""])
def test_schema_with_unusual_name_is_refused(schema: str) -> None:
    with pytest.raises(SettingError, match="plain name"):
        open_store(servers.shared().url("postgres", schema=schema))


def test_two_schemas_of_one_database_are_two_stores(opened: OpenStore) -> None:
    one, other = (opened(servers.shared().make_store_url()) for _ in range(2))
    one.append("c", say("one"), expected=0)
    assert list(other.load("c")) == []
    other.append("c", say("other"), expected=0)
    other.erase_conversation("c", at=LATER)
    assert texts(one, "c") == ["one"]


def test_default_schema_is_lamella(opened: OpenStore) -> None:
    url = servers.shared().url("postgres")
    opened(url).append("in the default schema", say("one"), expected=0)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM lamella.events").fetchone() == (1,)


def test_database_with_limited_encoding_is_refused() -> None:
    with psycopg.connect(servers.shared().url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(SettingError, match="LATIN1"):
        open_store(servers.shared().url("latin"))


def test_role_without_create_permission_gets_hint() -> None:
    with psycopg.connect(servers.shared().url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE guest LOGIN")
    with pytest.raises(StoreUnavailableError, match="does not permit") as caught:
        open_store(servers.shared().make_store_url().replace("lamella@", "guest@"))
    assert "Grant" in caught.value.hint


def test_role_without_schema_permission_gets_hint(opened: OpenStore) -> None:
    url = servers.shared().make_store_url()
    opened(url).append("c", say("one"), expected=0)
    with psycopg.connect(servers.shared().url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE passer_by LOGIN")
    with pytest.raises(StoreUnavailableError, match="does not permit this role to use the schema") as caught:
        open_store(url.replace("lamella@", "passer_by@"))
    assert "GRANT USAGE" in caught.value.hint


def test_role_can_use_schema_it_cannot_create() -> None:
    url = servers.shared().make_store_url()
    _, schema = split_schema(url)
    with psycopg.connect(servers.shared().url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE ROLE lodger LOGIN")
        connection.execute(f"CREATE SCHEMA {schema} AUTHORIZATION lodger".encode())
    store = open_store(url.replace("lamella@", "lodger@"))
    assert store.append("c", attach(b"x"), expected=0) == 1
    store.erase_conversation("c", at=LATER)
    assert list(store.verify()) == []
    store.close()


def test_commits_are_durable_despite_role_defaults(address: str) -> None:
    where, schema = split_schema(address)
    lax = PostgresDatabase(
        psycopg.conninfo.make_conninfo(where, options="-c synchronous_commit=off"),
        schema=schema,
        name="lax",
        timeout=2.0,
    )
    assert lax.run_read_transaction(lambda transaction: transaction.query("SHOW synchronous_commit")) == [("on",)]
    lax.close()


def test_server_of_development_package_works() -> None:
    with servers.running(programs=servers.find_packaged_programs()) as server:
        store = open_store(server.make_store_url())
        assert store.append("c", attach(b"x", text="one"), expected=0) == 1
        assert list(store.verify()) == []
        store.close()


class _Transacting:
    """Looks up in a transaction that is under way, as far as reading checkpoints needs it."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def query_map(self, convert: Callable[[tuple[Any, ...]], Result], sql: str, *values: object) -> list[Result]:
        return [convert(row) for row in self._connection.execute(sql.replace("?", "%s").encode(), values, binary=True)]


def test_reading_checkpoints_uses_index_with_any_planner(address: str, kept: Store) -> None:
    """Its figures are from before the conversation began: by these it has nearly no events."""
    for name in (*"abde", "new"):
        for version in (100, 200, 300):
            kept.append(name, say(*map(str, range(version - 100, version))), expected=version - 100)
            assert kept.save_checkpoint(name, Checkpoint(version=version, data=b"x"))
        if name == "e":
            for table in ("events", "checkpoints", "conversations"):
                tamper(address, f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
                tamper(address, f"ANALYZE {table}")
    where, schema = split_schema(address)
    with psycopg.connect(where) as connection:
        connection.execute(f"SET search_path TO {schema}".encode())
        database = cast("Database", _Transacting(connection))
        found = load_checkpoints(database, "new", lambda one: one.version, with_separate_data=False)
        counted = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'events'::regclass"
        [(read,)] = connection.execute(counted).fetchall()
    assert found == [100, 200, 300]
    assert read == 3
