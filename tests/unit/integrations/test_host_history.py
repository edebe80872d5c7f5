"""The histories of other programs: what is sent in place of their messages, and when they are left alone."""

import asyncio
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lamella
from lamella.attach import Tool
from lamella.core.messages import ToolCall, Usage
from lamella.errors import BadInputError
from lamella.integrations.host_history import (
    HostHistories,
    HostMessage,
    HostShortensHistoryWarning,
    PreparedHistory,
    PreparedMessage,
)

SYSTEM = "You find files."
RECALL = HostHistories(settings={}).recall_tool
TOOLS = (Tool(name="read", description="Reads a file."), RECALL)
_LEFT_OUT = re.compile(r"<left_out>.* (?P<id>tool:\S+)\. Make the call again to read it\.</left_out>")


def _ask(text: str) -> HostMessage:
    return HostMessage(role="user", text=text)


def _answer(text: str) -> HostMessage:
    return HostMessage(role="assistant", text=text)


def _call(number: int, *, signed: bool = False) -> HostMessage:
    call = ToolCall(id=f"call-{number}", name="read", arguments=f'{{"file": {number}}}')
    return HostMessage(role="assistant", text="", calls=(call,), signed=signed)


def _result(number: int, text: str) -> HostMessage:
    return HostMessage(role="tool", text=text, call_id=f"call-{number}")


def _file(number: int) -> str:
    return "\n".join(f"File {number} has in line {line} the number {number * line}." for line in range(400))


def _tasks(count: int, rounds: int) -> list[HostMessage]:
    """A history of several tasks, each with some rounds of reading."""
    messages: list[HostMessage] = []
    for task in range(count):
        messages.append(_ask(f"What is the sum of task {task}?"))
        for number in range(task * rounds, (task + 1) * rounds):
            messages += (_call(number), _result(number, _file(number)))
        messages.append(_answer(f"The sum of task {task} is {task}."))
    return [*messages, _ask("And now?")]


def _requests_of(messages: Sequence[HostMessage]) -> Iterator[list[HostMessage]]:
    """The requests in which a host sends this history: one for each reply, and the last."""
    for size, message in enumerate(messages):
        if message.role == "assistant":
            yield list(messages[:size])
    yield list(messages)


def _prepare(
    histories: HostHistories, messages: Sequence[HostMessage], *, system: str = SYSTEM
) -> PreparedHistory | None:
    return histories.prepare(messages, system=system, tools=TOOLS, model="anthropic:claude-opus-5-5")


def _sent_texts(prepared: PreparedHistory, messages: Sequence[HostMessage]) -> list[str]:
    return [_sent_text(one, messages) for one in prepared.messages]


def _sent_text(prepared: PreparedMessage, messages: Sequence[HostMessage]) -> str:
    if prepared.text is not None:
        return prepared.text
    assert prepared.position is not None
    return messages[prepared.position].text


def _play(histories: HostHistories, messages: Sequence[HostMessage]) -> list[list[str]]:
    """Send a history request by request; return the texts of each."""
    sent: list[list[str]] = []
    for request in _requests_of(messages):
        prepared = _prepare(histories, request)
        assert prepared is not None
        sent.append(_sent_texts(prepared, request))
        if len(request) < len(messages):
            histories.record_reply(request, messages[len(request)], system=SYSTEM, usage=Usage(plain=1, output=1))
    return sent


def test_a_short_history_is_sent_as_it_is() -> None:
    histories = HostHistories(settings={})
    messages = [_ask("One?"), _answer("1"), _ask("Two?")]
    prepared = _prepare(histories, messages)
    assert prepared is not None
    assert [(one.position, one.text) for one in prepared.messages] == [(0, None), (1, None), (2, None)]
    assert (histories.counts.prepared, histories.counts.unchanged) == (1, 0)


def test_unused_results_are_cleared_and_one_recall_away() -> None:
    histories = HostHistories(settings={"window": 200_000})
    messages = _tasks(5, 5)
    sent = _play(histories, messages)
    whole = sum(len(one.text) for request in _requests_of(messages) for one in request)
    assert sum(len(text) for request in sent for text in request) < whole / 2
    (conversation,) = histories.conversations
    recalled = 0
    for position, text in enumerate(sent[-1]):
        cleared = _LEFT_OUT.search(text)
        if cleared is not None:
            answer = asyncio.run(histories.recall(cleared["id"], call_id=None))
            assert messages[position].text in answer
            recalled += 1
    assert recalled >= 10
    assert len(conversation.turns()) == 6


def test_a_request_continues_the_bytes_of_the_one_before_unless_something_was_cleared() -> None:
    sent = _play(HostHistories(settings={"window": 200_000}), _tasks(5, 5))
    for before, after in pairwise(sent):
        changed = [text for old, text in zip(before, after, strict=False) if old != text]
        assert all(_LEFT_OUT.search(text) for text in changed)


def test_nothing_is_cleared_for_a_model_that_cannot_recall() -> None:
    histories = HostHistories(settings={"window": 200_000})
    messages = _tasks(4, 4)
    for request in _requests_of(messages):
        prepared = histories.prepare(request, system=SYSTEM, tools=TOOLS[:1], model=None)
        assert prepared is not None
        assert _sent_texts(prepared, request) == [one.text for one in request]


def test_a_repeated_document_becomes_a_reference() -> None:
    document = f'<document path="plan.md">\n{"The bridge opens at noon. " * 20}\n</document>'
    messages = [_ask(f"{document}\nWhen?"), _answer("At noon."), _ask(f"{document}\nSure?")]
    prepared = _prepare(HostHistories(settings={}), messages)
    assert prepared is not None
    assert _sent_texts(prepared, messages)[2] == '[Document "plan.md": identical to the copy above]\nSure?'


def test_a_history_that_no_longer_fits_is_shortened() -> None:
    histories = HostHistories(settings={"window": 6_000})
    messages: list[HostMessage] = []
    for number in range(40):
        messages += (_ask(f"Question {number}: {'why is the sea salty ' * 15}?"), _answer(f"{number} " + "salt " * 150))
    messages.append(_ask("What was the first question?"))
    prepared = None
    for request in _requests_of(messages):
        prepared = _prepare(histories, request)
        assert prepared is not None
    assert prepared is not None
    texts = _sent_texts(prepared, messages)
    assert sum(map(len, texts)) < sum(len(one.text) for one in messages) / 2
    assert texts[-1] == "What was the first question?"


def test_two_runs_that_begin_alike_do_not_mix() -> None:
    histories = HostHistories(settings={})
    for pin in ("1111", "2222"):
        first = [_ask("Hi")]
        assert _prepare(histories, first) is not None
        histories.record_reply(first, _answer(f"Your PIN is {pin}."), system=SYSTEM)
    request = [_ask("Hi"), _answer("Your PIN is 1111."), _ask("Which PIN?")]
    prepared = _prepare(histories, request)
    assert prepared is not None
    assert _sent_texts(prepared, request) == ["Hi", "Your PIN is 1111.", "Which PIN?"]


def test_another_system_prompt_does_not_lose_the_history() -> None:
    histories = HostHistories(settings={})
    messages = [_ask("One?"), _answer("1"), _ask("Two?")]
    _prepare(histories, messages[:1], system="It is 10:00.")
    prepared = _prepare(histories, messages, system="It is 10:01.")
    assert prepared is not None
    assert prepared.added_to_system == ""
    assert len(histories.conversations) == 1


def test_usage_is_in_the_ledger() -> None:
    histories = HostHistories(settings={})
    messages = [_ask("One?")]
    _prepare(histories, messages)
    histories.record_reply(messages, _answer("1"), system=SYSTEM, usage=Usage(plain=7, read=90, output=3))
    (conversation,) = histories.conversations
    assert [call.usage.read for calls in conversation.ledger() for call in calls] == [90]


def test_conversations_are_kept_in_the_store_of_an_engine() -> None:
    with lamella.open("memory:") as engine:
        histories = HostHistories(engine=engine, name="helper", settings={})
        _play(histories, [_ask("One?"), _answer("1"), _ask("Two?")])
        _play(histories, [_ask("Other?"), _answer("2"), _ask("Three?")])
        names = sorted(one.name for one in engine.chats())
        assert names == ["helper-1", "helper-2"]
        stored = engine.chat("helper-1")
        assert [turn.message.text for turn in stored.turns()] == ["One?", "Two?"]


@pytest.mark.parametrize(
    "messages",
    [
        [_ask("Read."), _call(1), _ask("Go on.")],
        [_ask("Read."), _result(1, "text")],
        [_answer("Hello!")],
        [_answer("Hello!"), _ask("Hi")],
        [],
    ],
)
def test_an_order_that_no_conversation_has_is_sent_unchanged(messages: list[HostMessage]) -> None:
    histories = HostHistories(settings={})
    assert _prepare(histories, messages) is None
    assert histories.counts.unchanged == 1


def test_a_picture_stays_where_it_is() -> None:
    picture = HostMessage(role="user", text="What is this?", other_parts="[picture]")
    prepared = _prepare(HostHistories(settings={}), [picture, _answer("A boat."), _ask("Which?")])
    assert prepared is not None
    assert prepared.messages[0] == PreparedMessage(role="user", position=0)


def test_signed_reasoning_is_kept_only_behind_the_same_text() -> None:
    histories = HostHistories(settings={"window": 200_000})
    messages = [_ask("Old task"), _call(1), _result(1, _file(1)), _answer("Done.")]
    _play(histories, [*messages, _ask("More")])
    messages += [_ask("New task"), _call(2, signed=True), _result(2, "short")]
    for request in _requests_of(messages):
        prepared = _prepare(histories, request)
        if len(request) < len(messages) and messages[len(request)].role == "assistant":
            histories.record_reply(request, messages[len(request)], system=SYSTEM, usage=Usage(plain=1, output=1))
    assert prepared is not None
    changed = [place for place, one in enumerate(prepared.messages) if one.text is not None]
    signed = next(place for place, one in enumerate(prepared.messages) if one.position == 5)
    assert prepared.messages[signed].without_reasoning == any(place < signed for place in changed)


@pytest.mark.parametrize("rewriting", ["clears", "summarises"])
def test_a_host_that_shortens_its_history_itself_is_left_alone(rewriting: str) -> None:
    histories = HostHistories(settings={"window": 200_000})
    messages = _tasks(2, 3)
    _play(histories, messages)
    if rewriting == "clears":
        rewritten = [*messages[:2], _result(0, "[cleared]"), *messages[3:]]
    else:
        rewritten = [_ask("Summary: two sums were found."), *messages[9:]]
    later = [*rewritten, _answer("Nothing more to add to these sums."), _ask("Sure?")]
    with pytest.warns(HostShortensHistoryWarning, match="switch the host's summaries and clearing off"):
        assert _prepare(histories, rewritten) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _prepare(histories, later) is None


def test_an_edited_question_is_no_shortening() -> None:
    histories = HostHistories(settings={})
    messages = _tasks(1, 2)
    _play(histories, messages)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert _prepare(histories, [*messages[:-1], _ask("Something quite different, please.")]) is not None
        assert _prepare(histories, [_ask("A new first question.")]) is not None


def test_a_wrong_setting_is_reported_at_once() -> None:
    with pytest.raises(BadInputError):
        HostHistories(settings={"window": "large"})


def test_recall_without_a_history_says_so() -> None:
    assert (
        asyncio.run(HostHistories(settings={}).recall("bridge", call_id=None))
        == "Nothing was left out of the messages."
    )


def test_recall_never_answers_from_the_history_of_somebody_else() -> None:
    histories = HostHistories(settings={"window": 200_000})
    _play(histories, _tasks(5, 5))
    assert _prepare(histories, [_ask("Hi, I am somebody else.")]) is not None
    answer = asyncio.run(histories.recall("File 0", call_id="call-of-nobody"))
    assert answer == "Nothing was left out of the messages."
    assert asyncio.run(histories.recall("File 0", call_id=None)) == answer


def test_what_cannot_be_converted_is_counted_and_raises_nothing() -> None:
    histories = HostHistories(settings={})

    def fail() -> str:
        raise KeyError("text")

    assert histories.convert_request(fail) is None
    assert histories.convert_reply(fail) is None
    assert histories.counts.unchanged == 1


_TEXTS = st.sampled_from(["Hi", "  spaced \n", "{braces} and <tags>", "Ünï 語", _file(1), _file(2), "ok", ""])


@st.composite
def _histories_of_hosts(draw: st.DrawFn) -> list[HostMessage]:
    messages: list[HostMessage] = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        messages.append(_ask(draw(_TEXTS)))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            messages += (_call(number), _result(number, draw(_TEXTS)))
        messages.append(_answer(draw(_TEXTS)))
    return [*messages, _ask(draw(_TEXTS))]


@given(_histories_of_hosts(), st.sampled_from([None, 6_000, 200_000]))
def test_every_message_is_sent_or_can_be_recalled(messages: list[HostMessage], window: int | None) -> None:
    histories = HostHistories(settings={} if window is None else {"window": window})
    for request in _requests_of(messages):
        prepared = _prepare(histories, request)
        if prepared is None:
            assert window == 6_000, "only what cannot fit is sent unchanged"
            continue
        positions = [one.position for one in prepared.messages if one.position is not None]
        assert positions == sorted(positions)
        if window is None or window > 6_000:
            assert [messages[place].role for place in positions] == [one.role for one in request]
        for one in prepared.messages:
            if one.role == "tool" and one.text is not None:
                cleared = _LEFT_OUT.search(one.text)
                assert cleared is None or one.position is not None
