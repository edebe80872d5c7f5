"""What the agent's measure counts."""

from bench.agent import measure_cached_share


def test_a_loop_that_only_grows_is_served_all_of_the_request_before() -> None:
    assert measure_cached_share() > 0.99
