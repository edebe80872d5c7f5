"""Fixtures for tests of the interfaces: a clock in a time zone other than UTC."""

import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def zone_of_tokyo() -> Iterator[None]:
    """Nine hours ahead, all year."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()
