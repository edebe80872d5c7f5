"""Appending: exactly after what is expected, whole or not at all, and given back as it was."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import AT, LATER, attach, counted, message, say, tamper, texts

from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import hash_bytes
from lamella.core.values import replace
from lamella.errors import (
    ConflictError,
    ConversationErasedError,
    InvalidOperationError,
    StoreCorruptedError,
    StoreVersionError,
    TextError,
)
from lamella.ports import Store
from lamella.stores.sql_schema import load_migrations

HARD_TEXTS = [
    "",
    "\x00",
    "a\x00b",
    "\u2028 \r\n\t",
    "🦉 كتاب 𐍈",
    "%s ? {} %",
    "'; DROP TABLE events; --",
    "x" * 100_000,
]


def test_appended_events_load_in_order(store: Store) -> None:
    assert store.append("c", say("one", "two"), expected=0) == 2
    assert store.append("c", say("three"), expected=2) == 3
    assert texts(store, "c") == ["one", "two", "three"]


def test_events_load_unchanged(store: Store) -> None:
    records = tuple(
        EventRecord(kind=kind, at=f"2026-01-01T00:00:{i:02}.123456Z", body=f'{{"n": {i}}}')
        for i, kind in enumerate(EventKind)
    )
    store.append("c", EventBatch(records=records), expected=0)
    assert tuple(store.load("c")) == records


@pytest.mark.parametrize("text", HARD_TEXTS, ids=range(len(HARD_TEXTS)))
def test_any_text_in_body_loads_unchanged(store: Store, text: str) -> None:
    store.append("c", say(text), expected=0)
    assert texts(store, "c") == [text]
    assert list(store.verify()) == []


@pytest.mark.parametrize("name", ["x y", "ä/ö", "🦉", "%41", "'", "a" * 500])
def test_any_conversation_name_is_accepted(store: Store, name: str) -> None:
    store.append(name, say("one"), expected=0)
    assert texts(store, name) == ["one"]
    assert list(store.load(name + "x")) == []


def test_only_the_events_after_a_number_are_loaded(store: Store) -> None:
    store.append("c", say("one", "two", "three"), expected=0)
    assert [record.body for record in store.load("c", after=2)] == ['{"text": "three"}']
    assert list(store.load("c", after=3)) == []


def test_conversation_that_does_not_exist_has_no_events(store: Store) -> None:
    assert list(store.load("c")) == []
    assert store.read_contents("c", ["sha256:none"]) == {}


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_append_at_wrong_version_is_refused_with_both_numbers(store: Store, expected: int) -> None:
    store.append("c", say("one", "two"), expected=0)
    with pytest.raises(ConflictError) as caught:
        store.append("c", say("three"), expected=expected)
    assert (caught.value.expected, caught.value.found) == (expected, 2)
    assert texts(store, "c") == ["one", "two"]


def test_append_to_missing_conversation_with_expected_events_is_refused(store: Store) -> None:
    with pytest.raises(ConflictError):
        store.append("c", say("one"), expected=1)
    assert store.list_conversations() == []


def test_same_append_twice_is_a_conflict(store: Store) -> None:
    store.append("c", say("one"), expected=0)
    with pytest.raises(ConflictError):
        store.append("c", say("one"), expected=0)


def test_refused_append_stores_nothing(store: Store) -> None:
    good, bad = b"good", b"bad"
    batch = attach(good, bad)
    wrong = replace(batch, contents={**batch.contents, hash_bytes(bad): b"not bad"})
    with pytest.raises(InvalidOperationError, match=r"has the hash"):
        store.append("c", wrong, expected=0)
    assert store.list_conversations() == []
    assert store.stats().contents == 0
    assert store.append("c", batch, expected=0) == 1


@pytest.mark.parametrize(
    "written",
    [
        EventBatch(records=()),
        EventBatch(records=(message("x"),), contents={hash_bytes(b"loose"): b"loose"}),
        EventBatch(records=(message("x", contents=(hash_bytes(b"nowhere"),)),)),
    ],
    ids=["no events", "content of no event", "content of nobody"],
)
def test_invalid_append_is_refused(store: Store, written: EventBatch) -> None:
    with pytest.raises(InvalidOperationError):
        store.append("c", written, expected=0)
    assert store.list_conversations() == []


def test_conversation_needs_a_name(store: Store) -> None:
    with pytest.raises(InvalidOperationError):
        store.append("", say("one"), expected=0)


@pytest.mark.parametrize(
    ("conversation", "record"),
    [
        ("c\0d", message("one")),
        ("c", EventRecord(kind=EventKind.MESSAGE, at=AT, body='{"text": "\0"}')),
        ("c", EventRecord(kind=EventKind.MESSAGE, at="\0", body="{}")),
        ("c\ud800", message("one")),
        ("c", EventRecord(kind=EventKind.MESSAGE, at=AT, body='"\udfff"')),
    ],
)
def test_text_that_any_store_rejects_is_refused_by_all(store: Store, conversation: str, record: EventRecord) -> None:
    with pytest.raises(TextError):
        store.append(conversation, EventBatch(records=(record,)), expected=0)
    assert store.list_conversations() == []


@pytest.mark.parametrize("name", ["c\0d", "c\ud800"])
def test_name_that_any_store_rejects_is_refused_on_read(store: Store, name: str) -> None:
    for use in (
        lambda: store.load(name),
        lambda: store.read_contents(name, []),
        lambda: store.erase_conversation(name, at=AT),
    ):
        with pytest.raises(TextError):
            use()


def test_conversations_are_listed_the_last_changed_first(store: Store) -> None:
    store.append("b", say("one", at=AT), expected=0, title="Bees")
    store.append("a", say("one", at=AT), expected=0)
    store.append("c", say("one", at=AT), expected=0, title="Cats")
    store.append("c", say("two", at=LATER), expected=1)
    listed = [
        (one.conversation, one.title, one.created, one.updated, one.event_count) for one in store.list_conversations()
    ]
    assert listed == [("c", "Cats", AT, LATER, 2), ("a", "", AT, AT, 1), ("b", "Bees", AT, AT, 1)]


def test_title_is_kept_until_changed(store: Store) -> None:
    store.append("c", say("one"), expected=0, title="First")
    store.append("c", say("two"), expected=1)
    assert store.list_conversations()[0].title == "First"
    store.append("c", say("three"), expected=2, title="Second \0 title")
    assert store.list_conversations()[0].title == "Second \ufffd title"
    store.append("c", say("four"), expected=3, title="")
    assert store.list_conversations()[0].title == ""


def test_invalid_title_is_refused_and_nothing_appended(store: Store) -> None:
    with pytest.raises(TextError):
        store.append("c", say("one"), expected=0, title="half \ud83e")
    assert store.list_conversations() == []


def test_content_is_stored_once_and_shared(store: Store) -> None:
    data = b"shared" * 1000
    store.append("a", attach(data), expected=0)
    store.append("b", attach(data, b"own"), expected=0)
    store.append("b", attach(data), expected=1)
    stats = store.stats()
    assert (stats.contents, stats.content_bytes) == (2, len(data) + 3)
    assert store.read_contents("a", [hash_bytes(data), hash_bytes(b"own")]) == {hash_bytes(data): data}


def test_many_contents_in_one_append_are_stored(store: Store) -> None:
    contents = [bytes([i % 256, i // 256]) * 10 for i in range(1_200)]
    store.append("c", attach(*contents), expected=0)
    hashes = [hash_bytes(data) for data in contents]
    assert store.read_contents("c", [*hashes, *hashes]) == dict(zip(hashes, contents, strict=True))


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256)), b"x" * 10_000_000], ids=len)
def test_any_bytes_are_stored(store: Store, data: bytes) -> None:
    store.append("c", attach(data), expected=0)
    assert store.read_contents("c", [hash_bytes(data)]) == {hash_bytes(data): data}


def test_event_may_name_content_its_conversation_has(store: Store) -> None:
    name = hash_bytes(b"held")
    store.append("c", attach(b"held"), expected=0)
    store.append("c", EventBatch(records=(message("again", contents=(name,)),)), expected=1)
    with pytest.raises(InvalidOperationError, match="does not hold"):
        store.append("d", EventBatch(records=(message("not mine", contents=(name,)),)), expected=0)
    assert list(store.verify()) == []


def test_stats_count_stored_rows(store: Store) -> None:
    store.append("a", say("one", "two"), expected=0)
    store.append("b", attach(b"1234"), expected=0)
    store.erase_conversation("a", at=LATER)
    stats = store.stats()
    assert (stats.conversations, stats.erased, stats.events) == (1, 1, 1)
    assert (stats.contents, stats.content_bytes, stats.schema) == (1, 4, len(load_migrations("sqlite")))


def test_append_to_erased_conversation_is_refused(store: Store) -> None:
    store.append("c", say("one"), expected=0)
    store.erase_conversation("c", at=LATER)
    for expected in (0, 1):
        with pytest.raises(ConversationErasedError):
            store.append("c", say("two"), expected=expected)


def test_threads_of_one_process_share_a_store(store: Store) -> None:
    def append(number: int) -> int:
        while True:
            try:
                return store.append("c", say(str(number)), expected=len(store.load("c")))
            except ConflictError:
                continue

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(append, range(40)))
    assert sorted(versions) == list(range(1, 41))
    assert [texts(store, "c")[version - 1] for version in versions] == [str(number) for number in range(40)]
    assert list(store.verify()) == []


def test_appended_events_persist_after_reopen(url: str, opened: OpenStore) -> None:
    first = opened(url)
    first.append("c", attach(b"kept", text="one"), expected=0, title="Kept")
    first.close()
    second = opened(url)
    assert texts(second, "c") == ["one"]
    assert second.read_contents("c", [hash_bytes(b"kept")]) == {hash_bytes(b"kept"): b"kept"}
    assert [one.title for one in second.list_conversations()] == ["Kept"]


def test_token_counts_are_stored_and_do_not_change_event(store: Store) -> None:
    plain = say("one", "two")
    store.append("c", counted(plain, bytes(range(256))), expected=0)
    assert tuple(store.load("c")) == plain.records
    assert [record.counts for record in store.load("c")] == [b"", bytes(range(256))]
    assert list(store.verify()) == []


def test_acknowledged_append_is_visible_to_others_at_once(url: str, opened: OpenStore) -> None:
    first, second = opened(url), opened(url)
    first.append("c", say("one"), expected=0)
    second.append("c", say("two"), expected=1)
    assert texts(first, "c") == ["one", "two"]


def test_closed_store_raises_error(url: str, opened: OpenStore) -> None:
    store = opened(url)
    store.close()
    with pytest.raises(InvalidOperationError, match="closed"):
        store.load("c")


def test_process_on_old_schema_cannot_append_after_migration(url: str, opened: OpenStore) -> None:
    store = opened(url)
    store.append("c", say("one"), expected=0)
    tamper(url, "INSERT INTO schema_version (version) VALUES (?)", 99)
    with pytest.raises(StoreVersionError, match="99"):
        store.append("c", say("two"), expected=1)
    assert texts(store, "c") == ["one"]


@pytest.mark.parametrize("damage", ["UPDATE conversations SET head = ?", "UPDATE events SET hash = ? WHERE seq = 2"])
def test_append_to_conversation_damaged_meanwhile_is_refused(url: str, opened: OpenStore, damage: str) -> None:
    store = opened(url)
    store.append("c", say("one"), expected=0)
    store.append("c", say("two"), expected=1)
    tamper(url, damage, "another")
    with pytest.raises(StoreCorruptedError):
        store.append("c", say("three"), expected=2)
    assert texts(store, "c") == ["one", "two"]


def test_writer_gets_conflict_or_erasure_error_after_other_writer(url: str, opened: OpenStore) -> None:
    first, second = opened(url), opened(url)
    for number, said in enumerate(("one", "two")):
        first.append("c", say(said), expected=number)
    second.append("c", say("three"), expected=2)
    with pytest.raises(ConflictError, match="3"):
        first.append("c", say("mine"), expected=2)
    first.append("c", say("four"), expected=3)
    second.erase_conversation("c", at=LATER)
    with pytest.raises(ConversationErasedError):
        first.append("c", say("five"), expected=4)
    assert list(first.verify()) == []
