"""Each question stores hashes of its request, so that an upgrade that renders otherwise is detected."""

import json
from collections.abc import Callable
from typing import Any

from tests.unit.conversation.backends import make_chat
from tests.unit.pictures import png

from lamella import Image, Note, Turn
from lamella.conversation.conversation import Conversation
from lamella.core.log.events.kinds import EventBatch, EventRecord
from lamella.core.log.turn import RequestFingerprint
from lamella.core.prompt.prompt import RENDERER_VERSION
from lamella.core.text.content import canonical_json
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore

OLDER = RENDERER_VERSION - 1
GARDEN = Note(path="garden.md", text="Beans along the fence.")


def talk(store: InMemoryStore) -> Conversation:
    conversation = make_chat(store, layout="in_place")
    conversation.ask("What grows here?", attach=[GARDEN], system="Be brief.")
    conversation.reply("Beans.")
    return conversation


def imprints(chat: Conversation) -> list[RequestFingerprint | None]:
    questions = [record.message.question_event for record in chat.turns()]
    return [None if question is None else question.imprint for question in questions]


def rewrite(store: InMemoryStore, change: Callable[[dict[str, Any]], None]) -> InMemoryStore:
    """The same conversation, with its questions as another version would have written them."""

    def again(record: EventRecord) -> EventRecord:
        body = json.loads(record.body)
        if record.kind == "message":
            change(body)
        return replace(record, body=canonical_json(body))

    records = tuple(map(again, store.load("chat")))
    names = sorted({name for record in records for name in record.contents})
    other = InMemoryStore()
    other.append("chat", EventBatch(records=records, contents=store.read_contents("chat", names)), expected=0)
    return other


def test_question_stores_hashes_ratios_and_renderer_version() -> None:
    store = InMemoryStore()
    conversation = talk(store)
    turn = conversation.ask("And again?", attach=[GARDEN])
    conversation.reply("Beans.")
    layers = {layer.id.value: layer for layer in turn.envelope.layers}
    kept = imprints(make_chat(store))[1]
    assert kept == RequestFingerprint(
        renderer=RENDERER_VERSION,
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


def test_compacted_share_is_recorded() -> None:
    conversation = make_chat(InMemoryStore(), window=4_000, reserve=0)
    for number in range(6):
        conversation.ask(f"Question {number}? " + "word " * 60)
        conversation.reply("Yes.")
    assert conversation.compact(to=0.02) is not None
    turn = conversation.ask("And now?")
    kept = imprints(conversation)[-1]
    assert kept is not None
    assert kept.context == 12
    assert kept.compacted == turn.envelope.prompt.preamble.removed_messages > 0


def test_renderer_is_cause_after_upgrade_with_other_output() -> None:
    store = InMemoryStore()
    talk(store)

    def older(body: dict[str, Any]) -> None:
        body["imprint"] |= {"renderer": OLDER, "whole": "sha256:other"}

    turn = make_chat(rewrite(store, older)).ask("And now?")
    assert (turn.prefix_change.cause, turn.prefix_change.triggered) == ("renderer_changed", True)
    assert turn.prefix_change.common_tokens == 0
    assert turn.cache is not None
    assert turn.cache.read == 0


def test_regeneration_after_upgrade_reports_renderer_change() -> None:
    store = InMemoryStore()
    talk(store)

    def older(body: dict[str, Any]) -> None:
        body["imprint"] |= {"renderer": OLDER, "whole": "sha256:other"}

    assert make_chat(rewrite(store, older)).regenerate().prefix_change.cause == "renderer_changed"
    assert make_chat(store).regenerate().prefix_change.cause == "none"


def test_upgrade_with_same_output_changes_no_prefix() -> None:
    store = InMemoryStore()
    talk(store)

    def older(body: dict[str, Any]) -> None:
        body["imprint"] |= {"renderer": OLDER}

    turn = make_chat(rewrite(store, older)).ask("And now?")
    assert turn.prefix_change.cause == "none"
    assert turn.cache is not None
    assert turn.cache.read > 0


def test_conversation_without_stored_hashes_continues() -> None:
    store = InMemoryStore()
    live = talk(store).ask("And now?")

    def plain(body: dict[str, Any]) -> None:
        del body["imprint"]

    other = InMemoryStore()
    talk(other)
    conversation = make_chat(rewrite(other, plain))
    assert imprints(conversation) == [None]
    assert conversation.ask("And now?").messages == live.messages


def test_repeated_question_after_compaction_keeps_its_id() -> None:
    conversation = make_chat(InMemoryStore(), window=4_000, reserve=0)
    for number in range(6):
        conversation.ask(f"Question {number}? " + "word " * 60)
        conversation.reply("Yes.")
    first = conversation.ask("And now?").envelope
    conversation.reply("Fine.")
    conversation.fork(conversation.turns()[-2].reply.id)  # type: ignore[union-attr]  # every turn has one
    assert conversation.compact(to=0.02) is not None
    again = conversation.ask("And now?").envelope
    assert again.message_id == first.message_id
    assert again.hash != first.hash
    conversation.reply("Fine.")
    assert [record.message.text for record in conversation.turns()][-1] == "And now?"


def sent_text(turn: Turn) -> str:
    return "\n".join(message.text for message in turn.messages)


def test_image_stored_before_caption_line_replays_without_it() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="library")
    for number in range(3):
        conversation.ask(f"Question {number}?", attach=[] if number else [Image(data=png(64, 64), title="map.png")])
        conversation.reply("Yes.")

    def take_over(body: dict[str, Any]) -> None:
        body["imprint"]["renderer"] = 4
        body.pop("names_images", None)

    line = "[Picture: map.png."
    older = rewrite(store, take_over)
    assert [line in sent_text(turn) for turn in make_chat(store).replay()] == [False, True, True]
    assert [line in sent_text(turn) for turn in make_chat(older).replay()] == [False, False, False]
    chat = make_chat(older)
    assert line not in sent_text(chat.ask("And now?"))
    chat.reply("Yes.")
