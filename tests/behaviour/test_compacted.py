"""Compacted chats in a store: where a compaction holds, what an undo voids, and that no chat gets stuck by either."""

from pathlib import Path

import pytest
from tests.unit.engine.backends import make_backend, make_chat

from lamella import BudgetExceededError, Chat, Conversation, Note, Reply, Tool, ToolCall
from lamella.adapters.stores.memory import MemoryStore
from lamella.adapters.tokens.counter import OfflineCounter
from lamella.core.log.records import EventKind
from lamella.core.messages.delta import StopReason
from lamella.core.values import replace
from lamella.engine.dialogue.answer import Answer
from lamella.engine.keeping.conversations import Conversations
from lamella.errors import CallError


def talk(chat: Chat, turns: int, *, start: int = 0) -> None:
    for number in range(start, start + turns):
        chat.ask(f"Question {number}?")
        chat.reply(f"Answer {number}. " + "because " * 40)


def asked(chat: Chat) -> list[str]:
    """What the next request holds of the earlier questions; it is asked, and unanswered."""
    strip = chat.ask("And now?").envelope.layers[3]
    return [segment.text for segment in strip.segments if segment.kind == "user"]


def test_a_compaction_holds_only_on_branches_that_go_on_from_it() -> None:
    chat = make_chat()
    talk(chat, 4)
    before = chat.turns()[1].reply
    assert before is not None
    assert chat.compact(0.0001) is not None
    chat.fork(before.id)
    assert list(chat.receipts()) == []
    assert asked(chat) == ["Question 0?", "Question 1?"]


def test_the_same_answer_given_again_leads_back_to_what_was_compacted_after_it() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 4)
    answer = chat.turns()[-1].reply
    assert answer is not None
    assert chat.compact(0.0001) is not None
    chat.regenerate()
    assert list(chat.receipts()) == []
    chat.reply(answer.text)
    assert len(chat.receipts()) == 1
    assert asked(make_chat(store)) == ["Question 3?"]


def test_a_turn_left_unanswered_twice_leads_back_to_what_was_compacted_after_it() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 4)
    left = chat.ask("Left alone?").envelope.message_id
    chat.reply("")
    assert chat.compact(0.0001) is not None
    chat.regenerate(left)
    assert asked(chat) == ["Left alone?"]
    assert chat.turns()[-2].reply is not None
    assert len(make_chat(store).receipts()) == 1


def test_a_turn_that_cannot_be_built_leaves_nothing_behind_also_after_one_left_unanswered_twice() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 2)
    left = chat.ask("Left alone?").envelope.message_id
    chat.reply("")
    chat.regenerate(left)
    before = len(store.load(chat.id))
    with pytest.raises(BudgetExceededError):
        chat.ask("word " * 200_000)
    assert (len(store.load(chat.id)), chat.head) == (before, left)
    assert chat.ask("And now?").envelope.messages[-2].text == ""
    assert [told.reply and told.reply.text for told in make_chat(store).turns()][-2:] == ["", None]


def test_asking_the_same_again_after_a_compaction_is_asking_after_it() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 4)
    head = chat.head
    first = chat.ask("The same?")
    chat.reply("Yes.")
    chat.fork(head)
    assert chat.compact(0.0001) is not None
    again = chat.ask("The same?")
    assert again.envelope.message_id == first.envelope.message_id
    assert again.tokens.total < first.tokens.total
    assert make_chat(store).regenerate().messages == again.messages


def test_undoing_on_one_branch_voids_nothing_that_was_compacted_on_another() -> None:
    chat = make_chat()
    talk(chat, 3)
    fork = chat.head
    talk(chat, 3, start=3)
    one = chat.compact(0.0001)
    branch = chat.head
    chat.fork(fork)
    other = chat.compact(0.0001)
    assert one is not None
    assert other is not None
    talk(chat, 1, start=9)
    chat.switch(branch)
    assert [receipt.id for receipt in chat.receipts()] == [one.id]
    chat.undo(one.id)
    chat.switch(chat.branches()[0] if chat.branches()[0] != branch else chat.branches()[1])
    assert [receipt.id for receipt in chat.receipts()] == [other.id]


def test_an_undo_names_the_compaction_and_voids_those_after_it() -> None:
    chat = make_chat()
    talk(chat, 6)
    first = chat.compact(0.0015)
    talk(chat, 3, start=6)
    second = chat.compact(0.0015)
    assert first is not None
    assert second is not None
    with pytest.raises(CallError, match="no compaction 'nothing'"):
        chat.undo("nothing")
    assert chat.undo(first.id) == first
    assert list(chat.receipts()) == []
    with pytest.raises(CallError, match="no compaction to undo"):
        chat.undo()


def test_after_an_undo_the_next_turn_says_so_and_so_does_the_question_sent_again() -> None:
    store = MemoryStore()
    chat = make_chat(store, layout="in_place")
    talk(chat, 6)
    chat.compact(0.0001)
    assert str(chat.ask("Compacted?").prefix.movement) == "compacted(replies)"
    chat.reply("Yes.")
    chat.undo()
    assert str(chat.regenerate().prefix.movement) == "compacted(undo)"
    chat.reply("Not any more.")
    assert str(make_chat(store).ask("Undone?").prefix.movement) == "compacted(undo)"


def test_an_undo_and_a_compaction_after_it_are_told_by_the_compaction() -> None:
    store = MemoryStore()
    chat = make_chat(store, layout="in_place")
    talk(chat, 6)
    chat.compact(0.0015)
    chat.ask("Compacted?")
    chat.reply("Yes.")
    chat.undo()
    chat.compact(0.001)
    assert str(make_chat(store).ask("And now?").prefix.movement) == "compacted(replies)"


def test_a_turn_that_was_sent_can_be_answered_whatever_the_window_is_now() -> None:
    store = MemoryStore()
    chat = make_chat(store, window=20_000)
    chat.ask("word " * 5_000)
    smaller = make_chat(store, window=5_000)
    with pytest.raises(BudgetExceededError):
        smaller.regenerate()
    smaller.reply("Answered all the same.")
    assert smaller.turns()[-1].reply is not None


def test_a_turn_that_waits_counts_as_stopped_when_something_is_compacted_or_undone() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 6)
    chat.ask("Waiting?")
    planned = chat.plan(0.0001)
    assert chat.turns()[-1].reply is None, "a plan changes nothing"
    chat.commit(planned)
    assert [told.reply and told.reply.text for told in chat.turns()][-1] == ""
    live = chat.preview("And now?").messages
    assert make_chat(store).preview("And now?").messages == live
    chat.ask("Waiting again?")
    chat.undo()
    assert [told.reply and told.reply.text for told in chat.turns()][-1] == ""
    assert make_chat(store).receipts() == chat.receipts() == ()
    assert make_chat(store).preview("And now?").messages == chat.preview("And now?").messages


def test_a_turn_that_was_opened_again_counts_as_stopped_where_it_was() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    talk(chat, 6)
    chat.ask("Waiting?")
    chat.compact(0.0001)
    chat.regenerate()
    for one in (chat, make_chat(store)):
        assert one.turns()[-1].reply is None
    assert chat.compact(0.00001) is None, "it was compacted after it was left the first time"
    chat.undo()
    assert chat.turns()[-1].reply is not None
    assert (chat.receipts(), make_chat(store).receipts()) == ((), ())


def test_calls_that_wait_are_not_given_up_for_a_compaction() -> None:
    chat = make_chat()
    talk(chat, 6)
    chat.ask("Look?", tools=[Tool(name="look", description="Looks.", parameters={"type": "object"})])
    call = ToolCall(id="c", name="look", arguments="{}")
    chat._stored.reply(Answer(reply=Reply(text="", calls=(call,), stop=StopReason.TOOLS)))
    for attempt in (lambda: chat.compact(0.0001), lambda: chat.plan(0.5)):
        with pytest.raises(CallError, match="wait for what they give"):
            attempt()
    assert chat.calls == (call,)


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_a_turn_that_waits_and_no_longer_fits_is_made_smaller_and_sent(layout: str) -> None:
    store = MemoryStore()
    chat = make_chat(store, window=20_000, reserve=0, layout=layout)
    talk(chat, 12)
    chat.ask("Waiting?")
    smaller = make_chat(store, window=700)
    turn = smaller.regenerate()
    assert turn.compaction is not None
    assert turn.tokens.total <= 0.95 * 700
    assert turn.prefix.cause == "compacted"
    assert turn.messages[-1].text.endswith("Waiting?")
    again = make_chat(store)
    assert again.regenerate().messages == turn.messages, "what was made smaller stays so"
    smaller.reload()
    smaller.reply("Yes.")
    assert make_chat(store).preview("And?").messages == smaller.preview("And?").messages


def test_with_another_model_what_stands_for_messages_is_counted_as_that_model_counts() -> None:
    chat = make_chat()
    talk(chat, 6)
    chat.compact(0.0001)
    model = "anthropic:claude-opus-5-5"
    turn = chat.ask("And now?", model=model)
    notice = turn.envelope.layers[3].segments[0]
    assert notice.kind == "left_out"
    assert notice.tokens == OfflineCounter().measure(model).count(notice.text)
    assert notice.tokens != OfflineCounter().measure(None).count(notice.text)


class Telling:
    """A summariser that always tells the same."""

    def summarize(self, messages: object, *, max_tokens: int) -> str:
        return "They spoke of a secret."


def summarised(store: MemoryStore) -> Chat:
    backend = make_backend(store)
    return Chat(
        replace(backend, world=replace(backend.world, summarizer=Telling())),
        "chat",
        {"window": 3_000, "reserve": 0, "compaction": {"steps": ["summary", "expendable"]}},
    )


def held(store: MemoryStore) -> bytes:
    hashes = {name for record in store.load("chat") for name in record.contents}
    return b"\0".join(store.read_contents("chat", sorted(hashes)).values())


def test_erasing_an_artifact_erases_the_summaries_too() -> None:
    store = MemoryStore()
    chat = summarised(store)
    chat.ask("Read.", attach=[Note(path="a.md", text="The secret itself.")])
    chat.reply("Yes.")
    for number in range(80):
        chat.ask(f"Question {number}?")
        # One long sentence each: an outline leaves so much of it that a summary frees something.
        chat.reply("It is so " + "because " * 40)
    assert b"They spoke of a secret." in held(store)
    conversations = Conversations(store, make_backend(store).clock)
    with pytest.raises(CallError, match=r"never had an artifact 'b\.md'"):
        conversations.erase_artifact("chat", "b.md")
    assert b"They spoke of a secret." in held(store)
    conversations.erase_artifact("chat", "a.md")
    assert list(conversations.verify_erased("chat")) == []
    assert b"secret" not in held(store)
    chat.reload()
    turn = chat.ask("And now?")
    assert "secret" not in "".join(message.text for message in turn.messages)
    assert any(record.kind is EventKind.COMPACTION for record in store.load("chat"))


def test_what_instructions_no_longer_draw_in_stands_in_the_library_after_a_compaction(tmp_path: Path) -> None:
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
