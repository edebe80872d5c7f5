"""Forking into a new conversation: a branch written again under another name."""

import json
from collections.abc import Callable

import pytest
from tests.unit.conversation.backends import Ticking

from lamella import Conversation, Note, ToolOutput
from lamella.conversation.backend import Backend
from lamella.conversation.import_export import ConversationRepository, copy_branch_into_new_conversation
from lamella.conversation.turn import ModelAnswer, TurnRequest
from lamella.core.log.events.message import ERASED_OUTPUT
from lamella.core.log.turn_records import round_result_ids
from lamella.core.messages import ModelReply, ProviderReply, StopReason, ToolCall, Usage
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.wiring import open_backend

CALL = ToolCall(id="c1", name="look", arguments='{"page":1}')


@pytest.fixture(params=["library", "in_place"])
def chat(request: pytest.FixtureRequest) -> Conversation:
    """Five turns with a note, a round of tools and another model, in either layout."""
    conversation = Conversation.open(make_backend(), "demo", {"layout": request.param, "model": "openai:gpt-5"})
    conversation.ask("one", attach=[Note(path="a.md", text="A note.")], system="Be terse.")
    conversation.reply(ModelAnswer(reply=ModelReply(text="Let me look.", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    conversation.submit_tool_outputs([ToolOutput(call="c1", output="Page one.")])
    conversation.reply("yes")
    for number in range(4):
        conversation.ask(f"What of {number}?" + " It was dug in March." * 20)
        conversation.reply("It is fine." + " It grows well." * 20)
    conversation.rename("Garden")
    return conversation


def make_backend() -> Backend:
    return replace(open_backend("memory:"), clock=Ticking(), make_key=str)


def sent(chat: Conversation) -> str:
    """What the next turn sends, whether or not the history before it was rewritten."""
    conversation_log = chat
    turn = conversation_log._next_prompt_builder().preview(
        conversation_log._with_pending_and_overrides(TurnRequest(text="And now?"))
    )
    return json.dumps([turn.envelope.model, *(message.to_dict() for message in turn.messages)])


def said(chat: Conversation) -> list[str]:
    return [node.text for record in chat.turns() for node in (record.message, record.reply) if node]


def fork(chat: Conversation, message: str, name: str = "other") -> Conversation:
    copy_branch_into_new_conversation(chat._backend, chat.id, message, name=name)
    assert list(ConversationRepository(chat._backend.store, Ticking()).verify()) == []
    return Conversation.open(chat._backend, name, {})


def test_fork_sends_like_its_conversation(chat: Conversation) -> None:
    other = fork(chat, chat.head)
    assert (other.id, other.title, said(other)) == ("other", "Garden", said(chat))
    assert sent(other) == sent(chat)
    assert set(chat.branches()).isdisjoint(other.branches())


def test_fork_ends_at_its_message_and_original_is_unchanged(chat: Conversation) -> None:
    before, records = said(chat), list(chat._backend.store.load("demo"))
    first = chat.turns()[0]
    assert first.reply is not None
    other = fork(chat, first.reply.id)
    assert said(other) == ["one", "yes"]
    assert said(fork(chat, first.message.id, "third")) == ["one"]
    chat.reload()
    assert (said(chat), list(chat._backend.store.load("demo"))) == (before, records)


def test_fork_of_question_with_pending_calls_has_them(chat: Conversation) -> None:
    chat.ask("And page two?")
    carried = ProviderReply(format="wire", json='["thoughts"]')
    first = ModelReply(
        text="", stop=StopReason.TOOL_CALLS, calls=(CALL,), usage=Usage(output=30), provider_reply=carried
    )
    chat.reply(ModelAnswer(reply=first))
    chat.submit_tool_outputs([ToolOutput(call="c1", output="Page two.")])
    chat.reply(ModelAnswer(reply=replace(first, text="Once more.", calls=(replace(CALL, id="c2"),))))
    other = fork(chat, chat.head)
    assert [call.id for call in other.pending_tool_calls] == [call.id for call in chat.pending_tool_calls] == ["c2"]
    assert other.ledger() == chat.ledger()
    found = [ToolOutput(call="c2", output="The end.")]
    ours, theirs = other.submit_tool_outputs(found), chat.submit_tool_outputs(found)
    assert ours.messages[-4:] == theirs.messages[-4:]
    assert ours.messages[-2].provider_reply == carried
    assert other.reply("It ends.").text == "It ends."
    assert list(ConversationRepository(other._backend.store, Ticking()).verify()) == []


@pytest.mark.parametrize("go", [Conversation.fork, Conversation.switch])
def test_continuing_from_head_changes_nothing(chat: Conversation, go: Callable[[Conversation, str], None]) -> None:
    chat.ask("And page two?")
    chat.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    version = chat.version
    go(chat, chat.head)
    assert (chat.version, [call.id for call in chat.pending_tool_calls]) == (version, ["c1"])
    ConversationRepository(chat._backend.store, Ticking()).fork(chat.id, chat.head)
    chat.reload()
    assert (chat.version, [call.id for call in chat.pending_tool_calls]) == (version, ["c1"])


def test_fork_keeps_settings_of_deleted_question(chat: Conversation) -> None:
    chat.ask("And in Latin?", system="Answer in Latin, about {[[a]]}.", model="openai:gpt-5-mini")
    chat.reply("Ita.")
    chat.delete(chat.turns()[-1].message.id)
    other = fork(chat, chat.head)
    assert "Answer in Latin" in sent(other)
    assert sent(other) == sent(chat)
    assert other.ask("And now?").envelope.model == "openai:gpt-5-mini"


def test_fork_uses_model_chosen_since_last_turn(chat: Conversation) -> None:
    chosen = Conversation.open(chat._backend, chat.id, {"model": "openai:gpt-5-mini"})
    chosen.rename("Garden")
    assert fork(chosen, chosen.head).preview("And now?").envelope.model == "openai:gpt-5-mini"


def test_fork_of_reopened_unanswered_question_is_unanswered(chat: Conversation) -> None:
    question = chat.ask("And page two?").envelope.message_id
    chat.reply(ModelAnswer(reply=ModelReply(text="Wait.", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    chat.ask("Never mind.")
    chat.reply("Well.")
    chat.switch(question)
    chat.regenerate(question, model="openai:gpt-5-mini")
    other = fork(chat, question)
    assert sent(other) == sent(chat)
    waits, also = other.prepare_pending_turn(), chat.prepare_pending_turn()
    assert waits is not None
    assert also is not None
    assert waits.envelope.model == also.envelope.model == "openai:gpt-5-mini"
    # Branches of the conversation itself fold what was said before them; in a new one nothing was sent yet.
    assert waits.messages[-1].text == also.messages[-1].text


def test_model_of_repeated_unanswered_question_is_used_next(chat: Conversation) -> None:
    question = chat.ask("And page two?").envelope.message_id
    chat.ask("Never mind.")
    chat.reply("Well.")
    chat.switch(question)
    chat.regenerate(question, model="openai:gpt-5-mini")
    assert chat.ask("And page three?").envelope.model == "openai:gpt-5-mini"


def test_switching_to_question_with_pending_calls_restores_them(chat: Conversation) -> None:
    chat.ask("And page two?")
    chat.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    waits = chat.head
    chat.fork(chat.turns()[0].message.id)
    assert not chat.pending_tool_calls
    chat.fork(waits)
    assert [call.id for call in chat.pending_tool_calls] == ["c1"]


def test_fork_keeps_compactions_and_can_undo_them(chat: Conversation) -> None:
    whole = sent(chat)
    receipt = chat.compact(to=0.004)
    assert receipt is not None
    other = fork(chat, chat.head)
    assert sent(other) == sent(chat) != whole
    (kept,) = other.receipts()
    assert [step.name for step in kept.steps] == [step.name for step in receipt.steps]
    other.undo()
    assert sent(other) == whole


def test_fork_continues_after_compacted_turn(chat: Conversation) -> None:
    chat.compact(to=0.004)
    chat.ask("After it?")
    chat.reply("Yes.")
    other = fork(chat, chat.head)
    assert sent(other) == sent(chat)
    assert len(other.receipts()) == 1


def test_fork_includes_model_calls(chat: Conversation) -> None:
    other = fork(chat, chat.head)
    assert other.ledger() == chat.ledger()
    assert len(other.ledger()[0]) == 1


def test_answer_that_was_deleted_is_an_empty_one_in_the_fork(chat: Conversation) -> None:
    reply = chat.turns()[1].reply
    assert reply is not None
    chat.delete(reply.id)
    other = fork(chat, chat.head)
    assert sent(other) == sent(chat)


def test_fork_omits_erased_content(chat: Conversation) -> None:
    ConversationRepository(chat._backend.store, Ticking()).erase_artifact("demo", "a.md")
    chat.reload()
    other = fork(chat, chat.head)
    assert "A note." not in sent(other)
    assert sent(other) == sent(chat)


def test_fork_of_fork_keeps_result_ids(chat: Conversation) -> None:
    second = fork(chat, chat.head, "second")
    third = fork(second, second.head, "third")
    (name,) = round_result_ids(chat.turns()[0].message.id, 0, chat.turns()[0].completed_rounds[0])
    assert third.turns()[0].completed_rounds[0].names == (name,)
    assert ConversationRepository(chat._backend.store, Ticking()).erase_artifact("third", name) == 1
    chat.reload()
    third.reload()
    assert "Page one." not in sent(third)
    assert sent(second) == sent(chat)


def test_erased_result_is_known_in_fork_by_id(chat: Conversation) -> None:
    before = sent(chat)
    (name,) = round_result_ids(chat.turns()[0].message.id, 0, chat.turns()[0].completed_rounds[0])
    ConversationRepository(chat._backend.store, Ticking()).erase_artifact("demo", name)
    chat.reload()
    assert sent(chat) == before.replace("Page one.", ERASED_OUTPUT)
    assert sent(fork(chat, chat.head)) == sent(chat)


@pytest.mark.parametrize(
    ("message", "name", "told"),
    [("nobody", "other", "no such message"), ("", "demo", "conversation 'demo' already")],
)
def test_wrong_message_and_taken_name_are_refused(chat: Conversation, message: str, name: str, told: str) -> None:
    with pytest.raises(InvalidOperationError, match=told):
        copy_branch_into_new_conversation(chat._backend, "demo", message or chat.head, name=name)
