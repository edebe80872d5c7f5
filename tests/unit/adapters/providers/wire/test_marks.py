"""Breakpoints go where losing the prefix would cost most, within what a provider allows."""

import pytest

from lamella.adapters.providers.wire.marks import Block, Ends, MarkRules, plan_marks
from lamella.errors import CallError

RULES = MarkRules(limit=4, lookback=20, minimum=100)


def _blocks(number: int, weight: int = 1_000) -> list[Block]:
    return [Block(weight=weight) for _ in range(number)]


def test_every_stretch_ends_in_a_mark() -> None:
    ends = Ends(tools=0, fixed=1, library=3, tail=9, previous=7)
    assert plan_marks(_blocks(10), ends, rules=RULES) == (0, 1, 3, 9)


@pytest.mark.parametrize(("previous", "marks"), [(20, (1, 3, 20, 40)), (7, (1, 3, 7, 40))])
def test_a_previous_tail_out_of_reach_is_marked_before_the_tools_are(previous: int, marks: tuple[int, ...]) -> None:
    ends = Ends(tools=0, fixed=1, library=3, tail=40, previous=previous)
    assert plan_marks(_blocks(41), ends, rules=RULES) == marks


@pytest.mark.parametrize(("previous", "kept"), [(21, "within"), (20, "beyond")])
def test_the_mark_itself_is_the_first_position_looked_at(previous: int, kept: str) -> None:
    marks = plan_marks(_blocks(41), Ends(tail=40, previous=previous), rules=RULES)
    assert marks == ((40,) if kept == "within" else (20, 40))


def test_where_a_provider_looks_back_all_the_way_the_previous_tail_needs_no_mark() -> None:
    rules = MarkRules(limit=4, lookback=None, minimum=0)
    assert plan_marks(_blocks(100), Ends(tail=99, previous=1), rules=rules) == (99,)


def test_prefixes_that_are_surely_too_short_are_not_marked() -> None:
    ends = Ends(tools=0, fixed=1, tail=9)
    assert plan_marks(_blocks(10, weight=20), ends, rules=RULES) == (9,)


def test_a_block_that_cannot_be_marked_gives_its_mark_to_the_one_before() -> None:
    blocks = [Block(weight=1_000), Block(weight=1_000, markable=False)]
    assert plan_marks(blocks, Ends(tail=1), rules=RULES) == (0,)
    assert plan_marks([Block(weight=1_000, markable=False)], Ends(tail=0), rules=RULES) == ()


def test_marks_of_the_caller_come_first_and_count() -> None:
    ends = Ends(tools=0, fixed=1, library=3, tail=9)
    assert plan_marks(_blocks(10), ends, rules=RULES, chosen=(5, 6, 7)) == (5, 6, 7, 9)
    assert plan_marks(_blocks(10), ends, rules=RULES, chosen=(9, 9)) == (0, 1, 3, 9)
    with pytest.raises(CallError, match="5 breakpoints"):
        plan_marks(_blocks(10), ends, rules=RULES, chosen=(1, 2, 3, 4, 5))
