"""All conversations of a store at once: each is read once until one of them changes."""

from collections.abc import Sequence

import pytest
from tests.unit.engine.backends import make_backend

from lamella import Chat, Note
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.records import Record
from lamella.engine.keeping.originals.everywhere import StoreRecaller
from lamella.errors import CallError


class CountedStore(MemoryStore):
    """A store that remembers which conversations were read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []

    def load(self, conversation: str, *, after: int = 0) -> Sequence[Record]:
        self.read.append(conversation)
        return super().load(conversation, after=after)


def make_store() -> CountedStore:
    store = CountedStore()
    for name in ("garden", "kitchen"):
        chat = Chat(make_backend(store), name, {})
        chat.ask(f"The beans of the {name}", attach=[Note(path="plan.md", text="Sow them in May.")])
        chat.reply("Noted.")
    store.read.clear()
    return store


def test_the_same_note_is_found_in_each_conversation_that_has_it() -> None:
    found = list(StoreRecaller(make_store()).find("sowing in May"))
    assert [(chat.name, one.passage.title) for chat, one in found] == [("garden", "plan.md"), ("kitchen", "plan.md")]
    assert len({one.passage.id for _, one in found}) == 1


def test_conversations_are_read_anew_only_when_one_of_them_changed() -> None:
    store = make_store()
    recaller = StoreRecaller(store)
    assert len(list(recaller.find("beans"))) == 2
    read = list(store.read)
    assert len(list(recaller.find("kitchens"))) == 1
    assert store.read == read
    Chat(make_backend(store), "kitchen", {}).ask("A zebra!")
    store.read.clear()
    assert [chat.name for chat, _ in recaller.find("zebra")] == ["kitchen"]
    assert store.read


def test_a_query_without_words_is_refused() -> None:
    with pytest.raises(CallError, match="nothing to look for"):
        StoreRecaller(make_store()).find(" ")
