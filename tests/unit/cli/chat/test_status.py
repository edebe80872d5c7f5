"""A model call on one line: unknown values are left out, and an unusual end is described."""

from decimal import Decimal

import pytest

from lamella.cli.chat import status
from lamella.cli.chat.status import describe_stop_reason, format_model_call
from lamella.core.log.call import CacheOutcome, CacheVerdict, CallTiming, ModelCall, PrefixChange, PrefixChangeCause
from lamella.core.messages import StopReason, Usage

VERDICT = CacheVerdict(outcome=CacheOutcome.HIT, prefix_change=PrefixChange(cause=PrefixChangeCause.NONE))


def test_model_call_is_formatted_with_tokens_cost_and_time() -> None:
    usage = Usage(plain=200, read=1_000, output=50)
    call = ModelCall(
        model="local", verdict=VERDICT, usage=usage, billed=Decimal("0.0100"), timing=CallTiming(total=1.26)
    )
    assert format_model_call(call) == "local · 1,200 tokens in · 1,000 of them cached · 50 out · $0.01 · 1.3 s"


def test_call_without_usage_shows_model_only() -> None:
    assert format_model_call(ModelCall(model=None, verdict=VERDICT, usage=Usage())) == "no model"


@pytest.mark.parametrize(
    ("stop", "text"),
    [
        (StopReason.LENGTH, "The answer was cut off at --max-tokens."),
        (
            StopReason.CONTEXT_WINDOW,
            "The answer was cut off: the context window is full. Use /compact or `lamella compact`.",
        ),
        (
            StopReason.LOOP_DETECTED,
            "The answer was cut off: it repeated itself. Rephrase the question, or use a larger model.",
        ),
        (StopReason.REFUSED, "The model declined to answer or to continue."),
        (StopReason.PAUSED, "The model paused; ask it to continue."),
    ],
)
def test_stopped_answer_describes_reason(stop: StopReason, text: str) -> None:
    assert describe_stop_reason(ModelCall(model="local", verdict=VERDICT, usage=Usage(), stop=stop)) == text
    assert set(status._STOP_REASON_MESSAGES) <= set(StopReason)


def test_normal_stop_needs_no_description() -> None:
    assert describe_stop_reason(ModelCall(model="local", verdict=VERDICT, usage=Usage(), stop="end")) == ""
