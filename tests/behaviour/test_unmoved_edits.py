"""An edit or a branch rewrites history where something before it changed: else the provider has it as it is."""

from collections.abc import Callable

import pytest
from tests.unit.conversation.backends import make_chat

from lamella import Note, ToolResult, Turn
from lamella.conversation.conversation import Conversation
from lamella.stores.memory import InMemoryStore

LONG = "I would rather keep it as it is. " * 40


@pytest.mark.parametrize("deed", ["edit", "fork"])
def test_edit_without_earlier_changes_keeps_bytes_before_it(deed: str) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place")
    note = Note(path="a.md", text="Apple.")
    conversation.ask("q1", attach=[note], results=[ToolResult(name="search", output="found")])
    conversation.reply("a1")
    first = conversation.turns()[-1].reply
    sent = conversation.ask("q2", attach=[Note(path="b.md", text="Berry.")])
    conversation.reply("a2")
    assert first is not None
    if deed == "edit":
        turn = conversation.edit(sent.envelope.message_id, "q2, better")
    else:
        conversation.fork(first.id)
        turn = conversation.ask("q2, better", attach=[Note(path="b.md", text="Berry.")])
    assert turn.messages[:-1] == sent.messages[:-1]
    assert turn.cache is not None
    assert turn.cache.read >= sum(message.tokens for message in sent.messages[:-1])
    assert turn.prefix_change.triggered
    again = make_chat(store)
    assert [message.text for message in again.regenerate().messages] == [message.text for message in turn.messages]
    conversation.reply("a2, better")
    last = conversation.ask("q3")
    assert last.messages[: len(turn.messages)] == turn.messages
    assert make_chat(store).regenerate().messages == last.messages
    *_, played = conversation.replay()
    assert played.messages == last.messages


def test_edit_of_folding_question_folds_again() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place")
    for number in (1, 2):
        conversation.ask(f"q{number}")
        conversation.reply(f"a{number}")
    folded = conversation.ask("q4", fold=True)
    conversation.reply("a4")
    turn = conversation.edit(folded.envelope.message_id, "q4, better")
    assert (turn.envelope.epoch, turn.messages[:-1]) == (1, folded.messages[:-1])
    conversation.reply("a4, better")
    early = conversation.edit(conversation.turns()[0].message.id, "q1, better")
    assert early.envelope.epoch == 0, "nothing came before it"


def talk(*, compacts: str, ask: Callable[[Conversation, str | None], Turn]) -> Turn:
    """Four turns, then a branch from the second: compacted before the fourth, after all of them, or never."""
    conversation = make_chat(layout="in_place")
    heads: list[str] = []
    for number, answer in enumerate((LONG, "a2", "a3", "a4"), start=1):
        assert (compacts, number) != ("before", 4) or conversation.compact(0.0001) is not None
        conversation.ask(f"q{number}", attach=[Note(path="a.md", text="Apple.")] if number == 1 else ())
        conversation.reply(answer)
        heads.append(conversation.head)
    conversation.fork(heads[1])
    receipt = conversation.compact(0.0001) if compacts == "after" else None
    assert compacts != "after" or receipt is not None
    return ask(conversation, None if receipt is None else receipt.id)


def test_branch_from_before_compaction_ignores_it() -> None:
    compacted, twin = (talk(compacts=when, ask=lambda chat, _: chat.ask("q5")) for when in ("before", "never"))
    assert compacted.messages == twin.messages
    assert compacted.envelope.layers == twin.envelope.layers
    assert compacted.prefix_change.cause == "branch", "what was sent last was folded"
    assert compacted.prefix_change.triggered


def test_undone_settings_of_branch_leave_no_trace() -> None:
    def ask(chat: Conversation, receipt: str | None) -> Turn:
        chat.ask("q5")
        chat.reply("a5")
        if receipt is not None:
            chat.undo(receipt)
        return chat.ask("q6")

    compacted, twin = (talk(compacts=when, ask=ask) for when in ("after", "never"))
    assert compacted.messages == twin.messages
    assert compacted.envelope.layers == twin.envelope.layers
