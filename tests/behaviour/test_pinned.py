"""A pinned message stays: no compaction takes its turn out, live, reopened, copied, replayed or after an undo."""

import json

import pytest
from tests.unit.conversation.backends import make_backend, make_chat

from lamella import Conversation
from lamella.archive.transcript import Transcript
from lamella.conversation.import_export import copy_branch_into_new_conversation
from lamella.conversation.turn import BuiltTurn
from lamella.core.prompt.invariants import iter_violations
from lamella.core.values import replace
from lamella.errors import ContextBudgetExceededError
from lamella.stores.memory import InMemoryStore

SECRET = "The boat is called Luna."


def fill(chat: Conversation | Conversation, turns: int = 8) -> None:
    chat.ask(SECRET)
    chat.reply("A fine name. " + "word " * 40)
    for number in range(turns):
        chat.ask(f"Question {number}? " + "word " * 60)
        chat.reply("An answer. " + "word " * 60)


def texts(turn: BuiltTurn) -> str:
    return "\n".join(message.text for message in turn.messages)


def pin_first(chat: Conversation | Conversation) -> None:
    chat.ask("Remember the first.", pin=["turn:1"])
    chat.reply("I shall.")


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_pin_keeps_whole_turn_through_compaction(layout: str) -> None:
    for pins in (False, True):
        chat = Conversation(layout=layout, window=8_000, reserve=0)
        fill(chat)
        if pins:
            pin_first(chat)
        assert chat.compact(to=0.02) is not None
        turn = chat.ask("And now?")
        assert (SECRET in texts(turn)) is pins
        assert ("A fine name." in texts(turn)) is pins


def test_automatic_compaction_keeps_pinned_turn() -> None:
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


def test_pinned_chitchat_is_kept() -> None:
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


def test_summary_keeps_pinned_turn_in_position() -> None:
    class Terse:
        def summarize(self, messages: object, *, max_tokens: int) -> str:
            del messages, max_tokens
            return "- [3] The user asked something."

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
    assert "The user asked something." in texts(turn)


def test_pin_survives_reopen() -> None:
    stores = [InMemoryStore(), InMemoryStore()]
    sent = []
    for store, reopens in zip(stores, (False, True), strict=True):
        conversation = make_chat(store, window=8_000, reserve=0)
        fill(conversation)
        pin_first(conversation)
        conversation = make_chat(store) if reopens else conversation
        assert conversation.compact(to=0.02) is not None
        conversation = make_chat(store) if reopens else conversation
        sent.append(conversation.ask("And now?").messages)
    assert sent[0] == sent[1]
    assert SECRET in "".join(message.text for message in sent[0])


def test_undoing_a_compaction_leaves_the_pin() -> None:
    conversation = make_chat(InMemoryStore(), window=8_000, reserve=0)
    fill(conversation)
    pin_first(conversation)
    assert conversation.compact(to=0.02) is not None
    conversation.undo()
    assert conversation.compact(to=0.02) is not None
    assert SECRET in texts(conversation.ask("And now?"))


def test_messages_under_other_parent_are_pinned_under_new_ids() -> None:
    conversation = make_chat(InMemoryStore(), window=8_000, reserve=0)
    conversation.ask("Hello?")
    conversation.reply("Hello.")
    fill(conversation)
    conversation.ask("Remember the second.", pin=["turn:2"])
    conversation.reply("I shall.")
    conversation.ask("Something else.")
    conversation.reply("Yes.")
    conversation.delete(conversation.turns()[0].message.id)
    assert conversation.compact(to=0.02) is not None
    assert SECRET in texts(conversation.ask("And now?"))


def test_pin_survives_deletion_of_question_that_set_it() -> None:
    for followed in (False, True):
        conversation = make_chat(InMemoryStore(), window=8_000, reserve=0)
        fill(conversation)
        pin_first(conversation)
        setting = conversation.turns()[-1].message.id
        if followed:
            conversation.ask("Something else.")
            conversation.reply("Yes.")
        conversation.delete(setting)
        conversation.ask("Go on.")
        conversation.reply("Yes.")
        assert conversation.compact(to=0.02) is not None
        assert SECRET in texts(conversation.ask("And now?"))


def test_edited_question_keeps_its_pins() -> None:
    conversation = make_chat(InMemoryStore(), window=8_000, reserve=0)
    fill(conversation)
    pin_first(conversation)
    conversation.edit(conversation.turns()[-1].message.id, "Keep the first.")
    conversation.reply("Yes.")
    assert conversation.compact(to=0.02) is not None
    assert SECRET in texts(conversation.ask("And now?"))


def test_copied_conversation_keeps_pin() -> None:
    store = InMemoryStore()
    backend = make_backend(store)
    conversation = Conversation.open(backend, "chat", {"window": 8_000, "reserve": 0})
    fill(conversation)
    pin_first(conversation)
    copy_branch_into_new_conversation(backend, "chat", conversation.head, name="copy")
    copy = Conversation.open(backend, "copy", {})
    assert copy.compact(to=0.02) is not None
    assert SECRET in texts(copy.ask("And now?"))


def test_transcript_names_pinned_turn_and_replays_the_same() -> None:
    conversation = make_chat(InMemoryStore(), window=2_400, reserve=0)
    fill(conversation, 3)
    pin_first(conversation)
    fill(conversation, 6)
    conversation.ask("Let go.", unpin=["turn:1"])
    conversation.reply("Yes.")
    written = conversation.transcript()
    turns = written["turns"]
    assert isinstance(turns, list)
    assert [turn["pin"] for turn in turns if "pin" in turn] == [["turn:1"]]
    assert [turn["unpin"] for turn in turns if "unpin" in turn] == [["turn:1"]]
    assert Transcript.model_validate_json(json.dumps(written)).turns[4].pin == ["turn:1"]
    last = list(conversation.replay())[-2]
    assert SECRET in texts(last)


def test_invariant_reports_removed_pinned_message() -> None:
    chat = Conversation(layout="library", window=8_000, reserve=0)
    fill(chat, 3)
    before = chat.ask("Remember.", pin=["turn:1"]).envelope
    chat.reply("Yes.")
    now = chat.ask("And?").envelope
    assert list(iter_violations(now, before=before.prompt)) == []
    history = now.prompt.history
    cut = replace(history, turns=type(history.turns)(history.turns[1:]))
    forged = replace(now, prompt=replace(now.prompt, history=cut))
    (name,) = now.prompt.pinned
    told = {law.name: found for law, found in iter_violations(forged, before=before.prompt)}
    assert told["verbatim"] == (f"{name} is pinned and is gone",)


def test_budget_error_names_pinned_turns() -> None:
    chat = Conversation(layout="in_place", window=2_400, reserve=0)
    fill(chat, 4)
    with pytest.raises(ContextBudgetExceededError) as caught:
        chat.ask("Keep all of it. " + "word " * 2_000, pin=[f"turn:{number}" for number in range(1, 4)])
    assert any(line.startswith("pinned turns (") for line in caught.value.protected)
    assert not any(line.startswith("earlier turns (") for line in caught.value.protected)
