"""What the measure of the doors counts."""

import pytest
from bench.doors import DOORS, LAYOUTS, list_glued, measure_door


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("path", DOORS)
def test_glued_documents_cost_less_through_a_door_and_each_can_be_read(path: str, layout: str) -> None:
    cost = measure_door(path, turns=6, layout=layout)
    assert cost.glued == cost.readable == sum(len(list_glued(number)) for number in range(6))
    assert 0 < cost.ratio < 0.7


def test_the_layout_that_is_measured_is_the_one_that_is_named() -> None:
    library, in_place = (measure_door(DOORS[0], turns=6, layout=layout) for layout in ("library", "in_place"))
    assert library.through > in_place.through
