"""The last turn of a branch: when it was asked, by whom it was answered, what was sent for it and what it leaves."""

from collections.abc import Sequence

from lamella.core.log.branch import read_calls, read_time
from lamella.core.log.events.message import TurnSetup, read_lasting
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told
from lamella.core.values import replace
from lamella.engine.dialogue.ask import Ask, repeat_system
from lamella.engine.dialogue.world import SentTurn

_PAIR = 2


def find_sent(told: Sequence[Told], log: Log) -> SentTurn:
    """What is known of the last turn of a branch, and of the request that was sent last, on whatever branch."""
    asked = log.nodes.get(log.last_asked)
    question = None if asked is None else asked.question
    return SentTurn(
        asked_at=read_time(told[-1].message) if told else None,
        answered_by=_find_answer(told),
        pause=_find_pause(told),
        imprint=None if question is None else question.imprint,
    )


def ask_under(left: TurnSetup, asked: Ask) -> Ask:
    """What is asked, under what a question had set that is no part of the branch any more."""
    system, tools, _ = read_lasting(left)
    return replace(
        asked,
        system={**repeat_system(system), **asked.system} if system else asked.system,
        tools=tools if asked.tools is None else asked.tools,
        pin=(*(left.pinned or ()), *asked.pin),
    )


def _find_answer(told: Sequence[Told]) -> str | None:
    """The provider's name for the last answer there is: of the last turn, or of the one before while that waits."""
    for turn in reversed(told[-2:]):
        calls = read_calls(turn)
        if calls or turn.reply is not None:
            return calls[-1].id if calls else None
    return None


def _find_pause(told: Sequence[Told]) -> float | None:
    """How long before the turn that waits the one before it was asked."""
    if len(told) < _PAIR or told[-1].reply is not None:
        return None
    earlier, later = read_time(told[-2].message), read_time(told[-1].message)
    return (later - earlier).total_seconds() if earlier and later else None
