"""Replay walks a dialogue turn by turn: each is asked when the one before was looked at, and answered after."""

from collections.abc import Iterator
from datetime import UTC, datetime

from lamella.conversation.prompt_builder import PromptBuilder
from lamella.conversation.transcript import ReplayTurn, replay
from lamella.conversation.turn import TurnRequest
from lamella.core.messages import ProviderReply, ToolCall, ToolOutput, ToolRound
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.settings.rules import build_prompt_settings, build_turn_settings
from lamella.wiring import load_settings, open_adapters

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def dialogue() -> PromptBuilder:
    settings, adapters = load_settings(), open_adapters(None)
    return PromptBuilder(
        adapters,
        build_prompt_settings(settings, adapters),
        PromptState(conversation="chat"),
        turn_settings=build_turn_settings(settings),
    )


def test_each_turn_includes_earlier_replies() -> None:
    script = [
        ReplayTurn(turn_request=TurnRequest(text=f"q{number}"), reply=f"a{number}", at=NOON) for number in range(3)
    ]
    sent = [[message.text for message in turn.messages] for turn in replay(dialogue(), script)]
    assert sent == [["q0"], ["q0", "a0", "q1"], ["q0", "a0", "q1", "a1", "q2"]]


def test_turn_is_read_and_sent_lazily() -> None:
    read: list[str] = []

    def script() -> Iterator[ReplayTurn]:
        for text in ("one", "two"):
            read.append(text)
            yield ReplayTurn(turn_request=TurnRequest(text=text), reply="", at=None)

    runner = dialogue()
    turns = replay(runner, script())
    assert (read, runner.is_awaiting_reply) == ([], False)
    next(turns)
    assert (read, runner.is_awaiting_reply) == (["one"], True)
    assert [message.text for message in next(turns).messages] == ["one", "", "two"]


def test_last_turn_is_answered_when_iteration_ends() -> None:
    runner = dialogue()
    assert len(list(replay(runner, [ReplayTurn(turn_request=TurnRequest(text="one"), reply="yes", at=None)]))) == 1
    assert not runner.is_awaiting_reply


def test_last_request_of_tool_turn_has_prefix_change_of_first() -> None:
    one = ToolRound(
        text="Let me look.",
        calls=(ToolCall(id="c1", name="look", arguments="{}"),),
        outputs=(ToolOutput(call="c1", output="Page one."),),
        provider_reply=ProviderReply(format="wire", json="thoughts " * 90),
        tokens=70,
    )
    two = replace(one, calls=(replace(one.calls[0], id="c2"),), outputs=(ToolOutput(call="c2", output="Page two."),))
    script = [
        ReplayTurn(turn_request=TurnRequest(text="q0"), reply="a0", at=NOON, rounds=(one, two)),
        ReplayTurn(turn_request=TurnRequest(text="q1"), reply="", at=NOON),
    ]
    first, second = replay(dialogue(), script)
    assert [message.role for message in first.messages] == ["user", *["assistant", "tool"] * 2]
    assert [message.tokens for message in first.messages if message.provider_reply] == [70, 70]
    assert (first.number, first.prefix_change.cause, first.ledger.calls) == (1, "first_turn", ())
    assert second.number == 2


def test_replay_accepts_repeated_call_ids() -> None:
    one = ToolRound(
        text="",
        calls=(ToolCall(id="c1", name="look", arguments="{}"),),
        outputs=(ToolOutput(call="c1", output="Page one."),),
    )
    (turn,) = replay(
        dialogue(), [ReplayTurn(turn_request=TurnRequest(text="q0"), reply="a0", at=NOON, rounds=(one, one))]
    )
    assert [message.role for message in turn.messages] == ["user", *["assistant", "tool"] * 2]
    assert len({call.id for message in turn.messages for call in message.calls}) == 2
