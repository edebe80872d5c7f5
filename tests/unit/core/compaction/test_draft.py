"""Drafts: which turns of a conversation may shrink."""

import pytest

from lamella.core.compaction.draft import ALL_TURNS, TurnRange


@pytest.mark.parametrize(
    ("span", "held"),
    [
        (ALL_TURNS, [0, 1, 2, 3]),
        (TurnRange(), [0, 1, 2, 3]),
        (TurnRange(first=1), [1, 2, 3]),
        (TurnRange(last=1), [0, 1]),
        (TurnRange(first=1, last=2), [1, 2]),
    ],
)
def test_span_contains_its_first_to_last_turn(span: TurnRange, held: list[int]) -> None:
    assert [number for number in range(4) if span.contains_turn(number)] == held
