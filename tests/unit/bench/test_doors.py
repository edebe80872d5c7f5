"""What the measure of the doors counts."""

import pytest
from bench.doors import DOORS, list_glued, measure_door


@pytest.mark.parametrize("path", DOORS)
def test_glued_documents_cost_less_through_a_door_and_each_can_be_read(path: str) -> None:
    cost = measure_door(path, turns=6)
    assert cost.documents == cost.readable == len({name for number in range(6) for name in list_glued(number)})
    assert 0 < cost.ratio < 0.7
