"""How something gets into the memory: by a model that is watched, and as a line about a conversation."""

from collections.abc import Sequence

import pytest
from tests.unit.engine.backends import make_backend

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.messages.model import Message
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError


class Teller:
    """A summariser that says one thing, or fails."""

    def __init__(self, text: str) -> None:
        self._text = text

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        if not self._text:
            raise RuntimeError("no model")
        return self._text


def talk(*questions: str, teller: Teller | None = None) -> StoredChat:
    backend = make_backend(MemoryStore())
    chat = StoredChat(replace(backend, world=replace(backend.world, summarizer=teller)), "chat")
    for question in questions:
        chat.ask(Ask(text=question))
        chat.reply("It is a long story, and this is how it ends: the beans are sown in May, as they are every year.")
    return chat


def test_a_conversation_on_a_line_has_its_day_title_and_first_question() -> None:
    chat = talk("When are beans sown?", "And peas?")
    line, by_model = chat.tell_talk()
    assert line.endswith(", When are beans sown?")
    assert (line[:4].isdigit(), by_model) == (True, False)
    chat.rename("The garden")
    assert chat.tell_talk()[0].endswith(", The garden: When are beans sown?")


def test_a_summariser_writes_it_where_there_is_one() -> None:
    line, by_model = talk("When are beans sown?", teller=Teller("Sowing beans,\nin May.")).tell_talk()
    assert (line.endswith(": Sowing beans, in May."), by_model) == (True, True)


@pytest.mark.parametrize("said", ["", 'The user said "plant a tree in the garden today".'])
def test_a_summary_that_fails_or_invents_words_is_not_taken(said: str) -> None:
    line, by_model = talk("When are beans sown?", teller=Teller(said)).tell_talk()
    assert (line.endswith(", When are beans sown?"), by_model) == (True, False)


def test_of_nothing_there_is_nothing_to_tell() -> None:
    with pytest.raises(CallError, match="Nothing was said"):
        talk().tell_talk()


def test_a_long_conversation_is_read_from_its_end() -> None:
    chat = talk(*(f"Question {number} {'word ' * 500}" for number in range(12)), teller=Teller("Many questions."))
    assert chat.tell_talk() == (f"{chat.tell_talk()[0][:10]}, {chat.title}: Many questions.", True)
