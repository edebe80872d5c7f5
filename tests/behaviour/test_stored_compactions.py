"""Compacted chats in a store: on which branches a compaction applies, and what an undo voids."""

from pathlib import Path

import pytest
from tests.unit.conversation.backends import make_backend, make_chat

from lamella import ContextBudgetExceededError, Conversation, ModelReply, Note, Tool, ToolCall
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.turn import ModelAnswer
from lamella.core.log.events.kinds import EventKind
from lamella.core.messages import StopReason
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.stores.memory import InMemoryStore
from lamella.tokenizers.counter import OfflineTokenCounter


def talk(chat: Conversation, turns: int, *, start: int = 0) -> None:
    for number in range(start, start + turns):
        chat.ask(f"Question {number}?")
        chat.reply(f"Answer {number}. " + "because " * 40)


def asked(chat: Conversation) -> list[str]:
    """What the next request holds of the earlier questions; it is asked, and unanswered."""
    strip = chat.ask("And now?").envelope.layers[3]
    return [segment.text for segment in strip.segments if segment.kind == "user"]


def test_compaction_applies_only_to_branches_after_it() -> None:
    conversation = make_chat()
    talk(conversation, 4)
    before = conversation.turns()[1].reply
    assert before is not None
    assert conversation.compact(0.0001) is not None
    conversation.fork(before.id)
    assert list(conversation.receipts()) == []
    assert asked(conversation) == ["Question 0?", "Question 1?"]


def test_same_answer_again_finds_compaction_after_it() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 4)
    answer = conversation.turns()[-1].reply
    assert answer is not None
    assert conversation.compact(0.0001) is not None
    conversation.regenerate()
    assert list(conversation.receipts()) == []
    conversation.reply(answer.text)
    assert len(conversation.receipts()) == 1
    assert asked(make_chat(store)) == ["Question 3?"]


def test_turn_unanswered_twice_finds_compaction_after_it() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 4)
    left = conversation.ask("Left alone?").envelope.message_id
    conversation.reply("")
    assert conversation.compact(0.0001) is not None
    conversation.regenerate(left)
    assert asked(conversation) == ["Left alone?"]
    assert conversation.turns()[-2].reply is not None
    assert len(make_chat(store).receipts()) == 1


def test_failed_build_stores_nothing_after_two_unanswered_turns() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 2)
    left = conversation.ask("Left alone?").envelope.message_id
    conversation.reply("")
    conversation.regenerate(left)
    before = len(store.load(conversation.id))
    with pytest.raises(ContextBudgetExceededError):
        conversation.ask("word " * 200_000)
    assert (len(store.load(conversation.id)), conversation.head) == (before, left)
    assert conversation.ask("And now?").envelope.messages[-2].text == ""
    assert [record.reply and record.reply.text for record in make_chat(store).turns()][-2:] == ["", None]


def test_repeating_question_after_compaction_continues_after_it() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 4)
    head = conversation.head
    first = conversation.ask("The same?")
    conversation.reply("Yes.")
    conversation.fork(head)
    assert conversation.compact(0.0001) is not None
    again = conversation.ask("The same?")
    assert again.envelope.message_id == first.envelope.message_id
    assert again.tokens.total < first.tokens.total
    assert make_chat(store).regenerate().messages == again.messages


def test_undo_on_branch_keeps_compactions_of_other_branch() -> None:
    conversation = make_chat()
    talk(conversation, 3)
    fork = conversation.head
    talk(conversation, 3, start=3)
    one = conversation.compact(0.0001)
    branch = conversation.head
    conversation.fork(fork)
    other = conversation.compact(0.0001)
    assert one is not None
    assert other is not None
    talk(conversation, 1, start=9)
    conversation.switch(branch)
    assert [receipt.id for receipt in conversation.receipts()] == [one.id]
    conversation.undo(one.id)
    conversation.switch(
        conversation.branches()[0] if conversation.branches()[0] != branch else conversation.branches()[1]
    )
    assert [receipt.id for receipt in conversation.receipts()] == [other.id]


def test_undo_voids_later_compactions() -> None:
    conversation = make_chat()
    talk(conversation, 6)
    first = conversation.compact(0.0015)
    talk(conversation, 3, start=6)
    second = conversation.compact(0.0015)
    assert first is not None
    assert second is not None
    with pytest.raises(InvalidOperationError, match="no compaction 'nothing'"):
        conversation.undo("nothing")
    assert conversation.undo(first.id) == first
    assert list(conversation.receipts()) == []
    with pytest.raises(InvalidOperationError, match="no compaction to undo"):
        conversation.undo()


def test_turn_after_undo_and_regeneration_name_undo_as_cause() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place")
    talk(conversation, 6)
    conversation.compact(0.0001)
    assert str(conversation.ask("Compacted?").prefix_change.prefix_change) == "compacted(expendable)"
    conversation.reply("Yes.")
    conversation.undo()
    assert str(conversation.regenerate().prefix_change.prefix_change) == "compacted(undo)"
    conversation.reply("Not any more.")
    assert str(make_chat(store).ask("Undone?").prefix_change.prefix_change) == "compacted(undo)"


def test_undo_then_compaction_names_compaction_as_cause() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, layout="in_place")
    talk(conversation, 6)
    conversation.compact(0.0015)
    conversation.ask("Compacted?")
    conversation.reply("Yes.")
    conversation.undo()
    conversation.compact(0.001)
    assert str(make_chat(store).ask("And now?").prefix_change.prefix_change) == "compacted(expendable)"


def test_sent_turn_can_be_answered_after_window_shrinks() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, window=20_000)
    conversation.ask("word " * 5_000)
    smaller = make_chat(store, window=5_000)
    with pytest.raises(ContextBudgetExceededError):
        smaller.regenerate()
    smaller.reply("Answered all the same.")
    assert smaller.turns()[-1].reply is not None


def test_pending_turn_is_stopped_by_compaction_or_undo() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 6)
    conversation.ask("Waiting?")
    planned = conversation.plan(0.0001)
    assert conversation.turns()[-1].reply is None, "a plan changes nothing"
    conversation.commit(planned)
    assert [record.reply and record.reply.text for record in conversation.turns()][-1] == ""
    live = conversation.preview("And now?").messages
    assert make_chat(store).preview("And now?").messages == live
    conversation.ask("Waiting again?")
    conversation.undo()
    assert [record.reply and record.reply.text for record in conversation.turns()][-1] == ""
    assert make_chat(store).receipts() == conversation.receipts() == ()
    assert make_chat(store).preview("And now?").messages == conversation.preview("And now?").messages


def test_reopened_turn_is_stopped_at_its_position() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    talk(conversation, 6)
    conversation.ask("Waiting?")
    conversation.compact(0.0001)
    conversation.regenerate()
    for one in (conversation, make_chat(store)):
        assert one.turns()[-1].reply is None
    assert conversation.compact(0.00001) is None, "it was compacted after it was left the first time"
    conversation.undo()
    assert conversation.turns()[-1].reply is not None
    assert (conversation.receipts(), make_chat(store).receipts()) == ((), ())


def test_pending_calls_survive_compaction() -> None:
    conversation = make_chat()
    talk(conversation, 6)
    conversation.ask("Look?", tools=[Tool(name="look", description="Looks.", parameters={"type": "object"})])
    call = ToolCall(id="c", name="look", arguments="{}")
    conversation.reply(ModelAnswer(reply=ModelReply(text="", calls=(call,), stop=StopReason.TOOL_CALLS)))
    for attempt in (lambda: conversation.compact(0.0001), lambda: conversation.plan(0.5)):
        with pytest.raises(InvalidOperationError, match="wait for what they give"):
            attempt()
    assert conversation.pending_tool_calls == (call,)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_pending_turn_that_no_longer_fits_is_shrunk_and_sent(layout: str) -> None:
    store = InMemoryStore()
    conversation = make_chat(store, window=20_000, reserve=0, layout=layout)
    talk(conversation, 12)
    conversation.ask("Waiting?")
    smaller = make_chat(store, window=700)
    turn = smaller.regenerate()
    assert turn.compaction is not None
    assert turn.tokens.total <= 0.95 * 700
    assert turn.prefix_change.cause == "compacted"
    assert turn.messages[-1].text.endswith("Waiting?")
    again = make_chat(store)
    assert again.regenerate().messages == turn.messages, "what was made smaller stays so"
    smaller.reload()
    smaller.reply("Yes.")
    assert make_chat(store).preview("And?").messages == smaller.preview("And?").messages


def test_compaction_notice_is_counted_with_new_model() -> None:
    conversation = make_chat()
    talk(conversation, 6)
    conversation.compact(0.0001)
    model = "anthropic:claude-opus-5-5"
    turn = conversation.ask("And now?", model=model)
    notice = turn.envelope.layers[3].segments[0]
    assert notice.kind == "left_out"
    assert notice.tokens == OfflineTokenCounter().get_tokenizer(model).count(notice.text)
    assert notice.tokens != OfflineTokenCounter().get_tokenizer(None).count(notice.text)


class Telling:
    """A summariser that always tells the same."""

    def summarize(self, messages: object, *, max_tokens: int) -> str:
        return "- [1] The user asked something."


def summarised(store: InMemoryStore) -> Conversation:
    backend = make_backend(store)
    return Conversation.open(
        replace(backend, adapters=replace(backend.adapters, summarizer=Telling())),
        "chat",
        {"window": 3_000, "reserve": 0, "compaction": {"steps": ["summary", "expendable"]}},
    )


def held(store: InMemoryStore) -> bytes:
    hashes = {name for record in store.load("chat") for name in record.contents}
    return b"\0".join(store.read_contents("chat", sorted(hashes)).values())


def test_erasing_an_artifact_erases_the_summaries_too() -> None:
    store = InMemoryStore()
    conversation = summarised(store)
    conversation.ask("Read.", attach=[Note(path="a.md", text="The secret itself.")])
    conversation.reply("Yes.")
    for number in range(80):
        conversation.ask(f"Question {number}?")
        # One long sentence each: an outline leaves so much of it that a summary frees something.
        conversation.reply("It is so " + "because " * 40)
    assert b"The user asked something." in held(store)
    conversations = ConversationRepository(store, make_backend(store).clock)
    with pytest.raises(InvalidOperationError, match=r"never had an artifact 'b\.md'"):
        conversations.erase_artifact("chat", "b.md")
    assert b"The user asked something." in held(store)
    conversations.erase_artifact("chat", "a.md")
    assert list(conversations.verify_erased("chat")) == []
    assert b"secret" not in held(store)
    assert b"The user asked something." not in held(store)
    conversation.reload()
    turn = conversation.ask("And now?")
    assert "secret" not in "".join(message.text for message in turn.messages)
    assert any(record.kind is EventKind.COMPACTION for record in store.load("chat"))


def test_note_removed_from_instructions_is_in_library_after_compaction(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("drawn in")
    chat = Conversation(layout="in_place", vault=tmp_path, system={"instructions": "Use {[[a]]}."})
    chat.ask("one", attach=[Note(path="a.md"), Note(path="b.md", text="# B\n\n" + "word " * 2_000)])
    chat.reply("r")
    receipt = chat.compact(0.0001)
    assert receipt is not None
    assert [step.name for step in receipt.steps] == ["preview"]
    turn = chat.ask("two", system={"instructions": ""})
    assert [segment.id for segment in turn.envelope.layers[1].segments] == ["a.md", "b.md"]
    assert "drawn in" in turn.messages[0].text
