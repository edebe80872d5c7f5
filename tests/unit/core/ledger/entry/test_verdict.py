"""Verdicts: ours if our bytes moved, the provider's if they did not, and unknown without a report."""

from typing import NamedTuple

import pytest

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.ledger.entry import judge_answer_call, judge_auxiliary_call, reported_cache_usage
from lamella.core.log.call import CacheOutcome, CacheUsage, CacheVerdict, PrefixChange, PrefixChangeCause
from lamella.core.messages import Usage

STILL = PrefixChange(cause=PrefixChangeCause.NONE)
CLAUDE = CacheProfile(name="claude", minimum=1_024, lifetime=300, bills_writes=True)


class Expected(NamedTuple):
    """What a call was expected to read, and what is known of it beside."""

    read: int | None
    movement: PrefixChange = STILL
    profile: CacheProfile = CLAUDE
    pause: float | None = 10
    triggered: bool = True


def judged(expected: Expected, usage: Usage) -> CacheVerdict:
    return judge_answer_call(
        expected.movement,
        usage,
        predicted=None if expected.read is None else CacheUsage(read=expected.read, write=100, uncached=0),
        profile=expected.profile,
        pause=expected.pause,
        triggered=expected.triggered,
    )


def outcome(expected: Expected, read: int | None) -> CacheOutcome:
    return judged(expected, Usage(plain=100, read=read, write=0, output=1)).outcome


@pytest.mark.parametrize(
    ("expected", "read", "found"),
    [
        (Expected(0, movement=PrefixChange(cause=PrefixChangeCause.FIRST_TURN)), 0, CacheOutcome.FIRST),
        (Expected(5_000), 5_000, CacheOutcome.HIT),
        (Expected(5_000), 4_900, CacheOutcome.HIT),
        (Expected(5_000), 0, CacheOutcome.EVICTED),
        (Expected(5_000), 1_000, CacheOutcome.EVICTED),
        (Expected(5_000, pause=301), 0, CacheOutcome.EXPIRED),
        (Expected(0, pause=301), 0, CacheOutcome.EXPIRED),
        (Expected(0), 0, CacheOutcome.TOO_SHORT),
        (Expected(0, profile=CacheProfile(name="local")), 0, CacheOutcome.EXPECTED_MISS),
        (Expected(0), 700, CacheOutcome.HIT),
        (Expected(None), 700, CacheOutcome.HIT),
        (Expected(None), 0, CacheOutcome.EVICTED),
        (Expected(5_000), None, CacheOutcome.UNKNOWN),
        # No byte moved, and something else that this cache depends on did.
        (
            Expected(0, movement=PrefixChange(cause=PrefixChangeCause.NONE, segment="effort")),
            0,
            CacheOutcome.EXPECTED_MISS,
        ),
        (
            Expected(500, movement=PrefixChange(cause=PrefixChangeCause.NONE, segment="effort")),
            0,
            CacheOutcome.EXPECTED_MISS,
        ),
        (Expected(500, movement=PrefixChange(cause=PrefixChangeCause.NONE, segment="effort")), 500, CacheOutcome.HIT),
        (Expected(5_000, pause=None), 0, CacheOutcome.EVICTED),
        # Less than a step is no shortfall, and something was expected.
        (Expected(128, profile=CacheProfile(name="steps", granularity=128)), 0, CacheOutcome.HIT),
    ],
)
def test_reported_read_is_compared_with_expected(expected: Expected, read: int | None, found: CacheOutcome) -> None:
    assert outcome(expected, read) is found


def test_own_prefix_change_names_its_artifact() -> None:
    moved = PrefixChange(cause=PrefixChangeCause.ARTIFACT_UPDATED, segment="a.md")
    verdict = judged(Expected(10, movement=moved), Usage(plain=1, read=5_000))
    assert verdict.outcome is CacheOutcome.PREFIX_CHANGED
    assert verdict.is_caused_by_lamella
    assert str(verdict) == "the prefix changed: artifact_updated(a.md)"


def test_prefix_change_without_trigger_is_reported_as_bug() -> None:
    moved = PrefixChange(cause=PrefixChangeCause.HISTORY_EDITED)
    verdict = judged(Expected(10, movement=moved, triggered=False), Usage(plain=1, read=0))
    assert verdict.outcome is CacheOutcome.UNEXPLAINED
    assert "bug" in str(verdict)


@pytest.mark.parametrize("found", list(CacheOutcome))
def test_every_outcome_has_description(found: CacheOutcome) -> None:
    assert str(CacheVerdict(outcome=found, prefix_change=STILL))


@pytest.mark.parametrize(
    ("usage", "use"),
    [
        (Usage(read=5, write=5), None),
        (Usage(plain=7), CacheUsage(read=0, write=0, uncached=7)),
        (Usage(plain=0, read=1, write=2, write_long=3), CacheUsage(read=1, write=5, uncached=0, long_lifetime=3)),
    ],
)
def test_reported_usage_is_split_by_price_if_complete(usage: Usage, use: CacheUsage | None) -> None:
    assert reported_cache_usage(usage) == use
    assert use is None or use.total == use.read + use.write + use.uncached


@pytest.mark.parametrize(
    ("expected", "read", "found"),
    [
        (None, 0, CacheOutcome.EXPECTED_MISS),
        (0, 0, CacheOutcome.EXPECTED_MISS),
        (None, 700, CacheOutcome.HIT),
        (5_000, 5_000, CacheOutcome.HIT),
        (5_000, 0, CacheOutcome.EVICTED),
        (None, None, CacheOutcome.UNKNOWN),
    ],
)
def test_auxiliary_call_moves_nothing_and_misses_only_if_expected(
    expected: int | None, read: int | None, found: CacheOutcome
) -> None:
    usage = None if expected is None else CacheUsage(read=expected, write=0, uncached=0)
    verdict = judge_auxiliary_call(Usage(plain=100, read=read, write=0, output=1), predicted=usage, profile=CLAUDE)
    assert (verdict.outcome, verdict.prefix_change) == (found, STILL)


def test_shortfall_below_one_step_is_ignored() -> None:
    steps = CacheProfile(name="steps", granularity=128)
    usage = CacheUsage(read=128, write=0, uncached=0)
    assert (
        judge_auxiliary_call(Usage(plain=100, read=0, output=1), predicted=usage, profile=steps).outcome
        is CacheOutcome.HIT
    )
