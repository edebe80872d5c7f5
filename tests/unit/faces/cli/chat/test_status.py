"""A call in a line: what nobody reports is left out, and an end that is not the answer's own is told."""

from decimal import Decimal

import pytest

from lamella.core.log.call import Call, Cause, Movement, Outcome, Timing, Verdict
from lamella.core.messages.delta import StopReason
from lamella.core.messages.usage import Usage
from lamella.faces.cli.chat import status
from lamella.faces.cli.chat.status import tell_call, tell_end

VERDICT = Verdict(outcome=Outcome.HIT, movement=Movement(cause=Cause.NONE))


def test_a_call_tells_tokens_money_and_time() -> None:
    usage = Usage(plain=200, read=1_000, output=50)
    call = Call(model="local", verdict=VERDICT, usage=usage, billed=Decimal("0.0100"), timing=Timing(total=1.26))
    assert tell_call(call) == "local · 1,200 tokens in · 1,000 of them cached · 50 out · $0.01 · 1.3 s"


def test_a_call_of_which_nothing_is_known_tells_its_model_alone() -> None:
    assert tell_call(Call(model=None, verdict=VERDICT, usage=Usage())) == "no model"


@pytest.mark.parametrize(
    "stop",
    [StopReason.LENGTH, StopReason.WINDOW, StopReason.CIRCLES, StopReason.REFUSED, StopReason.PAUSED],
)
def test_an_answer_that_did_not_end_by_itself_says_so(stop: StopReason) -> None:
    assert tell_end(Call(model="local", verdict=VERDICT, usage=Usage(), stop=stop)) != ""
    assert set(status._ENDS) <= set(StopReason)


def test_an_answer_that_ended_by_itself_needs_no_word() -> None:
    assert tell_end(Call(model="local", verdict=VERDICT, usage=Usage(), stop="end")) == ""
