"""Limits: how far one turn may go, and what it has used of that. One that is reached ends the calls, not the turn."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from lamella.core.log.call import ANSWER_PURPOSE, Call
from lamella.core.messages.delta import ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.prompt.layers.rounds import split_rounds
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.sending.tools import SECONDS, STEPS
from lamella.ports import Clock

# How often calls are refused in words before the model is sent a request in which it cannot call.
PATIENCE = 2
_REFUSED = "Not run: "


class TurnLimits(Struct, frozen=True, kw_only=True):
    """How far one turn may go: rounds of tools, seconds of a call and of all of it, tokens and dollars of its requests.

    None is no limit. They are looked at between two rounds: what is under way is not cut off.
    """

    steps: int = STEPS
    call_seconds: float = SECONDS
    turn_seconds: float | None = None
    turn_tokens: int | None = None
    max_cost: Decimal | None = None


class TurnMeter:
    """What a turn has used of its limits since it ``started``, or was taken up again.

    Where it ``counts``, it is told of the requests that were answered.
    """

    def __init__(self, limits: TurnLimits, *, clock: Clock, started: datetime) -> None:
        self._limits = limits
        self.counts = limits.turn_tokens is not None or limits.max_cost is not None
        self._clock = clock
        self._started = started
        self._tokens = 0
        self._cost = Decimal(0)

    def weigh(self, made: Sequence[Call], *, answers: int) -> None:
        """What was made for a question, as the ledger has it: so many answers of this turn, and all on the way to them.

        Answers that were left behind stand before those. Of what has no price nobody knows what it cost.
        """
        self._tokens, self._cost = 0, Decimal(0)
        for call in reversed(made):
            answers -= call.purpose == ANSWER_PURPOSE
            if answers < 0:
                break
            self._tokens += (call.usage.prompt or 0) + (call.usage.output or 0)
            self._cost += call.billed or 0

    def find_reached(self, rounds: int) -> str:
        """The limit that a turn of so many rounds has reached, in words; nothing while it has reached none."""
        limits = self._limits
        seconds = (self._clock.now() - self._started).total_seconds()
        if rounds >= limits.steps:
            return f"a turn has at most {limits.steps} rounds of tools"
        if limits.turn_seconds is not None and seconds >= limits.turn_seconds:
            return f"a turn calls tools for at most {limits.turn_seconds:g} seconds"
        if limits.turn_tokens is not None and self._tokens >= limits.turn_tokens:
            return f"a turn has at most {limits.turn_tokens:,} tokens, and {self._tokens:,} were used"
        if limits.max_cost is not None and self._cost >= limits.max_cost:
            return f"a turn costs at most ${limits.max_cost:f}, and ${self._cost:f} were spent"
        return ""


def refuse_calls(calls: Sequence[ToolCall], why: str) -> tuple[ToolOutput, ...]:
    """What calls are told that are not run, because the model is to answer now."""
    told = f"{_REFUSED}{why}. Answer with what you have."
    return tuple(ToolOutput(call=call.id, output=told, failed=True) for call in calls)


def count_rounds(turn: TurnView) -> tuple[int, int]:
    """How many rounds of tools a turn has had, and how many of them, the last ones, were refused."""
    prompt = turn.envelope.prompt
    rounds = split_rounds((*prompt.unsent, *prompt.rounds))
    refused = 0
    for _, results in reversed(rounds):
        if not all(result.message.failed and result.text.startswith(_REFUSED) for result in results):
            break
        refused += 1
    return len(rounds), refused
