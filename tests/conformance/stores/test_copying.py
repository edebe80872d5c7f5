"""Copying a store into another, of either kind: whole, repeatable, and never bringing back what was erased."""

from itertools import product
from pathlib import Path

import pytest
from tests.conformance.conftest import OpenStore, make_url
from tests.conformance.stores.golden.story import read_back
from tests.conformance.stores.material import LATER, erasure, say, tamper, texts

import lamella
from lamella import Note
from lamella.core.text.content import hash_text
from lamella.ports import Store
from lamella.wiring import copy_conversations

SECRET = "a page to erase"
KINDS = ("sqlite", "postgresql")


@pytest.fixture(params=product(KINDS, KINDS), ids=" to ".join)
def addresses(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A store with two conversations, and the address of an empty one."""
    folders = [tmp_path / name for name in ("source", "target")]
    for folder in folders:
        folder.mkdir()
    source, target = (make_url(kind, folder) for kind, folder in zip(request.param, folders, strict=True))
    _talk(source, "garden", "What grows here?", SECRET)
    _talk(source, "house", "What is missing?", "a note that both have")
    return source, target


def _talk(url: str, name: str, question: str, note: str) -> None:
    with lamella.open(url) as engine:
        conversation = engine.chat(name)
        conversation.ask(question, attach=[Note(path="note.md", text=note)])
        conversation.reply("Look into the note.")


def _key(store: Store, name: str) -> str:
    found = store.find_conversation(name)
    assert found is not None
    return found.conversation


def _copy(addresses: tuple[str, str]) -> dict[str, str]:
    return dict(copy_conversations(*addresses))


def test_copy_is_complete_and_repeating_it_changes_nothing(addresses: tuple[str, str], opened: OpenStore) -> None:
    assert _copy(addresses) == {"garden": "new", "house": "new"}
    assert _copy(addresses) == {"garden": "same", "house": "same"}
    source, target = map(opened, addresses)
    assert read_back(target) == read_back(source)
    assert target.stats() == source.stats()
    assert list(target.verify()) == []


def test_copy_extends_grown_conversations_and_leaves_older_ones(addresses: tuple[str, str]) -> None:
    _copy(addresses)
    source, target = addresses
    _talk(source, "house", "And now?", "another note")
    _talk(target, "garden", "And now?", "another note")
    assert _copy(addresses) == {"garden": "older", "house": "extended"}
    assert _copy((target, source)) == {"garden": "extended", "house": "same"}


def test_copy_reports_diverged_conversation_and_leaves_it(addresses: tuple[str, str], opened: OpenStore) -> None:
    _copy(addresses)
    for url, question in zip(addresses, ("This way?", "That way?"), strict=True):
        _talk(url, "house", question, "a note")
    before = read_back(opened(addresses[1]))
    assert _copy(addresses) == {"garden": "same", "house": "diverged"}
    assert read_back(opened(addresses[1])) == before


def test_copy_repeats_erasure_of_source(addresses: tuple[str, str], opened: OpenStore) -> None:
    _copy(addresses)
    source, target = map(opened, addresses)
    name = hash_text(SECRET)
    garden, house = _key(source, "garden"), _key(source, "house")
    source.erase_contents(garden, [name], erasure(name), expected=len(source.load(garden)))
    source.erase_conversation(house, at=LATER)
    assert _copy(addresses) == {"garden": "extended", "house": "erased"}
    assert target.read_contents(garden, [name]) == {}
    assert list(target.verify_erased(house)) == []
    assert target.stats().contents == 0
    assert list(target.verify()) == []


def test_conversation_with_an_erased_content_can_be_copied(addresses: tuple[str, str], opened: OpenStore) -> None:
    source, target = map(opened, addresses)
    name = hash_text(SECRET)
    garden = _key(source, "garden")
    source.erase_contents(garden, [name], erasure(name), expected=len(source.load(garden)))
    assert _copy(addresses)["garden"] == "new"
    assert list(target.load(garden)) == list(source.load(garden))
    assert list(target.verify()) == []


def test_copy_does_not_restore_erased_conversation(addresses: tuple[str, str], opened: OpenStore) -> None:
    source, target = map(opened, addresses)
    garden = _key(source, "garden")
    target.erase_conversation(garden, at=LATER)
    assert _copy(addresses) == {"garden": "erased", "house": "new"}
    assert list(target.verify_erased(garden)) == []


def test_copied_tombstone_does_not_erase_conversation_of_same_name(
    addresses: tuple[str, str], opened: OpenStore
) -> None:
    source, target = addresses
    _talk(target, "garden", "Another garden?", "Nobody else's")
    store = opened(source)
    erased = _key(store, "garden")
    store.erase_conversation(erased, at=LATER)
    before = read_back(opened(target))
    # By its key: nobody is to think that the garden of the target is gone.
    assert _copy(addresses) == {erased: "erased", "house": "new"}
    assert _copy(addresses) == {erased: "erased", "house": "same"}
    with lamella.open(target) as engine:
        assert [record.message.text for record in engine.chat("garden").turns()] == ["Another garden?"]
    assert list(opened(target).load(_key(opened(target), "garden"))) != []
    assert before["events"].items() <= read_back(opened(target))["events"].items()  # type: ignore[attr-defined]


def test_copy_keeps_two_conversations_of_same_name(addresses: tuple[str, str]) -> None:
    _, target = addresses
    _talk(target, "garden", "Another garden?", "Nobody else's")
    assert _copy(addresses) == {"garden-2": "new", "house": "new"}
    assert _copy(addresses) == {"garden-2": "same", "house": "same"}
    with lamella.open(target) as engine:
        assert sorted(listed.name for listed in engine.chats()) == ["garden", "garden-2", "house"]
        assert [record.message.text for record in engine.chat("garden").turns()] == ["Another garden?"]
        assert [record.message.text for record in engine.chat("garden-2").turns()] == ["What grows here?"]
        assert list(engine.verify()) == []


def test_tombstone_of_chosen_key_does_not_erase_other_conversation(
    addresses: tuple[str, str], opened: OpenStore
) -> None:
    source, target = map(opened, addresses)
    source.append("work", say("mine", at="2026-01-05T08:00:00Z"), expected=0)
    target.append("work", say("yours", at="2026-02-06T09:00:00Z"), expected=0)
    source.erase_conversation("work", at=LATER)
    assert _copy(addresses) == {"garden": "new", "house": "new", "work": "diverged"}
    assert texts(target, "work") == ["yours"]
    assert _copy((addresses[1], addresses[0])) == {"garden": "same", "house": "same", "work": "diverged"}
    assert list(source.verify_erased("work")) == []


def test_false_erasure_record_erases_nothing(addresses: tuple[str, str], opened: OpenStore) -> None:
    _copy(addresses)
    tamper(addresses[0], "UPDATE conversations SET erased = '2026-02-06T09:00:00Z' WHERE name = 'garden'")
    assert _copy(addresses) == {"garden": "damaged", "house": "same"}
    assert _key(opened(addresses[1]), "garden")


def test_copy_includes_tombstone_of_conversation_never_stored(addresses: tuple[str, str], opened: OpenStore) -> None:
    source, target = map(opened, addresses)
    source.erase_conversation("work", at=LATER)
    target.append("work", say("mine", at="2026-01-05T08:00:00Z"), expected=0)
    assert _copy(addresses)["work"] == "erased"
    assert list(target.verify_erased("work")) == []
