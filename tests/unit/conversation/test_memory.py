"""How something gets into the memory: by a model that is watched, and as a line about a conversation."""

from collections.abc import Sequence

import pytest
from tests.unit.conversation.backends import make_backend

from lamella.conversation.conversation import Conversation
from lamella.conversation.memory import build_one_line_summary, one_line_summary_request
from lamella.conversation.turn import TurnRequest
from lamella.core.compaction.summaries import SummaryResult
from lamella.core.messages import Message
from lamella.core.values import replace
from lamella.errors import InvalidOperationError
from lamella.stores.memory import InMemoryStore


class Teller:
    """A summariser that says one thing, or fails."""

    def __init__(self, text: str) -> None:
        self._text = text

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        if not self._text:
            raise RuntimeError("no model")
        return self._text


def talk(*questions: str, teller: Teller | None = None) -> Conversation:
    backend = make_backend(InMemoryStore())
    chat = Conversation.open(replace(backend, adapters=replace(backend.adapters, summarizer=teller)), "chat")
    for question in questions:
        chat.ask(TurnRequest(text=question))
        chat.reply("It is a long story, and this is how it ends: the beans are sown in May, as they are every year.")
    return chat


def test_one_line_summary_has_day_title_and_first_question() -> None:
    chat = talk("When are beans sown?", "And peas?")
    line, author, _ = chat.summarize_in_one_line_with_author()
    assert line.endswith(", When are beans sown?")
    assert (line[:4].isdigit(), author) == (True, "")
    chat.rename("The garden")
    assert chat.summarize_in_one_line_with_author()[0].endswith(", The garden: When are beans sown?")


def test_summarizer_writes_one_line_summary() -> None:
    line, author, why = talk(
        "When are beans sown?", teller=Teller("Sowing beans,\nin May.")
    ).summarize_in_one_line_with_author()
    assert (line.endswith(": Sowing beans, in May."), author, why) == (True, "a model", "")


@pytest.mark.parametrize("said", ["", 'The user said "plant a tree in the garden today".'])
def test_failed_or_invented_summary_is_not_used(said: str) -> None:
    line, author, why = talk("When are beans sown?", teller=Teller(said)).summarize_in_one_line_with_author()
    assert (line.endswith(", When are beans sown?"), author, bool(why)) == (True, "", True)


def test_empty_conversation_has_no_summary() -> None:
    with pytest.raises(InvalidOperationError, match="Nothing was said"):
        talk().summarize_in_one_line_with_author()


def test_long_conversation_is_summarized_from_its_end() -> None:
    chat = talk(*(f"Question {number} {'word ' * 500}" for number in range(12)), teller=Teller("Many questions."))
    assert chat.summarize_in_one_line_with_author() == (
        f"{chat.summarize_in_one_line_with_author()[0][:10]}, {chat.title}: Many questions.",
        "a model",
        "",
    )


def test_one_line_request_has_last_turns_and_is_deterministic() -> None:
    chat = talk(*(f"Question {number} {'word ' * 500}" for number in range(12)))
    exchanges, tokenizer = (
        chat.current_state[0].history.turns,
        make_backend(InMemoryStore()).adapters.counter.get_tokenizer(None),
    )
    request = one_line_summary_request(exchanges, tokenizer=tokenizer)
    (asked,) = request.messages
    assert ("Question 11" in asked.text, "Question 0 " in asked.text) == (True, False)
    assert "one sentence" in asked.text
    assert request == one_line_summary_request(exchanges, tokenizer=tokenizer)


def test_one_line_summary_names_its_author() -> None:
    chat = talk("When are beans sown?")
    exchanges, tokenizer = (
        chat.current_state[0].history.turns,
        make_backend(InMemoryStore()).adapters.counter.get_tokenizer(None),
    )
    told = build_one_line_summary(
        "Beans",
        exchanges,
        day=None,
        tokenizer=tokenizer,
        model_summary=SummaryResult(text="Sown in May.", model="tiny"),
    )
    assert told == ("Beans (summarised by tiny): Sown in May.", "tiny", "")
    late = SummaryResult(failure="no answer within 120 seconds")
    told = build_one_line_summary("Beans", exchanges, day=None, tokenizer=tokenizer, model_summary=late)
    assert told == ("Beans: When are beans sown?", "", "no answer within 120 seconds")
