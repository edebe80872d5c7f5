"""Waiting for events. No length of time decides whether a test passes: the only bound ends a test that hangs."""

import time
from collections.abc import Callable

# Long enough for a machine whose cores are busy with something else.
HANG_SECONDS = 900.0


def wait_until(has_happened: Callable[[], object], what: str, *, interval: float = 0.02) -> None:
    """Wait for an event of another thread or process; fail with its description if the test hangs."""
    deadline = time.monotonic() + HANG_SECONDS
    while not has_happened():
        if time.monotonic() > deadline:
            raise AssertionError(f"It never happened: {what}.")
        time.sleep(interval)
