from collections.abc import Iterator

import pytest

from lamella.core.compaction.steps import select_first_that_free_enough

CANDIDATES = (("a", 10), ("b", 0), ("c", 20), ("d", 30), ("e", 100), ("f", 5))


@pytest.mark.parametrize(
    ("excess", "taken"),
    [(0, ""), (1, "a"), (10, "a"), (11, "ac"), (31, "acd"), (61, "acde"), (999, "acdef")],
)
def test_first_sufficient_candidates_are_selected(excess: int, taken: str) -> None:
    assert select_first_that_free_enough(CANDIDATES, excess) == tuple(taken)


@pytest.mark.parametrize(
    ("excess", "taken"),
    [(0, ""), (1, "a"), (11, "c"), (30, "ac"), (31, "ad"), (60, "acd"), (61, "e"), (120, "ce"), (999, "acdef")],
)
def test_drop_unneeded_removes_superfluous_candidates(excess: int, taken: str) -> None:
    assert select_first_that_free_enough(CANDIDATES, excess, drop_unneeded=True) == tuple(taken)


def test_selection_stops_when_enough() -> None:
    looked: list[str] = []

    def look() -> Iterator[tuple[str, int]]:
        for name, tokens in CANDIDATES:
            looked.append(name)
            yield name, tokens

    select_first_that_free_enough(look(), 15)
    assert looked == ["a", "b", "c", "d"]
