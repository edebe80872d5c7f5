"""The cache lifetime of a system prompt that many conversations share."""

from datetime import UTC, datetime, timedelta

import pytest

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.layout.shared_prefix import (
    MAX_REMEMBERED_GAPS,
    PrefixUses,
    is_long_lifetime_worth_it,
    shared_prefix_key,
    with_shared_prefix,
)
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import LayoutPlan
from lamella.core.values import replace

START = datetime(2026, 11, 1, tzinfo=UTC)
PROFILE = CacheProfile(name="two lifetimes", read=0.1, write=1.25, lifetime=300, marks=4, longer=(3_600, 2.0))
SHORT, MIDDLE, LONG = 60.0, 1_200.0, 7_200.0


@pytest.mark.parametrize(
    ("gaps", "pays"),
    [
        ([], True),
        ([SHORT] * 20, True),
        ([MIDDLE], True),
        ([LONG], False),
        ([LONG, MIDDLE], True),
        ([LONG, LONG, MIDDLE], True),
        ([LONG] * 3 + [MIDDLE], False),
        # A gap as long as a lifetime still finds the entry.
        ([300.0] + [3_600.0] * 2 + [LONG] * 3, True),
        ([300.0] * 3 + [LONG], False),
    ],
)
def test_long_lifetime_pays_if_it_saves_more_writes_than_it_makes_dearer(gaps: list[float], *, pays: bool) -> None:
    assert is_long_lifetime_worth_it(gaps, PROFILE) is pays


def test_long_lifetime_never_pays_where_there_is_none() -> None:
    assert not is_long_lifetime_worth_it([MIDDLE] * 9, replace(PROFILE, longer=None))
    assert not is_long_lifetime_worth_it([MIDDLE] * 9, replace(PROFILE, lifetime=None))


def test_only_the_last_gaps_are_remembered_and_older_uses_change_nothing() -> None:
    uses = PrefixUses()
    for number in range(MAX_REMEMBERED_GAPS + 5):
        uses = uses.with_use(START + timedelta(seconds=number * number), has_long_lifetime=True)
    assert uses.gaps == tuple(float(2 * number - 1) for number in range(5, MAX_REMEMBERED_GAPS + 5))
    assert uses.with_use(START, has_long_lifetime=False) is uses


def test_prefix_is_cached_for_the_lifetime_that_was_asked_for() -> None:
    for has_long, lasts in ((False, 300), (True, 3_600)):
        uses = PrefixUses().with_use(START, has_long_lifetime=has_long)
        assert uses.is_cached(PROFILE, START + timedelta(seconds=lasts))
        assert not uses.is_cached(PROFILE, START + timedelta(seconds=lasts + 1))
        assert not uses.is_cached(PROFILE, None)
    assert not PrefixUses().is_cached(PROFILE, START)


def test_plan_asks_for_the_long_lifetime_only_where_the_system_message_has_a_breakpoint() -> None:
    at = START + timedelta(seconds=LONG)
    unused, used = PrefixUses(), PrefixUses(last=START, gaps=(MIDDLE,) * 3, has_long_lifetime=True)
    new = LayoutPlan(keep_messages=0, breakpoints=(0,))
    assert with_shared_prefix(LayoutPlan(), used, PROFILE, at=at) == LayoutPlan()
    assert with_shared_prefix(new, unused, PROFILE, at=at) == replace(new, long_lifetime_until=0)
    # The cache of the provider has what another conversation sent.
    soon = START + timedelta(seconds=MIDDLE)
    assert with_shared_prefix(new, used, PROFILE, at=soon) == replace(new, long_lifetime_until=0, cached_message=0)
    # The pause before this request counts as a gap, too.
    rarely = PrefixUses(last=START)
    assert with_shared_prefix(new, rarely, PROFILE, at=at) == new
    longer = replace(new, breakpoints=(0, 4), long_lifetime_until=4, cached_message=2)
    assert with_shared_prefix(longer, used, PROFILE, at=soon) == longer


def test_key_depends_on_model_tools_and_system_prompt_only() -> None:
    tool = ToolDefinition(name="search", description="Search.", parameters="{}")
    keys = {
        shared_prefix_key("a", (), ["You are terse."]),
        shared_prefix_key("b", (), ["You are terse."]),
        shared_prefix_key("a", (tool,), ["You are terse."]),
        shared_prefix_key("a", (), ["You are not."]),
    }
    assert len(keys) == 4
    assert shared_prefix_key("a", (tool,), ["x"]) == shared_prefix_key("a", [tool], ("x",))
