"""The part of its limits that a turn has used."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from lamella.conversation.turn_runner import TurnLimits, TurnUsage, rejected_call_outputs
from lamella.core.log.call import CacheOutcome, CacheVerdict, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.values import replace
from lamella.providers import ToolCall, Usage
from lamella.testing import SettableClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
MADE = ModelCall(
    model="m",
    verdict=CacheVerdict(outcome=CacheOutcome.FIRST, prefix_change=PrefixChange(cause=PrefixChangeCause.FIRST_TURN)),
    usage=Usage(plain=70, read=20, write=0, output=10),
    billed=Decimal("0.02"),
)


@pytest.mark.parametrize(
    ("limits", "calls", "seconds", "reached"),
    [
        (TurnLimits(steps=3), 9, 9, ""),
        (TurnLimits(steps=2), 0, 0, "a turn has at most 2 tool rounds"),
        (TurnLimits(turn_tokens=201), 2, 0, ""),
        (TurnLimits(turn_tokens=200), 2, 0, "a turn has at most 200 tokens, and 200 were used"),
        (TurnLimits(max_cost=Decimal("0.05")), 2, 0, ""),
        (TurnLimits(max_cost=Decimal("0.04")), 2, 0, "a turn costs at most $0.04, and $0.04 were spent"),
        (TurnLimits(turn_seconds=30), 0, 29, ""),
        (TurnLimits(turn_seconds=30), 0, 30, "a turn calls tools for at most 30 seconds"),
    ],
)
def test_limit_is_reached_when_used_up(limits: TurnLimits, calls: int, seconds: int, reached: str) -> None:
    clock = SettableClock(START)
    meter = TurnUsage(limits, clock=clock, started=START)
    meter.recompute_usage_from_calls([MADE] * calls, answer_count=calls)
    clock.set(START + timedelta(seconds=seconds))
    assert meter.limit_reached_message(2) == reached


def test_auxiliary_calls_count_and_abandoned_answers_do_not() -> None:
    clock = SettableClock(START)
    meter = TurnUsage(TurnLimits(turn_tokens=300), clock=clock, started=START)
    plan, summary = (replace(MADE, purpose=purpose) for purpose in ("plan", "summary"))
    meter.recompute_usage_from_calls([plan, MADE, plan, MADE], answer_count=1)
    assert meter.limit_reached_message(0) == ""
    meter.recompute_usage_from_calls([plan, MADE, plan, summary, MADE], answer_count=1)
    assert meter.limit_reached_message(0) == "a turn has at most 300 tokens, and 300 were used"


def test_usage_is_counted_only_if_tokens_or_cost_are_limited() -> None:
    def make(limits: TurnLimits) -> TurnUsage:
        return TurnUsage(limits, clock=SettableClock(START), started=START)

    assert not make(TurnLimits(steps=1, turn_seconds=1)).has_usage_limits
    assert make(TurnLimits(turn_tokens=1)).has_usage_limits
    assert make(TurnLimits(max_cost=Decimal(1))).has_usage_limits


def test_every_refused_call_gets_reason() -> None:
    calls = [ToolCall(id=name, name="look", arguments="{}") for name in ("a", "b")]
    refused = rejected_call_outputs(calls, "it is enough")
    assert [output.call for output in refused] == ["a", "b"]
    assert {output.output for output in refused} == {"Not run: it is enough. Answer with what you have."}
