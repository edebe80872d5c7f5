"""The verdict on one model call: whether the cache served what it held, and whose doing it was if not."""

from dataclasses import dataclass

from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.call import CacheUse, Cause, Movement, Outcome, Verdict
from lamella.core.messages.usage import Usage

# Counts of models whose vocabulary is not public are estimates; a smaller shortfall than this says nothing.
_SLACK = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What was to be expected of a call. ``pause`` is the time since the request before, in seconds.

    ``triggered`` says that something is on record that may move the prefix.
    """

    movement: Movement
    use: CacheUse | None
    profile: CacheProfile
    pause: float | None
    triggered: bool = True


def judge(expected: Expected, usage: Usage) -> Verdict:
    """Ours where our bytes moved; otherwise the provider's, measured by what it reports."""
    return Verdict(outcome=_outcome(expected, usage), movement=expected.movement)


def _outcome(expected: Expected, usage: Usage) -> Outcome:
    cause = expected.movement.cause
    if cause is Cause.FIRST_TURN:
        return Outcome.FIRST
    if cause is not Cause.NONE:
        return Outcome.MOVED if expected.triggered else Outcome.UNEXPLAINED
    if usage.read is None:
        return Outcome.UNKNOWN
    lifetime = expected.profile.lifetime
    expired = lifetime is not None and expected.pause is not None and expected.pause > lifetime
    wanted = expected.use.read if expected.use is not None else None
    if wanted is not None and usage.read >= wanted * (1 - _SLACK) - expected.profile.granularity:
        return Outcome.EXPIRED if expired and usage.read == 0 else _served(wanted, usage.read, expected.profile)
    if wanted is None and usage.read:
        return Outcome.HIT
    return Outcome.EXPIRED if expired else Outcome.EVICTED


def _served(wanted: int, read: int, profile: CacheProfile) -> Outcome:
    if wanted or read:
        return Outcome.HIT
    return Outcome.TOO_SHORT if profile.minimum else Outcome.COLD
