"""How something gets into the memory: by a model that is watched, and as a line about a conversation."""

from collections.abc import Sequence

import pytest
from tests.unit.engine.backends import make_backend

from lamella.adapters.stores.memory import MemoryStore
from lamella.core.compaction.asking import SummaryText
from lamella.core.messages.model import Message
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.engine.memory import need_line, tell_talk
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
    line, author, _ = chat.tell_talk()
    assert line.endswith(", When are beans sown?")
    assert (line[:4].isdigit(), author) == (True, "")
    chat.rename("The garden")
    assert chat.tell_talk()[0].endswith(", The garden: When are beans sown?")


def test_a_summariser_writes_it_where_there_is_one() -> None:
    line, author, why = talk("When are beans sown?", teller=Teller("Sowing beans,\nin May.")).tell_talk()
    assert (line.endswith(": Sowing beans, in May."), author, why) == (True, "a model", "")


@pytest.mark.parametrize("said", ["", 'The user said "plant a tree in the garden today".'])
def test_a_summary_that_fails_or_invents_words_is_not_taken(said: str) -> None:
    line, author, why = talk("When are beans sown?", teller=Teller(said)).tell_talk()
    assert (line.endswith(", When are beans sown?"), author, bool(why)) == (True, "", True)


def test_of_nothing_there_is_nothing_to_tell() -> None:
    with pytest.raises(CallError, match="Nothing was said"):
        talk().tell_talk()


def test_a_long_conversation_is_read_from_its_end() -> None:
    chat = talk(*(f"Question {number} {'word ' * 500}" for number in range(12)), teller=Teller("Many questions."))
    assert chat.tell_talk() == (f"{chat.tell_talk()[0][:10]}, {chat.title}: Many questions.", "a model", "")


def test_what_is_asked_for_a_line_is_the_last_turns_and_the_same_for_the_same_talk() -> None:
    chat = talk(*(f"Question {number} {'word ' * 500}" for number in range(12)))
    exchanges, measure = chat.standing[0].talk.exchanges, make_backend(MemoryStore()).world.counter.measure(None)
    need = need_line(exchanges, measure=measure)
    (asked,) = need.messages
    assert ("Question 11" in asked.text, "Question 0 " in asked.text) == (True, False)
    assert "one sentence" in asked.text
    assert need == need_line(exchanges, measure=measure)


def test_who_wrote_a_line_stands_in_it() -> None:
    chat = talk("When are beans sown?")
    exchanges, measure = chat.standing[0].talk.exchanges, make_backend(MemoryStore()).world.counter.measure(None)
    told = tell_talk("Beans", exchanges, day=None, measure=measure, given=SummaryText(text="Sown in May.", by="tiny"))
    assert told == ("Beans (summarised by tiny): Sown in May.", "tiny", "")
    late = SummaryText(why="no answer within 120 seconds")
    told = tell_talk("Beans", exchanges, day=None, measure=measure, given=late)
    assert told == ("Beans: When are beans sown?", "", "no answer within 120 seconds")
