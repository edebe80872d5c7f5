"""Rounds of tools become messages: the model's with its calls, then one for each output."""

import pytest

from lamella.core.messages import (
    CacheBoundaries,
    Message,
    ModelRequest,
    ProviderReply,
    Role,
    ToolCall,
    ToolOutput,
    ToolRound,
    parse_arguments,
    round_messages,
)
from lamella.core.values import replace

CALLS = (ToolCall(id="a", name="search", arguments="{}"), ToolCall(id="b", name="read", arguments="{}"))
ROUND = ToolRound(
    text="Let me look.",
    calls=CALLS,
    outputs=(ToolOutput(call="a", output="Two notes."), ToolOutput(call="b", output="", failed=True)),
    provider_reply=ProviderReply(format="mine", json="[]"),
)


def test_round_is_calls_and_one_message_per_output() -> None:
    said, first, second = round_messages(ROUND)
    assert (said.role, said.text, said.calls, said.provider_reply) == (
        Role.ASSISTANT,
        "Let me look.",
        CALLS,
        ROUND.provider_reply,
    )
    assert (first.role, first.call_id, first.text, first.failed) == (Role.TOOL, "a", "Two notes.", False)
    assert (second.role, second.call_id, second.text, second.failed) == (Role.TOOL, "b", "", True)
    assert {message.tokens for message in (said, first, second)} == {0}


def test_equal_rounds_are_equal_and_provider_replies_differ() -> None:
    said = round_messages(ROUND)[0]
    assert said.has_same_content(round_messages(ROUND)[0])
    other = replace(ROUND, provider_reply=ProviderReply(format="mine", json="[1]"))
    assert not said.has_same_content(round_messages(other)[0])


def test_repr_omits_provider_reply_json() -> None:
    assert repr(ProviderReply(format="mine", json="secret")) == "ProviderReply(format='mine')"


def test_request_during_tool_round_is_extended_by_next() -> None:
    asked = Message(role=Role.USER, pieces=("When?",))
    request = ModelRequest(model="m", messages=(asked,), cache_boundaries=CacheBoundaries(stable_messages=0))
    running = replace(request, messages=(asked, *round_messages(ROUND)))
    assert (request.is_tool_round, running.is_tool_round) == (False, True)
    assert (request.effective_cache_boundaries.stable_messages, running.effective_cache_boundaries.stable_messages) == (
        0,
        None,
    )
    assert not ModelRequest(model="m", messages=()).is_tool_round


def test_tool_output_succeeds_by_default() -> None:
    assert ToolOutput(call="c", output="found").failed is False


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"q": "tides", "most": 2.5}', {"q": "tides", "most": 2.5}),
        ("{}", {}),
        ("", {}),
        (" \n", {}),
    ],
)
def test_arguments_are_parsed_as_object(written: str, read: dict[str, object]) -> None:
    assert parse_arguments(written) == read


@pytest.mark.parametrize(("written", "read"), [('["a"]', ["a"]), ("3", 3), ('"a"', "a"), ("null", None)])
def test_non_object_arguments_are_wrapped(written: str, read: object) -> None:
    assert parse_arguments(written) == {"arguments": read}


@pytest.mark.parametrize(
    "written", ["{", '{"x": NaN}', '{"x": 1e999}', '{"x": -Infinity}', '{"x": "\\ud83c"}', "[" * 9_999]
)
def test_unencodable_arguments_stay_text(written: str) -> None:
    assert parse_arguments(written) == {"arguments": written}
