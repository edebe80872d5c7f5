"""What the benchmark of the compatibility endpoints counts."""

import pytest
from bench.compat import WIRES, list_glued, measure_cost, measure_overhead

from lamella.server.compat.wires import ApiFormat


@pytest.mark.parametrize("wire", WIRES)
def test_compat_documents_cost_less_than_naive_and_stay_readable(wire: ApiFormat) -> None:
    cost = measure_cost(wire, turns=6)
    assert cost.glued == cost.readable == sum(len(list_glued(number)) for number in range(6))
    assert 0 < cost.ratio < 0.7


def test_cpu_time_is_measured_beside_a_bare_proxy() -> None:
    overhead = measure_overhead(1, requests=12)
    assert 0 < overhead.proxy < overhead.lamella
