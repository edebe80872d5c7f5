"""What the agent benchmark counts."""

from bench.agent import measure_cached_share


def test_growing_loop_is_served_all_of_previous_request() -> None:
    assert measure_cached_share() > 0.99
