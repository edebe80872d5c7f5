"""All conversations of a store at once: each is read once until one of them changes."""

from collections.abc import Sequence

import pytest
from tests.unit.conversation.backends import make_backend

from lamella import Conversation, Note
from lamella.conversation.engine import StoreSearch
from lamella.core.log.events.kinds import EventRecord
from lamella.errors import InvalidOperationError
from lamella.stores.memory import InMemoryStore


class CountedStore(InMemoryStore):
    """A store that remembers which conversations were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def load(self, conversation_key: str, *, after: int = 0) -> Sequence[EventRecord]:
        self.read.append(conversation_key)
        return super().load(conversation_key, after=after)


def make_store() -> CountedStore:
    store = CountedStore()
    for name in ("garden", "kitchen"):
        conversation = Conversation.open(make_backend(store), name, {})
        conversation.ask(f"The beans of the {name}", attach=[Note(path="plan.md", text="Sow them in May.")])
        conversation.reply("Noted.")
    store.read.clear()
    return store


def test_shared_note_is_found_in_each_conversation() -> None:
    found = list(StoreSearch(make_store(), count=len).search("sowing in May"))
    assert [(chat.name, one.passage.title) for chat, one in found] == [("garden", "plan.md"), ("kitchen", "plan.md")]
    assert len({one.passage.id for _, one in found}) == 1


def test_conversations_are_reread_only_after_change() -> None:
    store = make_store()
    recaller = StoreSearch(store, count=len)
    assert len(list(recaller.search("beans"))) == 2
    read = list(store.read)
    assert len(list(recaller.search("kitchens"))) == 1
    assert store.read == read
    Conversation.open(make_backend(store), "kitchen", {}).ask("A zebra!")
    store.read.clear()
    assert [chat.name for chat, _ in recaller.search("zebra")] == ["kitchen"]
    assert store.read


def test_query_without_words_is_refused() -> None:
    with pytest.raises(InvalidOperationError, match="nothing to look for"):
        StoreSearch(make_store(), count=len).search(" ")
