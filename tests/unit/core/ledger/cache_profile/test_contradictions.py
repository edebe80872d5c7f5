"""Contradictions between provider reports and profiles: reported if they cannot be chance."""

import pytest

from lamella.core.ledger.cache_profile import (
    CacheObservation,
    CacheProfile,
    ProfileContradiction,
    find_profile_contradictions,
)
from lamella.core.values import replace

PROFILE = CacheProfile(name="one", minimum=1_024, lifetime=300)


def see(*seen: tuple[int, int, float | None]) -> list[CacheObservation]:
    """Requests after so many tokens, with so many of them served, after a pause."""
    return [
        CacheObservation(
            turn=number, prompt_tokens=before + 100, cached_tokens=read, previous_prompt_tokens=before, pause=pause
        )
        for number, (before, read, pause) in enumerate(seen, start=2)
    ]


def facts(found: list[ProfileContradiction]) -> dict[str, object]:
    return {name: value for one in found for name, value in one.facts}


FLOOR = see((700, 690, 20.0))
HIGH = see((1_500, 0, 20.0), (1_700, 0, 20.0), (2_100, 2_100, 20.0))
LONG = see((3_000, 2_990, 4_000.0))
SHORT = see((3_000, 3_000, 50.0), (3_200, 0, 120.0), (3_300, 0, 90.0))
STEPS = see((2_200, 2_048, 9.0), (2_600, 2_048, 9.0), (3_000, 2_048, 9.0))
FIXED = see((2_200, 1_500, 9.0), (2_600, 1_500, 9.0), (5_000, 1_500, 9.0))


@pytest.mark.parametrize(
    ("seen", "fitting"),
    [
        (FLOOR, {"minimum": 690}),
        (HIGH, {"minimum": 2_100}),
        (LONG, {"lifetime": 4_000}),
        (SHORT, {"lifetime": 50}),
        (STEPS, {"granularity": 2_048}),
        (FIXED, {"implicit": False, "breakpoints": 0}),
        # One token is something.
        (see((700, 1, 20.0)), {"minimum": 1}),
        (see((2_200, 1, 9.0), (2_600, 1, 9.0), (3_000, 1, 9.0)), {"implicit": False, "breakpoints": 0}),
    ],
)
def test_each_contradiction_names_the_fact_that_fits(seen: list[CacheObservation], fitting: dict[str, object]) -> None:
    found = find_profile_contradictions(seen, PROFILE)
    assert facts(found) == fitting
    assert all(one.turns and one.description for one in found)


@pytest.mark.parametrize(
    ("seen", "now"),
    [
        (FLOOR, replace(PROFILE, minimum=690)),
        (HIGH, replace(PROFILE, minimum=2_100)),
        (LONG, replace(PROFILE, lifetime=4_000)),
        (SHORT, replace(PROFILE, lifetime=50)),
        (STEPS, replace(PROFILE, granularity=2_048)),
        (FIXED, replace(PROFILE, read=1.0, write=1.0)),
    ],
)
def test_known_fact_gives_no_contradiction(seen: list[CacheObservation], now: CacheProfile) -> None:
    assert find_profile_contradictions(seen, now) == []


@pytest.mark.parametrize(
    "seen",
    [
        [],
        # One miss may be chance, and so may two among hits.
        see((3_000, 0, 20.0)),
        see((3_000, 3_000, 20.0), (3_200, 0, 20.0), (3_400, 3_400, 20.0), (3_600, 0, 10.0)),
        # What nobody timed cannot have expired too early, and what expired in time was not dropped.
        see((3_000, 3_000, 50.0), (3_200, 0, None), (3_300, 0, 400.0)),
        # All is served, as far as counts can tell.
        see((3_000, 2_990, 20.0), (3_200, 3_150, 20.0), (3_400, 3_400, 20.0)),
        see((2_000, 1_950, 9.0), (2_020, 1_950, 9.0), (2_040, 1_950, 9.0)),
        # Something else keeps the beginning warm.
        see((3_000, 1_100, 4_000.0)),
        see((2_200, 1_500, 9.0), (2_600, 1_500, 9.0)),
    ],
)
def test_possible_coincidence_gives_no_contradiction(seen: list[CacheObservation]) -> None:
    assert find_profile_contradictions(seen, PROFILE) == []


def test_available_longer_lifetime_gives_no_contradiction() -> None:
    lasting = replace(PROFILE, longer=(3_600.0, 2.0))
    assert find_profile_contradictions(see((3_000, 2_990, 1_800.0)), lasting) == []
    assert facts(find_profile_contradictions(LONG, lasting)) == {"lifetime": 4_000}


def test_prefix_shorter_than_step_gives_no_contradiction() -> None:
    stepped = replace(PROFILE, minimum=1_200, granularity=1_000)
    assert find_profile_contradictions(see((1_500, 0, 20.0), (1_600, 0, 20.0), (3_000, 3_000, 20.0)), stepped) == []
    assert facts(
        find_profile_contradictions(see((2_000, 0, 20.0), (2_100, 0, 20.0), (3_000, 3_000, 20.0)), stepped)
    ) == {"minimum": 3_000}


def test_undocumented_lifetime_gives_no_contradiction() -> None:
    assert find_profile_contradictions([*LONG, *SHORT], replace(PROFILE, lifetime=None)) == []
