"""The verdict on one model call: whether the cache served what it held, and whose doing it was if not."""

from lamella.core.ledger.cache import CacheProfile
from lamella.core.log.call import CacheUse, Cause, Movement, Outcome, Verdict
from lamella.core.messages.usage import Usage

# Counts of models whose vocabulary is not public are estimates; a smaller shortfall than this says nothing.
_SLACK = 0.05


def judge(
    movement: Movement,
    usage: Usage,
    *,
    use: CacheUse | None,
    profile: CacheProfile,
    pause: float | None,
    triggered: bool = True,
) -> Verdict:
    """Ours where our bytes moved; otherwise the provider's, measured by what it reports.

    ``use`` is what was expected of the cache, ``pause`` the time since the request before, in seconds. ``triggered``
    says that something is on record that may move the prefix.
    """
    if movement.cause is Cause.FIRST_TURN:
        outcome = Outcome.FIRST
    elif movement.cause is not Cause.NONE:
        outcome = Outcome.MOVED if triggered else Outcome.UNEXPLAINED
    elif usage.read is None:
        outcome = Outcome.UNKNOWN
    else:
        outcome = _measure(usage.read, use, profile=profile, pause=pause)
        # No byte moved, and something else did that this cache depends on: less of it is no fault of the provider's.
        cooled = movement.segment is not None and outcome in (Outcome.TOO_SHORT, Outcome.EVICTED)
        outcome = Outcome.COLD if cooled else outcome
    return Verdict(outcome=outcome, movement=movement)


def judge_aside(usage: Usage, *, use: CacheUse | None, profile: CacheProfile) -> Verdict:
    """The same of a call that is no request of the conversation: it moves nothing, and most caches hold none of it."""
    still = Movement(cause=Cause.NONE)
    if usage.read is None or usage.read or (use is not None and use.read):
        return judge(still, usage, use=use, profile=profile, pause=None)
    return Verdict(outcome=Outcome.COLD, movement=still)


def _measure(read: int, use: CacheUse | None, *, profile: CacheProfile, pause: float | None) -> Outcome:
    """What the cache did with a prefix that did not move."""
    expired = profile.lifetime is not None and pause is not None and pause > profile.lifetime
    if use is not None and read >= use.read * (1 - _SLACK) - profile.granularity:
        return Outcome.EXPIRED if expired and read == 0 else _served(use.read, read, profile)
    if use is None and read:
        return Outcome.HIT
    return Outcome.EXPIRED if expired else Outcome.EVICTED


def _served(wanted: int, read: int, profile: CacheProfile) -> Outcome:
    if wanted or read:
        return Outcome.HIT
    return Outcome.TOO_SHORT if profile.minimum else Outcome.COLD


def reported_use(usage: Usage) -> CacheUse | None:
    """What a provider reported, by price class; none where it says too little to be billed."""
    if usage.plain is None:
        return None
    write = (usage.write or 0) + (usage.write_long or 0)
    return CacheUse(read=usage.read or 0, write=write, uncached=usage.plain, lasting=usage.write_long or 0)
