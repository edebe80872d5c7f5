"""Breakpoints go where losing the prefix would cost most, within what a provider allows."""

import pytest

from lamella.errors import InvalidOperationError
from lamella.providers.wire import BreakpointLimits, RequestBlock, SectionEnds, plan_breakpoints

RULES = BreakpointLimits(max_breakpoints=4, lookback=20, min_tokens=100)


def _blocks(number: int, weight: int = 1_000) -> list[RequestBlock]:
    return [RequestBlock(size=weight) for _ in range(number)]


def test_each_section_ends_with_breakpoint() -> None:
    ends = SectionEnds(tools=0, fixed=1, library=3, tail=9, previous_tail=7)
    assert plan_breakpoints(_blocks(10), ends, limits=RULES) == (0, 1, 3, 9)


@pytest.mark.parametrize(("previous", "marks"), [(20, (1, 3, 20, 40)), (7, (1, 3, 7, 40))])
def test_unreachable_previous_end_gets_breakpoint_before_tools(previous: int, marks: tuple[int, ...]) -> None:
    ends = SectionEnds(tools=0, fixed=1, library=3, tail=40, previous_tail=previous)
    assert plan_breakpoints(_blocks(41), ends, limits=RULES) == marks


@pytest.mark.parametrize(("previous", "kept"), [(21, "within"), (20, "beyond")])
def test_lookback_includes_breakpoint_itself(previous: int, kept: str) -> None:
    marks = plan_breakpoints(_blocks(41), SectionEnds(tail=40, previous_tail=previous), limits=RULES)
    assert marks == ((40,) if kept == "within" else (20, 40))


def test_unlimited_lookback_needs_no_breakpoint_at_previous_end() -> None:
    rules = BreakpointLimits(max_breakpoints=4, lookback=None, min_tokens=0)
    assert plan_breakpoints(_blocks(100), SectionEnds(tail=99, previous_tail=1), limits=rules) == (99,)


def test_prefixes_below_minimum_get_no_breakpoint() -> None:
    ends = SectionEnds(tools=0, fixed=1, tail=9)
    assert plan_breakpoints(_blocks(10, weight=20), ends, limits=RULES) == (9,)


def test_breakpoint_moves_to_previous_block_if_not_allowed() -> None:
    blocks = [RequestBlock(size=1_000), RequestBlock(size=1_000, can_have_breakpoint=False)]
    assert plan_breakpoints(blocks, SectionEnds(tail=1), limits=RULES) == (0,)
    assert (
        plan_breakpoints([RequestBlock(size=1_000, can_have_breakpoint=False)], SectionEnds(tail=0), limits=RULES) == ()
    )


def test_requested_breakpoints_come_first_and_count() -> None:
    ends = SectionEnds(tools=0, fixed=1, library=3, tail=9)
    assert plan_breakpoints(_blocks(10), ends, limits=RULES, requested=(5, 6, 7)) == (5, 6, 7, 9)
    assert plan_breakpoints(_blocks(10), ends, limits=RULES, requested=(9, 9)) == (0, 1, 3, 9)
    with pytest.raises(InvalidOperationError, match="5 breakpoints"):
        plan_breakpoints(_blocks(10), ends, limits=RULES, requested=(1, 2, 3, 4, 5))
