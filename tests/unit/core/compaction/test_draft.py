"""Drafts: which turns of a conversation may shrink."""

import pytest

from lamella.core.compaction.draft import WHOLE, Stretch


@pytest.mark.parametrize(
    ("span", "held"),
    [
        (WHOLE, [0, 1, 2, 3]),
        (Stretch(), [0, 1, 2, 3]),
        (Stretch(first=1), [1, 2, 3]),
        (Stretch(last=1), [0, 1]),
        (Stretch(first=1, last=2), [1, 2]),
    ],
)
def test_a_stretch_holds_the_turns_from_its_first_to_its_last(span: Stretch, held: list[int]) -> None:
    assert [number for number in range(4) if span.holds(number)] == held
