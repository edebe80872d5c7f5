"""One suite, same results: any sequence of calls gives the same answers in memory, in SQLite and in PostgreSQL."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.conftest import make_url
from tests.conformance.stores.material import attach, erasure, say

from lamella.core.log.events.kinds import EventBatch
from lamella.core.text.content import hash_bytes
from lamella.core.values import replace
from lamella.errors import LamellaError
from lamella.ports import Store
from lamella.stores.open_store import open_store

NAMES = ("a", "b", "ç")
CONTENTS = (b"", b"one", b"\0two" * 400, b"three" * 20_000)
HASHES = tuple(map(hash_bytes, CONTENTS))


@dataclass(frozen=True)
class Append:
    """Append after the events that are there, or after ``off`` more or fewer."""

    conversation: str
    written: EventBatch
    off: int
    title: str | None
    name: str | None

    def call(self, store: Store) -> object:
        expected = max(0, _version(store, self.conversation) + self.off)
        return store.append(self.conversation, self.written, expected=expected, title=self.title, name=self.name)


@dataclass(frozen=True)
class EraseContents:
    """Erase contents, whether or not the conversation holds them."""

    conversation: str
    hashes: tuple[str, ...]

    def call(self, store: Store) -> object:
        expected = _version(store, self.conversation)
        return store.erase_contents(self.conversation, self.hashes, erasure(*self.hashes), expected=expected)


@dataclass(frozen=True)
class EraseConversation:
    """Erase a conversation, whether or not it is there."""

    conversation: str
    at: str

    def call(self, store: Store) -> object:
        store.erase_conversation(self.conversation, at=self.at)
        return None


@dataclass(frozen=True)
class Load:
    """Load the end of a conversation, and contents that it may hold."""

    conversation: str
    after: int

    def call(self, store: Store) -> object:
        return list(store.load(self.conversation, after=self.after)), store.read_contents(self.conversation, HASHES)


def _version(store: Store, conversation: str) -> int:
    return next((one.event_count for one in store.list_conversations() if one.conversation == conversation), 0)


names = st.sampled_from(NAMES)
times = st.integers(0, 59).map(lambda second: f"2026-01-01T00:00:{second:02}Z")
spoken = st.builds(lambda said, at: say(*said, at=at), st.lists(st.text(max_size=20), min_size=1, max_size=4), times)
attached = st.builds(
    lambda contents, at: attach(*contents, at=at), st.lists(st.sampled_from(CONTENTS), min_size=1, max_size=3), times
)
# Contents that are named and not brought are taken only where they are held or erased.
named = st.builds(lambda written: replace(written, contents={}), attached)
appends = st.builds(
    Append,
    conversation=names,
    written=st.one_of(spoken, attached, named),
    off=st.sampled_from([0, 0, 0, 0, -1, 1]),
    title=st.none() | st.text(max_size=10),
    name=st.none() | names,
)
erasures = st.builds(EraseContents, conversation=names, hashes=st.lists(st.sampled_from(HASHES), max_size=2).map(tuple))
burials = st.builds(EraseConversation, conversation=names, at=times)
loads = st.builds(Load, conversation=names, after=st.integers(0, 5))
calls = st.lists(st.one_of(appends, appends, appends, erasures, burials, loads), max_size=25)

Call = Append | EraseContents | EraseConversation | Load


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(calls)
def test_any_sequence_of_calls_gives_the_same_answers_in_every_store(sequence: Sequence[Call]) -> None:
    with _stores() as stores:
        for call in sequence:
            answers = [_answer(call.call, store) for store in stores]
            assert answers[1:] == answers[:1] * 2, call
        ends = [_look(store) for store in stores]
        assert ends[1:] == ends[:1] * 2


@contextmanager
def _stores() -> Iterator[list[Store]]:
    with TemporaryDirectory() as folder:
        stores = [open_store(make_url(kind, Path(folder))) for kind in ("memory", "sqlite", "postgresql")]
        try:
            yield stores
        finally:
            for store in stores:
                store.close()


def _answer(call: Callable[[Store], object], store: Store) -> object:
    try:
        return call(store)
    except LamellaError as error:
        return type(error), error.message


def _look(store: Store) -> object:
    """Everything that can be seen of a store; none of it is damage."""
    assert list(store.verify()) == []
    listed = store.list_conversations()
    loaded = [_answer(Load(name, 0).call, store) for name in NAMES]
    erased = [[damage.description for damage in store.verify_erased(name)] for name in NAMES]
    found = [store.find_conversation(name) for name in NAMES]
    return listed, loaded, erased, found, store.stats()
