"""Copying a store: every conversation once, into any target."""

import pytest
from tests.unit.conversation.backends import Ticking, make_backend
from tests.unit.raw_events import write_raw

from lamella import Note
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository, copy_store
from lamella.core.log.events.kinds import EventKind
from lamella.core.text.content import hash_text
from lamella.stores.memory import InMemoryStore


@pytest.fixture
def source() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def target() -> InMemoryStore:
    return InMemoryStore()


def say(store: InMemoryStore, conversation: str, text: str) -> None:
    chat = Conversation.open(make_backend(store), conversation, {})
    chat.ask(text, attach=[Note(path="a.md", text=f"Note on {text}.")])
    chat.reply("yes")


def copied(source: InMemoryStore, target: InMemoryStore) -> dict[str, str]:
    return dict(copy_store(source, target, Ticking()))


def test_copy_has_every_conversation_and_event(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    say(source, "two", "pears")
    ConversationRepository(source, Ticking()).rename("two", "Pears")
    assert copied(source, target) == {"one": "new", "two": "new"}
    for name in ("one", "two"):
        assert list(target.load(name)) == list(source.load(name))
    assert {one.conversation: one.title for one in target.list_conversations()} == {"one": "apples", "two": "Pears"}
    assert list(ConversationRepository(target, Ticking()).verify()) == []
    assert target.stats() == source.stats()


def test_repeated_copy_adds_only_new_events(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    say(source, "two", "pears")
    copied(source, target)
    assert copied(source, target) == {"one": "same", "two": "same"}
    say(source, "one", "more apples")
    say(target, "two", "more pears")
    assert copied(source, target) == {"one": "extended", "two": "older"}
    assert list(target.load("one")) == list(source.load("one"))
    assert len(target.load("two")) == 4


def test_diverged_conversation_is_reported_and_rest_copied(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    say(target, "one", "oranges")
    say(source, "two", "pears")
    before = list(target.load("one"))
    assert copied(source, target) == {"one": "diverged", "two": "new"}
    assert list(target.load("one")) == before


def test_damaged_conversation_is_reported_and_rest_copied(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    source.append("one", write_raw(EventKind.FORK, "2026-03-01T12:00:00Z", head="nobody"), expected=2)
    say(source, "two", "pears")
    assert copied(source, target) == {"one": "damaged", "two": "new"}
    assert [one.conversation for one in target.list_conversations()] == ["two"]


def test_erasure_in_source_applies_to_target(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    copied(source, target)
    ConversationRepository(source, Ticking()).erase("one")
    assert copied(source, target) == {"one": "erased"}
    assert target.stats().contents == 0
    assert list(ConversationRepository(target, Ticking()).verify_erased("one")) == []
    assert [one.erased_at for one in target.list_conversations()] == [
        one.erased_at for one in source.list_conversations()
    ]


def test_erasure_in_target_is_kept_and_rest_copied(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    say(source, "two", "pears")
    copied(source, target)
    ConversationRepository(target, Ticking()).erase("one")
    say(source, "two", "more pears")
    assert copied(source, target) == {"one": "erased", "two": "extended"}
    assert target.read_contents("one", [hash_text("Note on apples.")]) == {}


def test_artifact_erased_in_source_leaves_earlier_copy(source: InMemoryStore, target: InMemoryStore) -> None:
    say(source, "one", "apples")
    copied(source, target)
    ConversationRepository(source, Ticking()).erase_artifact("one", "a.md")
    assert copied(source, target) == {"one": "extended"}
    assert target.stats().contents == 0
    assert list(ConversationRepository(target, Ticking()).verify_erased("one")) == []
