"""PostgreSQL, appends of several threads: what waits together goes to the server at once, each as if it were alone."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from tests import servers
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import AT, counted, say, split_schema, tamper, texts
from tests.conformance.stores.proxy import Proxy
from tests.waiting import HANG_SECONDS

from lamella.core.log.events.kinds import EventBatch
from lamella.errors import ConflictError, StoreUnavailableError
from lamella.ports import Store
from lamella.stores.open_store import open_store

CHATS = [f"chat {number}" for number in range(6)]
FAR = HANG_SECONDS
# Long enough for threads to wait in line.
A_WHILE = 0.3


@pytest.fixture
def address() -> str:
    return servers.shared().make_store_url()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with TemporaryDirectory(prefix="lm-") as folder, Proxy(Path(folder), servers.shared().folder) as running:
        yield running


@pytest.fixture
def store(address: str, proxy: Proxy, opened: OpenStore) -> Store:
    """A store behind the proxy, with some conversations of one event and one more, whose append others wait behind."""
    made = opened(address.replace(str(servers.shared().folder), str(proxy.folder)))
    for chat in ("first", *CHATS):
        made.append(chat, say("one"), expected=0)
    return made


@contextmanager
def _locked(address: str, what: str) -> Iterator[None]:
    where, schema = split_schema(address)
    with psycopg.connect(where) as other:
        other.execute(f"SET search_path TO {schema}".encode())
        other.execute(what.encode())
        yield


def _append_at_once(
    store: Store, address: str, changes: Sequence[tuple[str, EventBatch]], *, meanwhile: Callable[[], object] = bool
) -> list["Future[int]"]:
    """Appends that came while one was held up, once that goes on."""
    threads = ThreadPoolExecutor(len(changes) + 1)
    with _locked(address, "LOCK TABLE events IN EXCLUSIVE MODE"):
        first = threads.submit(store.append, "first", say("two"), expected=1)
        wait([first], timeout=A_WHILE)
        others = [threads.submit(store.append, chat, batch, expected=1) for chat, batch in changes]
        wait(others, timeout=A_WHILE)
        meanwhile()
    assert first.result(FAR) == 2
    return others


def test_concurrent_appends_take_one_round_trip(store: Store, address: str, proxy: Proxy) -> None:
    before = proxy.asked
    done = _append_at_once(store, address, [(chat, say("two", "three")) for chat in CHATS])
    assert [one.result(FAR) for one in done] == [3] * len(CHATS)
    assert proxy.asked - before == 2
    assert [texts(store, chat) for chat in CHATS] == [["one", "two", "three"]] * len(CHATS)
    assert store.append(CHATS[0], say("four"), expected=3) == 4
    assert list(store.verify()) == []


def test_append_after_load_needs_no_lookup(store: Store, address: str, proxy: Proxy, opened: OpenStore) -> None:
    """Once to the server and back: where the conversation ends is not looked up again."""
    reader = opened(address.replace(str(servers.shared().folder), str(proxy.folder)))
    assert [record.at for record in reader.load("first")] == [AT]
    before = proxy.asked
    assert reader.append("first", say("two"), expected=1) == 2
    assert proxy.asked - before == 1
    # The other wrote the first event, and knows of no second one.
    with pytest.raises(ConflictError):
        store.append("first", say("lost"), expected=1)
    assert store.append("first", say("three"), expected=2) == 3
    with pytest.raises(ConflictError):
        reader.append("first", say("lost"), expected=2)
    assert texts(reader, "first") == ["one", "two", "three"]
    assert list(store.verify()) == []


def test_batch_stores_odd_text_unchanged(store: Store, address: str) -> None:
    odd = ["'quoted' \"twice\" \\ %s ?", "\u2028\u00e4\U0001f600\t\n", "\\u0041 {} [] null"]
    written = [counted(say(text, at=f"{AT} {text}"), bytes(range(256))) for text in odd]
    wait(_append_at_once(store, address, list(zip(CHATS, written, strict=False))), timeout=FAR)
    kept = [store.load(chat)[-1] for chat in CHATS[: len(odd)]]
    assert kept == [one.records[-1] for one in written]
    assert list(store.verify()) == []


def test_batch_updates_titles(store: Store, address: str) -> None:
    threads = ThreadPoolExecutor(3)
    with _locked(address, "LOCK TABLE events IN EXCLUSIVE MODE"):
        titles = (None, "named", "a\0b")
        done = [
            threads.submit(store.append, chat, say("two"), expected=1, title=title)
            for chat, title in zip(CHATS, titles, strict=False)
        ]
        wait(done, timeout=A_WHILE)
    wait(done, timeout=FAR)
    listed = {one.conversation: one.title for one in store.list_conversations()}
    assert [listed[chat] for chat in CHATS[:3]] == ["", "named", "a\ufffdb"]


def test_conflict_in_batch_fails_only_itself(store: Store, address: str, opened: OpenStore) -> None:
    other = opened(address)
    assert other.append(CHATS[1], say("theirs"), expected=1) == 2
    done = _append_at_once(store, address, [(chat, say("mine")) for chat in CHATS])
    assert isinstance(done.pop(1).exception(FAR), ConflictError)
    assert [one.result(FAR) for one in done] == [2] * len(done)
    assert [texts(store, chat)[-1] for chat in CHATS] == ["mine", "theirs", *["mine"] * 4]
    assert list(store.verify()) == []


def test_second_append_to_one_conversation_is_conflict(store: Store, address: str) -> None:
    done = _append_at_once(store, address, [(CHATS[0], say("mine")), (CHATS[0], say("yours")), (CHATS[1], say("two"))])
    failed = [one.exception(FAR) for one in done]
    assert sorted(type(one).__name__ for one in failed) == ["ConflictError", "NoneType", "NoneType"]
    assert failed[2] is None
    assert len(texts(store, CHATS[0])) == 2


def test_damaged_conversation_in_batch_fails_only_itself(store: Store, address: str) -> None:
    # Its row leaves room for an event that is there already.
    double = "INSERT INTO events SELECT conversation, 2, kind, at, body, contents, hash FROM events"
    tamper(address, f"{double} WHERE conversation = ?", CHATS[2])
    done = _append_at_once(store, address, [(chat, say("two")) for chat in CHATS])
    assert [one.exception(FAR) is None for one in done] == [True, True, False, True, True, True]


def test_locked_conversation_does_not_block_others(store: Store, address: str) -> None:
    with _locked(address, f"SELECT id FROM conversations WHERE id = '{CHATS[3]}' FOR UPDATE"):
        done = _append_at_once(store, address, [(chat, say("two")) for chat in CHATS])
        held = done.pop(3)
        assert [one.result(FAR) for one in done] == [2] * len(done)
        # Nor those that come while it waits.
        assert store.append(CHATS[0], say("three"), expected=2) == 3
        assert not held.done()
    assert held.result(FAR) == 2
    assert list(store.verify()) == []


def test_single_waiting_append_does_not_block_others(store: Store, address: str) -> None:
    with _locked(address, f"SELECT id FROM conversations WHERE id = '{CHATS[0]}' FOR UPDATE"):
        waits = threading.Thread(target=store.append, args=(CHATS[0], say("two")), kwargs={"expected": 1})
        waits.start()
        assert store.append(CHATS[1], say("two"), expected=1) == 2
        assert waits.is_alive()
    waits.join(FAR)
    assert texts(store, CHATS[0]) == ["one", "two"]


def test_batch_is_not_repeated_after_lost_answer(store: Store, address: str, proxy: Proxy) -> None:
    def lose() -> None:
        proxy.lose_commit = True

    done = _append_at_once(store, address, [(chat, say("two")) for chat in CHATS], meanwhile=lose)
    assert [one.result(FAR) for one in done] == [2] * len(CHATS)
    assert proxy.lost == 1
    assert [texts(store, chat) for chat in CHATS] == [["one", "two"]] * len(CHATS)
    assert list(store.verify()) == []


def test_lost_server_fails_all_and_later_appends_do_not_duplicate(address: str, proxy: Proxy) -> None:
    store = open_store(address.replace(str(servers.shared().folder), str(proxy.folder)), timeout=2.0)
    for chat in ("first", *CHATS):
        store.append(chat, say("one"), expected=0)

    def shut() -> None:
        proxy.lose_commit = proxy.shut = True

    done = _append_at_once(store, address, [(chat, say("two")) for chat in CHATS], meanwhile=shut)
    assert [type(one.exception(FAR)) for one in done] == [StoreUnavailableError] * len(CHATS)
    proxy.shut = False
    assert [store.append(chat, say("two"), expected=1) for chat in CHATS] == [2] * len(CHATS)
    assert [texts(store, chat) for chat in CHATS] == [["one", "two"]] * len(CHATS)
    store.close()
