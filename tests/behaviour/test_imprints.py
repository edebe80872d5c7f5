"""What each question sent is kept with it by its hashes, so that an upgrade that renders otherwise can be told."""

import json
from collections.abc import Callable
from typing import Any

from tests.unit.engine.backends import make_chat

from lamella import Note
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.records import Record, Written
from lamella.core.prompt.prompt import RENDERER
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.engine.chat import Chat

OLDER = RENDERER - 1
GARDEN = Note(path="garden.md", text="Beans along the fence.")


def talk(store: MemoryStore) -> Chat:
    chat = make_chat(store, layout="in_place")
    chat.ask("What grows here?", attach=[GARDEN], system="Be brief.")
    chat.reply("Beans.")
    return chat


def imprints(chat: Chat) -> list[Imprint | None]:
    questions = [told.message.question for told in chat.turns()]
    return [None if question is None else question.imprint for question in questions]


def rewrite(store: MemoryStore, change: Callable[[dict[str, Any]], None]) -> MemoryStore:
    """The same conversation, with its questions as another version would have written them."""

    def again(record: Record) -> Record:
        body = json.loads(record.body)
        if record.kind == "message":
            change(body)
        return replace(record, body=canonical_json(body))

    records = tuple(map(again, store.load("chat")))
    names = sorted({name for record in records for name in record.contents})
    other = MemoryStore()
    other.append("chat", Written(records=records, contents=store.read_contents("chat", names)), expected=0)
    return other


def test_hashes_measures_and_the_version_of_the_renderer_are_kept_with_each_question() -> None:
    store = MemoryStore()
    chat = talk(store)
    turn = chat.ask("And again?", attach=[GARDEN])
    chat.reply("Beans.")
    layers = {layer.id.value: layer for layer in turn.envelope.layers}
    kept = imprints(make_chat(store))[1]
    assert kept == Imprint(
        renderer=RENDERER,
        system=layers["L1_SYSTEM"].hash,
        library=layers["L2_PREVIOUS"].hash,
        prefix=turn.envelope.prefix_hash,
        whole=turn.envelope.hash,
        segments=(1, 1, 1, 2, 1),
        attached=len(GARDEN.text or ""),
        referred=len(GARDEN.text or ""),
        context=3,
    )
    assert (kept.dedup_ratio, kept.compacted_share) == (1.0, 0.0)


def test_what_a_compaction_took_out_is_told_as_a_share() -> None:
    chat = make_chat(MemoryStore(), window=4_000, reserve=0)
    for number in range(6):
        chat.ask(f"Question {number}? " + "word " * 60)
        chat.reply("Yes.")
    assert chat.compact(to=0.02) is not None
    turn = chat.ask("And now?")
    kept = imprints(chat)[-1]
    assert kept is not None
    assert kept.context == 12
    assert kept.compacted == turn.envelope.prompt.opening.left_out > 0


def test_after_an_upgrade_that_renders_otherwise_the_renderer_is_the_cause() -> None:
    store = MemoryStore()
    talk(store)

    def older(body: dict[str, Any]) -> None:
        body["imprint"] |= {"renderer": OLDER, "whole": "sha256:other"}

    turn = make_chat(rewrite(store, older)).ask("And now?")
    assert (turn.prefix.cause, turn.prefix.triggered) == ("renderer_changed", True)
    assert turn.prefix.common_tokens == 0
    assert turn.cache is not None
    assert turn.cache.read == 0


def test_an_upgrade_that_renders_the_same_moves_nothing() -> None:
    store = MemoryStore()
    talk(store)

    def older(body: dict[str, Any]) -> None:
        body["imprint"] |= {"renderer": OLDER}

    turn = make_chat(rewrite(store, older)).ask("And now?")
    assert turn.prefix.cause == "none"
    assert turn.cache is not None
    assert turn.cache.read > 0


def test_conversations_of_versions_that_kept_no_hashes_go_on_as_before() -> None:
    store = MemoryStore()
    live = talk(store).ask("And now?")

    def plain(body: dict[str, Any]) -> None:
        del body["imprint"]

    other = MemoryStore()
    talk(other)
    chat = make_chat(rewrite(other, plain))
    assert imprints(chat) == [None]
    assert chat.ask("And now?").messages == live.messages


def test_asked_once_more_after_a_compaction_it_is_the_same_question() -> None:
    chat = make_chat(MemoryStore(), window=4_000, reserve=0)
    for number in range(6):
        chat.ask(f"Question {number}? " + "word " * 60)
        chat.reply("Yes.")
    first = chat.ask("And now?").envelope
    chat.reply("Fine.")
    chat.fork(chat.turns()[-2].reply.id)  # type: ignore[union-attr]  # every turn has one
    assert chat.compact(to=0.02) is not None
    again = chat.ask("And now?").envelope
    assert again.message_id == first.message_id
    assert again.hash != first.hash
    chat.reply("Fine.")
    assert [told.message.text for told in chat.turns()][-1] == "And now?"
