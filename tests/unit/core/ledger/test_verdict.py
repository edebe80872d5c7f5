"""Verdicts: ours where our bytes moved, the provider's where they did not, and unknown where nobody says."""

from typing import NamedTuple

import pytest

from lamella.core.ledger.cache import CacheProfile
from lamella.core.ledger.verdict import judge, judge_aside, reported_use
from lamella.core.log.call import CacheUse, Cause, Movement, Outcome, Verdict
from lamella.core.messages.usage import Usage

STILL = Movement(cause=Cause.NONE)
CLAUDE = CacheProfile(name="claude", minimum=1_024, lifetime=300, bills_writes=True)


class Expected(NamedTuple):
    """What a call was expected to read, and what is known of it beside."""

    read: int | None
    movement: Movement = STILL
    profile: CacheProfile = CLAUDE
    pause: float | None = 10
    triggered: bool = True


def judged(expected: Expected, usage: Usage) -> Verdict:
    return judge(
        expected.movement,
        usage,
        use=None if expected.read is None else CacheUse(read=expected.read, write=100, uncached=0),
        profile=expected.profile,
        pause=expected.pause,
        triggered=expected.triggered,
    )


def outcome(expected: Expected, read: int | None) -> Outcome:
    return judged(expected, Usage(plain=100, read=read, write=0, output=1)).outcome


@pytest.mark.parametrize(
    ("expected", "read", "found"),
    [
        (Expected(0, movement=Movement(cause=Cause.FIRST_TURN)), 0, Outcome.FIRST),
        (Expected(5_000), 5_000, Outcome.HIT),
        (Expected(5_000), 4_900, Outcome.HIT),
        (Expected(5_000), 0, Outcome.EVICTED),
        (Expected(5_000), 1_000, Outcome.EVICTED),
        (Expected(5_000, pause=301), 0, Outcome.EXPIRED),
        (Expected(0, pause=301), 0, Outcome.EXPIRED),
        (Expected(0), 0, Outcome.TOO_SHORT),
        (Expected(0, profile=CacheProfile(name="local")), 0, Outcome.COLD),
        (Expected(0), 700, Outcome.HIT),
        (Expected(None), 700, Outcome.HIT),
        (Expected(None), 0, Outcome.EVICTED),
        (Expected(5_000), None, Outcome.UNKNOWN),
        # No byte moved, and something else that this cache depends on did.
        (Expected(0, movement=Movement(cause=Cause.NONE, segment="effort")), 0, Outcome.COLD),
        (Expected(500, movement=Movement(cause=Cause.NONE, segment="effort")), 0, Outcome.COLD),
        (Expected(500, movement=Movement(cause=Cause.NONE, segment="effort")), 500, Outcome.HIT),
        (Expected(5_000, pause=None), 0, Outcome.EVICTED),
        # Less than a step is no shortfall, and something was expected.
        (Expected(128, profile=CacheProfile(name="steps", granularity=128)), 0, Outcome.HIT),
    ],
)
def test_what_the_provider_reports_is_held_against_what_was_expected(
    expected: Expected, read: int | None, found: Outcome
) -> None:
    assert outcome(expected, read) is found


def test_a_prefix_that_we_moved_is_our_doing_whatever_was_read_and_says_which_artifact_moved_it() -> None:
    moved = Movement(cause=Cause.ARTIFACT_UPDATED, segment="a.md")
    verdict = judged(Expected(10, movement=moved), Usage(plain=1, read=5_000))
    assert verdict.outcome is Outcome.MOVED
    assert verdict.ours
    assert str(verdict) == "we moved the prefix: artifact_updated(a.md)"


def test_a_prefix_that_moved_without_a_recorded_trigger_is_a_bug_and_says_so() -> None:
    moved = Movement(cause=Cause.HISTORY_EDITED)
    verdict = judged(Expected(10, movement=moved, triggered=False), Usage(plain=1, read=0))
    assert verdict.outcome is Outcome.UNEXPLAINED
    assert "bug" in str(verdict)


@pytest.mark.parametrize("found", list(Outcome))
def test_every_outcome_has_its_words(found: Outcome) -> None:
    assert str(Verdict(outcome=found, movement=STILL))


@pytest.mark.parametrize(
    ("usage", "use"),
    [
        (Usage(read=5, write=5), None),
        (Usage(plain=7), CacheUse(read=0, write=0, uncached=7)),
        (Usage(plain=0, read=1, write=2, write_long=3), CacheUse(read=1, write=5, uncached=0, lasting=3)),
    ],
)
def test_what_a_provider_reported_is_told_by_price_where_it_says_enough(usage: Usage, use: CacheUse | None) -> None:
    assert reported_use(usage) == use
    assert use is None or use.total == use.read + use.write + use.uncached


@pytest.mark.parametrize(
    ("expected", "read", "found"),
    [
        (None, 0, Outcome.COLD),
        (0, 0, Outcome.COLD),
        (None, 700, Outcome.HIT),
        (5_000, 5_000, Outcome.HIT),
        (5_000, 0, Outcome.EVICTED),
        (None, None, Outcome.UNKNOWN),
    ],
)
def test_a_call_on_the_way_to_an_answer_moves_nothing_and_is_cold_where_nobody_expected_more(
    expected: int | None, read: int | None, found: Outcome
) -> None:
    use = None if expected is None else CacheUse(read=expected, write=0, uncached=0)
    verdict = judge_aside(Usage(plain=100, read=read, write=0, output=1), use=use, profile=CLAUDE)
    assert (verdict.outcome, verdict.movement) == (found, STILL)


def test_less_than_a_step_of_the_cache_is_no_shortfall_of_such_a_call() -> None:
    steps = CacheProfile(name="steps", granularity=128)
    use = CacheUse(read=128, write=0, uncached=0)
    assert judge_aside(Usage(plain=100, read=0, output=1), use=use, profile=steps).outcome is Outcome.HIT
