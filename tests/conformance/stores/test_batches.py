"""SQLite, appends of several threads: what waits together is written at once, each as if it were alone."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import AT, counted, say, tamper, texts
from tests.waiting import HANG_SECONDS

from lamella.core.log.events.kinds import EventBatch
from lamella.errors import ConflictError
from lamella.ports import Store

CHATS = [f"chat {number}" for number in range(6)]
FAR = HANG_SECONDS
# Long enough for threads to wait in line.
A_WHILE = 0.3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def store(path: Path, opened: OpenStore) -> Store:
    """A store with some conversations of one event, and one more, whose append others wait behind."""
    made = opened(f"sqlite:///{path}")
    for chat in ("first", *CHATS):
        made.append(chat, say("one"), expected=0)
    return made


def _append_at_once(
    store: Store, path: Path, changes: Sequence[tuple[str, EventBatch]], *, expected: int = 1, name: str | None = None
) -> list["Future[int]"]:
    """Appends that came while one was held up, once that goes on."""
    threads = ThreadPoolExecutor(len(changes) + 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        first = threads.submit(store.append, "first", say("two"), expected=1)
        wait([first], timeout=A_WHILE)
        others = [threads.submit(store.append, chat, said, expected=expected, name=name) for chat, said in changes]
        wait(others, timeout=A_WHILE)
        other.execute("ROLLBACK")
        assert first.result(FAR) == 2
        wait(others, timeout=FAR)
    return others


def test_batch_stores_odd_text_unchanged(store: Store, path: Path) -> None:
    odd = ["'quoted' \"twice\" \\ %s ?", "\u2028\u00e4\U0001f600\t\n", "\\u0041 {} [] null"]
    written = [counted(say("two", text, at=f"{AT} {text}"), bytes(range(256))) for text in odd]
    done = _append_at_once(store, path, list(zip(CHATS, written, strict=False)))
    assert [one.result() for one in done] == [3] * len(odd)
    kept = [store.load(chat)[1:] for chat in CHATS[: len(odd)]]
    assert [tuple(one) for one in kept] == [one.records for one in written]
    assert store.append(CHATS[0], say("four"), expected=3) == 4
    assert list(store.verify()) == []


def test_batch_creates_and_extends_conversations(store: Store, path: Path) -> None:
    done = _append_at_once(store, path, [(f"new {number}", say("one", "two")) for number in range(4)], expected=0)
    assert [one.result() for one in done] == [2] * 4
    assert texts(store, "new 3") == ["one", "two"]
    assert list(store.verify()) == []


def test_second_conversation_of_same_name_in_batch_is_conflict(store: Store, path: Path) -> None:
    done = _append_at_once(store, path, [("a", say("one")), ("b", say("one"))], expected=0, name="both")
    assert sorted(type(one.exception()).__name__ for one in done) == ["ConflictError", "NoneType"]
    assert sum(bool(store.load(one)) for one in ("a", "b")) == 1


def test_conflict_in_batch_fails_only_itself(store: Store, path: Path, opened: OpenStore) -> None:
    other = opened(f"sqlite:///{path}")
    assert other.append(CHATS[1], say("theirs"), expected=1) == 2
    done = _append_at_once(store, path, [(chat, say("mine")) for chat in CHATS])
    assert isinstance(done.pop(1).exception(), ConflictError)
    assert [one.result() for one in done] == [2] * len(done)
    assert [texts(store, chat)[-1] for chat in CHATS] == ["mine", "theirs", *["mine"] * 4]
    assert list(store.verify()) == []


def test_second_append_to_one_conversation_in_batch_is_conflict(store: Store, path: Path) -> None:
    done = _append_at_once(store, path, [(CHATS[0], say("mine")), (CHATS[0], say("yours")), (CHATS[1], say("two"))])
    failed = [one.exception() for one in done]
    assert sorted(type(one).__name__ for one in failed) == ["ConflictError", "NoneType", "NoneType"]
    assert failed[2] is None
    assert len(texts(store, CHATS[0])) == 2


def test_damaged_conversation_in_batch_fails_only_itself(store: Store, path: Path) -> None:
    # Its row leaves room for an event that is there already.
    double = "INSERT INTO events SELECT conversation, 2, kind, at, body, contents, hash, counts FROM events"
    tamper(f"sqlite:///{path}", f"{double} WHERE conversation = ?", CHATS[2])
    done = _append_at_once(store, path, [(chat, say("two")) for chat in CHATS])
    assert [one.exception() is None for one in done] == [True, True, False, True, True, True]
