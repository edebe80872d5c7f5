"""The last turn of a branch: when it was asked, by whom it was answered, and what was sent for it."""

from collections.abc import Sequence

from lamella.core.log.branch import read_calls, read_time
from lamella.core.log.log import Log
from lamella.core.log.nodes import Told
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
