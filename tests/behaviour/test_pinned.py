"""A pinned message stays: no compaction takes its turn out, live, reopened, copied, replayed or after an undo."""

import json

import pytest
from tests.unit.engine.backends import make_backend, make_chat

from lamella import Conversation
from lamella.adapters.archive.transcript import Transcript
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.prompt.laws import find_breaches
from lamella.core.values import replace
from lamella.engine.chat import Chat
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.forking import fork_into
from lamella.errors import BudgetExceededError

SECRET = "The boat is called Luna."


def fill(chat: Conversation | Chat, turns: int = 8) -> None:
    chat.ask(SECRET)
    chat.reply("A fine name. " + "word " * 40)
    for number in range(turns):
        chat.ask(f"Question {number}? " + "word " * 60)
        chat.reply("An answer. " + "word " * 60)


def texts(turn: TurnView) -> str:
    return "\n".join(message.text for message in turn.messages)


def pin_first(chat: Conversation | Chat) -> None:
    chat.ask("Remember the first.", pin=["turn:1"])
    chat.reply("I shall.")


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_without_a_pin_it_goes_and_with_one_its_whole_turn_stays(layout: str) -> None:
    for pins in (False, True):
        chat = Conversation(layout=layout, window=8_000, reserve=0)
        fill(chat)
        if pins:
            pin_first(chat)
        assert chat.compact(to=0.02) is not None
        turn = chat.ask("And now?")
        assert (SECRET in texts(turn)) is pins
        assert ("A fine name." in texts(turn)) is pins


def test_a_turn_that_has_to_make_room_leaves_it_alone() -> None:
    chat = Conversation(layout="in_place", window=2_400, reserve=0)
    fill(chat, 3)
    pin_first(chat)
    compacted = 0
    for number in range(30):
        turn = chat.ask(f"Question {number}? " + "word " * 60)
        compacted += turn.compaction is not None
        assert SECRET in texts(turn)
        chat.reply("An answer. " + "word " * 60)
    assert compacted > 1


def test_small_talk_that_is_pinned_stays() -> None:
    chat = Conversation(layout="in_place", window=8_000, reserve=0, compaction={"steps": ["chitchat"]})
    chat.ask("How many beans?")
    chat.reply("Some.")
    for _ in range(30):
        chat.ask("thanks")
        chat.reply("Fine.")
    chat.ask("Keep that.", pin=["turn:2"])
    chat.reply("Yes.")
    chat.ask("And?")
    chat.reply("Yes.")
    assert chat.compact(to=0.0001) is not None
    assert texts(chat.ask("Now?")).count("thanks") == 1


def test_a_summary_leaves_it_where_it_stands() -> None:
    class Terse:
        def summarize(self, messages: object, *, max_tokens: int) -> str:
            del messages, max_tokens
            return "- They talked."

    chat = Conversation(
        layout="in_place", window=8_000, reserve=0, summarizer=Terse(), compaction={"steps": ["summary"]}
    )
    fill(chat)
    pin_first(chat)
    receipt = chat.compact(to=0.02)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["summary"]
    turn = chat.ask("And now?")
    assert SECRET in texts(turn)
    assert "They talked." in texts(turn)


def test_opened_again_it_is_still_pinned_and_the_same_is_sent() -> None:
    stores = [MemoryStore(), MemoryStore()]
    sent = []
    for store, reopens in zip(stores, (False, True), strict=True):
        chat = make_chat(store, window=8_000, reserve=0)
        fill(chat)
        pin_first(chat)
        chat = make_chat(store) if reopens else chat
        assert chat.compact(to=0.02) is not None
        chat = make_chat(store) if reopens else chat
        sent.append(chat.ask("And now?").messages)
    assert sent[0] == sent[1]
    assert SECRET in "".join(message.text for message in sent[0])


def test_undoing_a_compaction_leaves_the_pin() -> None:
    chat = make_chat(MemoryStore(), window=8_000, reserve=0)
    fill(chat)
    pin_first(chat)
    assert chat.compact(to=0.02) is not None
    chat.undo()
    assert chat.compact(to=0.02) is not None
    assert SECRET in texts(chat.ask("And now?"))


def test_messages_under_another_parent_are_pinned_under_their_new_ids() -> None:
    chat = make_chat(MemoryStore(), window=8_000, reserve=0)
    chat.ask("Hello?")
    chat.reply("Hello.")
    fill(chat)
    chat.ask("Remember the second.", pin=["turn:2"])
    chat.reply("I shall.")
    chat.ask("Something else.")
    chat.reply("Yes.")
    chat.delete(chat.turns()[0].message.id)
    assert chat.compact(to=0.02) is not None
    assert SECRET in texts(chat.ask("And now?"))


def test_a_pin_outlives_the_question_that_set_it() -> None:
    for followed in (False, True):
        chat = make_chat(MemoryStore(), window=8_000, reserve=0)
        fill(chat)
        pin_first(chat)
        setting = chat.turns()[-1].message.id
        if followed:
            chat.ask("Something else.")
            chat.reply("Yes.")
        chat.delete(setting)
        chat.ask("Go on.")
        chat.reply("Yes.")
        assert chat.compact(to=0.02) is not None
        assert SECRET in texts(chat.ask("And now?"))


def test_an_edited_question_pins_what_it_pinned() -> None:
    chat = make_chat(MemoryStore(), window=8_000, reserve=0)
    fill(chat)
    pin_first(chat)
    chat.edit(chat.turns()[-1].message.id, "Keep the first.")
    chat.reply("Yes.")
    assert chat.compact(to=0.02) is not None
    assert SECRET in texts(chat.ask("And now?"))


def test_a_copy_under_another_name_has_the_pin() -> None:
    store = MemoryStore()
    backend = make_backend(store)
    chat = Chat(backend, "chat", {"window": 8_000, "reserve": 0})
    fill(chat)
    pin_first(chat)
    fork_into(backend, "chat", chat.head, name="copy")
    copy = Chat(backend, "copy", {})
    assert copy.compact(to=0.02) is not None
    assert SECRET in texts(copy.ask("And now?"))


def test_a_transcript_names_the_turn_and_replays_to_the_same() -> None:
    chat = make_chat(MemoryStore(), window=2_400, reserve=0)
    fill(chat, 3)
    pin_first(chat)
    fill(chat, 6)
    chat.ask("Let go.", unpin=["turn:1"])
    chat.reply("Yes.")
    written = chat.transcript()
    turns = written["turns"]
    assert isinstance(turns, list)
    assert [turn["pin"] for turn in turns if "pin" in turn] == [["turn:1"]]
    assert [turn["unpin"] for turn in turns if "unpin" in turn] == [["turn:1"]]
    assert Transcript.model_validate_json(json.dumps(written)).turns[4].pin == ["turn:1"]
    last = list(chat.replay())[-2]
    assert SECRET in texts(last)


def test_the_law_names_a_pinned_message_that_is_gone() -> None:
    chat = Conversation(layout="library", window=8_000, reserve=0)
    fill(chat, 3)
    before = chat.ask("Remember.", pin=["turn:1"]).envelope
    chat.reply("Yes.")
    now = chat.ask("And?").envelope
    assert list(find_breaches(now, before=before.prompt)) == []
    talk = now.prompt.talk
    cut = replace(talk, exchanges=type(talk.exchanges)(talk.exchanges[1:]))
    forged = replace(now, prompt=replace(now.prompt, talk=cut))
    (name,) = now.prompt.pinned
    told = {law.name: found for law, found in find_breaches(forged, before=before.prompt)}
    assert told["verbatim"] == (f"{name} is pinned and is gone",)


def test_what_does_not_fit_because_of_pins_says_so() -> None:
    chat = Conversation(layout="in_place", window=2_400, reserve=0)
    fill(chat, 4)
    with pytest.raises(BudgetExceededError) as caught:
        chat.ask("Keep all of it. " + "word " * 2_000, pin=[f"turn:{number}" for number in range(1, 4)])
    assert any(line.startswith("pinned turns (") for line in caught.value.protected)
    assert not any(line.startswith("earlier turns (") for line in caught.value.protected)
