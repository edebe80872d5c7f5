"""A summarizer that failed is called again later, in an open chat as in a reopened one."""

from collections.abc import Iterator, Sequence
from itertools import cycle

import pytest
from _pytest.mark import ParameterSet
from tests.unit.conversation.backends import make_backend

from lamella import Message
from lamella.conversation.conversation import Conversation
from lamella.core.values import replace
from lamella.stores.memory import InMemoryStore

GOOD = "- [1] The user asked something."
MOODS: dict[str, tuple[str | None, ...]] = {
    "fails first": (None, GOOD),
    "fails later": (GOOD, None),
    "is refused": ("", GOOD, None),
    "says otherwise": (GOOD, "- [1] The user asked something else.", None),
    "good": (GOOD,),
    "never": (None,),
}
WAYS = (("library", "full"), ("library", "strip"), ("in_place", "full"), ("in_place", "strip"))


def list_cases() -> Iterator[ParameterSet]:
    """Every mood in every way; a third of them, in which each mood and each way has its turn, in a plain run."""
    for row, (name, moods) in enumerate(MOODS.items()):
        for column, (layout, history) in enumerate(WAYS):
            marks = () if (row + column) % 3 == 0 else pytest.mark.long
            yield pytest.param(moods, layout, history, id=f"{name}-{layout}-{history}", marks=marks)


class Moody:
    """Does one thing after the other: says a text, or fails."""

    def __init__(self, *moods: str | None) -> None:
        self._moods = cycle(moods)
        self.asked = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked += 1
        said = next(self._moods)
        if said is None:
            raise RuntimeError("the model is out for lunch")
        return said


def play(moods: Sequence[str | None], layout: str, history: str, *, reopens: bool) -> tuple[list[list[str]], int]:
    """What each turn sends, in a chat that stays open or is opened again before each turn; and what was asked for."""
    moody, store = Moody(*moods), InMemoryStore()
    backend = make_backend(store)
    backend = replace(backend, adapters=replace(backend.adapters, summarizer=moody))
    settings = {"window": 3_000, "reserve": 0, "layout": layout, "history": history}
    conversation = Conversation.open(backend, "chat", settings)
    sent: list[list[str]] = []
    for number in range(40):
        if reopens:
            conversation = Conversation.open(backend, "chat", settings)
        if number % 13 == 12:
            conversation.plan(0.2)
        turn = conversation.ask(f"Question {number}, and why so?", fold=history == "strip" and number % 5 == 4)
        sent.append([message.text for message in turn.messages])
        conversation.reply(f"Answer {number} " + "because of that " * 40)
    return sent, moody.asked


@pytest.mark.parametrize(("moods", "layout", "history"), list(list_cases()))
def test_live_and_reopened_send_same_bytes_after_any_summarizer_result(
    moods: Sequence[str | None], layout: str, history: str
) -> None:
    live, reopened = (play(moods, layout, history, reopens=reopens) for reopens in (False, True))
    assert live == reopened
    assert live[1]


@pytest.mark.layout("library")
def test_open_chat_retries_failed_summarizer_for_same_turns() -> None:
    moody, store = Moody(None, GOOD), InMemoryStore()
    backend = make_backend(store)
    conversation = Conversation.open(
        replace(backend, adapters=replace(backend.adapters, summarizer=moody)), "chat", {"history": "strip"}
    )
    warned: list[bool] = []
    for number in range(13):
        turn = conversation.ask(f"Question {number}?")
        warned.append(any("stand as their outline" in warning for warning in turn.envelope.warnings))
        conversation.reply(f"Answer {number}, and some words to make it longer than a summary.")
    assert (warned.count(True), moody.asked) == (1, 2)
    assert any(GOOD in message.text for message in turn.messages)
