"""Token counts: stored with the events, found again by text, and used only if intact."""

from collections.abc import Callable, Iterable

import pytest
from tests.unit.conversation.backends import Failing, Ticking, make_backend

from lamella import Note
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.token_counts import TokenCountCache, are_counts_intact, decode_counts, encode_counts
from lamella.core.budget import Tokenizer
from lamella.core.log.events.kinds import EventBatch, EventKind, EventRecord
from lamella.core.text.content import hash_text
from lamella.core.values import replace
from lamella.errors import ConflictError, ContextBudgetExceededError, StoreUnavailableError
from lamella.ports import Store
from lamella.stores.memory import InMemoryStore
from lamella.tokenizers.counter import OfflineTokenCounter

PLAIN = OfflineTokenCounter().get_tokenizer(None)


class Tallying:
    """Counts offline, and says which texts it was asked for."""

    def __init__(self, *, factor: float = 1.0) -> None:
        self.asked: list[str] = []
        self._factor = factor

    def get_tokenizer(self, model: str | None) -> Tokenizer:
        tokenizer = OfflineTokenCounter().get_tokenizer(model)

        def count(text: str) -> int:
            self.asked.append(text)
            return tokenizer.count(text)

        return replace(tokenizer, count=count, count_factor=self._factor)


def sit_down(store: Store, counter: Tallying) -> Backend:
    """A desk of a process that has counted nothing yet."""
    backend = make_backend(store)
    return replace(backend, adapters=replace(backend.adapters, counter=counter))


def open_chat(store: Store, counter: Tallying | None = None, **settings: object) -> Conversation:
    return Conversation.open(sit_down(store, counter or Tallying()), "chat", settings)


def converse(chat: Conversation) -> None:
    chat.ask("What grows here?", attach=[Note(path="a.md", text="Apples.\n")])
    chat.reply("Apples grow here.")
    chat.ask("  And pears?", attach=[Note(path="a.md", text="Apples.\n")])
    chat.reply("")
    chat.ask("Why?")
    chat.reply("Nobody planted any.")


def kept(store: Store) -> list[bytes]:
    return [record.counts for record in store.load("chat")]


def copy_with(store: Store, counts: Callable[[EventRecord], bytes]) -> InMemoryStore:
    """The same conversation with other counts."""
    records = tuple(replace(record, counts=counts(record)) for record in store.load("chat"))
    hashes = [name for record in records for name in record.contents]
    copy = InMemoryStore()
    copy.append("chat", EventBatch(records=records, contents=store.read_contents("chat", hashes)), expected=0)
    return copy


def names(texts: Iterable[str]) -> set[str]:
    return {hash_text(text) for text in texts}


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_reopened_chat_counts_only_new_texts(store: InMemoryStore, layout: str) -> None:
    going_on = open_chat(store, layout=layout)
    converse(going_on)
    counter = Tallying()
    opened = open_chat(store, counter).ask("And plums?")
    assert set(counter.asked) == {"And plums?"}
    going_on.reload()
    assert going_on.ask("And plums?").tokens.total > opened.tokens.total


def test_stored_counts_give_same_turn_as_recounting(store: InMemoryStore) -> None:
    converse(open_chat(store))
    bare = copy_with(store, lambda _: b"")
    assert open_chat(store).ask("And plums?") == open_chat(bare).ask("And plums?")


@pytest.mark.layout("library")
def test_uncounted_texts_are_counted_once_and_stored(store: InMemoryStore) -> None:
    converse(open_chat(store))
    bare = copy_with(store, lambda _: b"")
    open_chat(bare).ask("And plums?")
    assert [bool(counts) for counts in kept(bare)] == [False] * 6 + [True]
    counter = Tallying()
    open_chat(bare, counter).ask("And cherries?")
    assert set(counter.asked) == {"And cherries?"}


def test_counts_are_stored_with_their_event(store: InMemoryStore) -> None:
    conversation = open_chat(store)
    conversation.ask("What grows here?")
    conversation.reply("Apples grow here.")
    conversation.rename("Garden")
    asked, replied, renamed = kept(store)
    assert set(decode_counts([asked], PLAIN)) == names(["What grows here?"])
    assert decode_counts([replied], PLAIN) == {hash_text("Apples grow here."): PLAIN.count("Apples grow here.")}
    assert renamed == b""


def test_other_tokenizer_family_counts_again(store: InMemoryStore) -> None:
    conversation = open_chat(store)
    converse(conversation)
    counter = Tallying()
    conversation = open_chat(store, counter)
    conversation.ask("And plums?", model="google:gemini-3")
    assert "What grows here?" in counter.asked
    counter.asked.clear()
    conversation = open_chat(store, counter)
    conversation.ask("And cherries?")
    assert "What grows here?" not in counter.asked


def test_changed_tokenizer_factor_counts_again(store: InMemoryStore) -> None:
    converse(open_chat(store))
    counter = Tallying(factor=1.5)
    open_chat(store, counter).ask("And plums?")
    assert "What grows here?" in counter.asked


def test_refused_turn_stores_no_counts(store: InMemoryStore) -> None:
    conversation = open_chat(store, window=200, reserve=50)
    with pytest.raises(ContextBudgetExceededError):
        conversation.ask("too much " * 200)
    conversation.ask("Less")
    assert set(decode_counts(kept(store), PLAIN)) == names(["Less"])


def test_conflicting_append_stores_no_counts(store: InMemoryStore) -> None:
    conversation, other = open_chat(store), open_chat(store)
    other.ask("Faster")
    with pytest.raises(ConflictError):
        conversation.ask("Slower")
    conversation.reload()
    conversation.rename("Garden")
    assert set(decode_counts(kept(store), PLAIN)) == names(["Faster"])


def test_counts_of_failed_append_are_stored_on_retry(store: InMemoryStore) -> None:
    failing = Failing(store)
    conversation = open_chat(failing)
    conversation.ask("One")
    failing.down = True
    with pytest.raises(StoreUnavailableError):
        conversation.reply("Yes.")
    failing.down = False
    conversation.reply("Yes.")
    assert set(decode_counts(kept(store), PLAIN)) == names(["One", "Yes."])


@pytest.mark.parametrize("place", range(44))
def test_count_with_a_damaged_byte_is_not_used(place: int) -> None:
    whole = encode_counts({hash_text("one"): 1}, PLAIN) + encode_counts({hash_text("two"): 2}, PLAIN)
    damaged = bytearray(whole)
    damaged[place] ^= 0x10
    found = decode_counts([bytes(damaged)], PLAIN)
    assert hash_text("one") not in found
    assert found[hash_text("two")] == 2
    assert are_counts_intact(whole)
    assert are_counts_intact(bytes(damaged)) is (place < 36)


@pytest.mark.parametrize("broken", [b"\0", bytes(44), b"\xff" * 44, b"x" * 43])
def test_invalid_count_bytes_are_ignored(broken: bytes) -> None:
    good = encode_counts({hash_text("one"): 1}, PLAIN)
    assert decode_counts([broken, good, broken], PLAIN) == {hash_text("one"): 1}
    assert not are_counts_intact(broken)


def test_number_too_large_to_keep_is_counted_each_time() -> None:
    assert encode_counts({hash_text("one"): 2**32}, PLAIN) == b""


def test_damaged_count_is_recounted_and_reported(store: InMemoryStore) -> None:
    converse(open_chat(store))
    damaged = copy_with(store, lambda record: bytes(44) if "Apples grow" in record.body else record.counts)
    counter = Tallying()
    turn = open_chat(damaged, counter).ask("And plums?")
    assert turn == open_chat(store).ask("And plums?")
    assert "Apples grow here." in counter.asked
    found = [(damage.location, damage.description) for damage in ConversationRepository(damaged, Ticking()).verify()]
    assert found == [("event 2", "has counts that are damaged; its texts are counted again")]


def test_counts_of_other_process_are_reused(store: InMemoryStore) -> None:
    counter = Tallying()
    conversation, other = open_chat(store, counter), open_chat(store)
    conversation.ask("One")
    other.reload()
    other.reply("Yes.")
    conversation.reload()
    conversation.ask("Two")
    assert counter.asked == ["One", "Two"]


def test_erasure_removes_earlier_counts(store: InMemoryStore) -> None:
    conversation = open_chat(store)
    converse(conversation)
    conversations = ConversationRepository(store, Ticking())
    conversations.erase_artifact("chat", "a.md")
    assert not any(kept(store))
    assert list(conversations.verify_erased("chat")) == []
    open_chat(store).ask("And plums?")
    assert list(conversations.verify_erased("chat")) == []
    assert names(["Apples.\n"]).isdisjoint(decode_counts(kept(store), PLAIN))


def test_counts_left_after_erasure_are_found() -> None:
    left = InMemoryStore()
    name = hash_text("gone")
    asked = EventRecord(kind=EventKind.MESSAGE, at="x", body='{"id":"m","parent":"","text":"one"}', contents=(name,))
    erased = EventRecord(kind=EventKind.ERASURE, at="x", body='{"artifact":"a.md"}', contents=(name,))
    left.append("chat", EventBatch(records=(asked,), contents={name: b"gone"}), expected=0)
    left.append("chat", EventBatch(records=(erased,)), expected=1)

    class Careless(Failing):
        def load(self, conversation: str, *, after: int = 0) -> list[EventRecord]:
            return [replace(record, counts=bytes(44)) for record in super().load(conversation, after=after)]

    found = list(ConversationRepository(Careless(left), Ticking()).verify_erased("chat"))
    assert [(damage.location, damage.description) for damage in found] == [
        ("event 1", "has counts from before an erasure")
    ]


def test_copy_includes_counts(store: InMemoryStore) -> None:
    converse(open_chat(store))
    other = InMemoryStore()
    ConversationRepository(other, Ticking()).import_conversation(
        ConversationRepository(store, Ticking()).export_conversation("chat")
    )
    assert kept(other) == kept(store)


def test_each_text_is_counted_once() -> None:
    counter = Tallying()
    book = TokenCountCache(counter)
    tokenizer = book.get_tokenizer(None)
    assert [tokenizer.count(text) for text in ("one two", "one two", "three")] == [2, 2, 1]
    assert counter.asked == ["one two", "three"]
    assert tokenizer is book.get_tokenizer(None)
