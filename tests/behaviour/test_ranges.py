"""Compacting a part of a conversation: up to a message, or from one on, which leaves every byte before it as it was."""

import pytest

import lamella
from lamella import Conversation, Engine, Note
from lamella.core.prompt.prefix_change import is_prefix_of
from lamella.errors import InvalidOperationError

LONG = "It is said in the plan, in its second part, and at some length. And so on it goes, for a while. " * 12


def open_chat(layout: str) -> tuple[Engine, Conversation]:
    engine = lamella.open("sqlite://", summarizer="off")
    conversation = engine.chat("desk", layout=layout, window=20_000, reserve=500, model="test:plain")
    for number in range(8):
        conversation.ask(f"What is on desk {number}?", attach=[Note(path=f"{number}.md", text=f"Note {number}. " * 30)])
        conversation.reply(LONG)
    return engine, conversation


@pytest.mark.parametrize("layout", ["in_place", "auto"])
def test_compaction_since_message_keeps_bytes_before_it(layout: str) -> None:
    engine, conversation = open_chat(layout)
    with engine:
        before = conversation.preview("").messages
        receipt = conversation.compact(0.01, since="turn:5")
        assert receipt is not None
        turns = conversation.turns()
        assert receipt.since_message == turns[4].message.id
        gone = {name for step in receipt.steps for name in step.removed}
        assert gone
        assert gone <= {turn.reply.id for turn in turns[4:-1] if turn.reply is not None}
        turn = conversation.ask("And now?")
        assert is_prefix_of(before[:8], turn.messages)
        assert turn.messages[9].text != before[9].text
        assert (str(turn.prefix_change.cause), turn.prefix_change.triggered) == ("compacted", True)
        again = engine.chat("desk").prepare_pending_turn()
        assert again is not None
        assert again.messages == turn.messages
        conversation.reply("Yes.")
        conversation.undo(receipt.id)
        assert conversation.receipts() == ()


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_undone_compaction_since_message_leaves_no_trace(layout: str) -> None:
    engine, conversation = open_chat(layout)
    with engine:
        conversation.ask("Is that all?")
        conversation.reply(LONG)
        before = conversation.preview("Next?").messages
        receipt = conversation.compact(0.01, since="reply:5", until="turn:6")
        assert receipt is not None
        assert receipt.tokens_after < receipt.tokens_before
        engine.fork("desk", conversation.head, name="copy")
        assert engine.chat("copy").preview("Next?").messages == conversation.preview("Next?").messages
        conversation.undo(receipt.id)
        assert conversation.preview("Next?").messages == before


def test_compaction_since_message_is_refused_if_layout_moves_earlier_text() -> None:
    engine, conversation = open_chat("library")
    with engine:
        with pytest.raises(
            InvalidOperationError, match=r"The next turn moves what stands before .* by itself: layout library"
        ):
            conversation.plan(0.01, since="turn:5")
        conversation.ask("Is that all?")
        conversation.reply(LONG)
        before = conversation.preview("").messages
        assert conversation.compact(0.01, since="turn:5") is not None
        assert is_prefix_of(before[:9], conversation.ask("And now?").messages)


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_compaction_until_message_keeps_later_text(layout: str) -> None:
    engine, conversation = open_chat(layout)
    with engine:
        planned = conversation.plan(0.01, until="turn:3")
        assert planned.receipt is not None
        turns = conversation.turns()
        messages = {one.id for turn in turns[3:] for one in (turn.message, turn.reply) if one is not None}
        gone = {name for step in planned.receipt.steps for name in step.removed}
        assert gone
        assert gone.isdisjoint({*messages, *(f"{number}.md" for number in range(3, 8))})
        conversation.commit(planned)
        sent = "\n".join(message.text for message in conversation.ask("And now?").messages)
        assert sent.count(LONG) == 5


def test_invalid_compaction_range_is_refused() -> None:
    engine, conversation = open_chat("in_place")
    with engine:
        with pytest.raises(InvalidOperationError, match="No message of the prompt is called 'turn:99'"):
            conversation.plan(since="turn:99")
        with pytest.raises(InvalidOperationError, match="turn:2 is before turn:3"):
            conversation.plan(since="turn:3", until="turn:2")
