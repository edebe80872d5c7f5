"""The last turn of a branch: which model answered last, with unanswered questions after it."""

from tests.unit.conversation.backends import make_chat

from lamella.conversation.conversation import Conversation
from lamella.conversation.log import get_last_sent_turn
from lamella.core.messages import ModelReply, StopReason
from lamella.stores.memory import InMemoryStore


def test_unanswered_questions_do_not_hide_last_answer() -> None:
    store = InMemoryStore()
    conversation = make_chat(store)
    conversation.ask("One?")
    conversation.reply(ModelReply(text="Yes.", stop=StopReason.END, id="msg_1"))
    assert find_answer(store) == "msg_1"
    for text in ("Two?", "Three?"):
        conversation.ask(text)
        assert find_answer(store) == "msg_1"
    conversation.reply("By hand.")
    assert find_answer(store) is None


def find_answer(store: InMemoryStore) -> str | None:
    conversation = make_chat(store)
    conversation_log: Conversation = conversation
    return get_last_sent_turn(conversation_log._log.branch_records(), conversation_log._log).response_id
