"""The measure of starting: it runs the command, and notices one that fails or works."""

import os
import sys

import pytest
from bench.start import measure_cpu


def test_cpu_time_grows_with_work() -> None:
    nothing = measure_cpu([sys.executable, "-c", "pass"], os.environ)
    assert 0 < nothing < measure_cpu([sys.executable, "-c", "sum(range(30_000_000))"], os.environ)


def test_failing_command_is_not_measured() -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        measure_cpu([sys.executable, "-c", "raise SystemExit(3)"], os.environ)
