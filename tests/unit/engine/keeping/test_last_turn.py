"""The last turn of a branch: who answered last, whatever was left without an answer since."""

from tests.unit.engine.backends import make_chat

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.messages.delta import Reply, StopReason
from lamella.engine.keeping.last_turn import find_sent
from lamella.engine.keeping.stored import StoredChat


def test_questions_without_an_answer_do_not_hide_who_answered_before_them() -> None:
    store = MemoryStore()
    chat = make_chat(store)
    chat.ask("One?")
    chat.reply(Reply(text="Yes.", stop=StopReason.END, id="msg_1"))
    assert find_answer(store) == "msg_1"
    for text in ("Two?", "Three?"):
        chat.ask(text)
        assert find_answer(store) == "msg_1"
    chat.reply("By hand.")
    assert find_answer(store) is None


def find_answer(store: MemoryStore) -> str | None:
    chat = make_chat(store)
    stored: StoredChat = chat._stored
    return find_sent(stored._log.path(), stored._log).answered_by
