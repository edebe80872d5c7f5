"""The last turn of a branch: who answered it, how long after the one before it was asked, and which model holds."""

from collections.abc import Sequence

from lamella.core.log.branch import read_calls, read_time
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.nodes import Told

_PAIR = 2


def find_answer(told: Sequence[Told]) -> str | None:
    """The provider's name for the last answer there is: of the last turn, or of the one before while that waits."""
    for turn in reversed(told[-2:]):
        calls = read_calls(turn)
        if calls or turn.reply is not None:
            return calls[-1].id if calls else None
    return None


def find_pause(told: Sequence[Told]) -> float | None:
    """How long before the turn that waits the one before it was asked."""
    if len(told) < _PAIR or told[-1].reply is not None:
        return None
    earlier, later = read_time(told[-2].message), read_time(told[-1].message)
    return (later - earlier).total_seconds() if earlier and later else None


def find_model(told: Sequence[Told]) -> str | None:
    """The model that holds, from the events alone: to know it, no content has to be read."""
    events = (turn.message.event for turn in reversed(told))
    return next((event.model for event in events if isinstance(event, MessageEvent) and event.model), None)
