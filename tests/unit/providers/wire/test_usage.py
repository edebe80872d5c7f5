"""Usage in one form: missing is unknown, and what cannot be true is unknown with a reason."""

import pytest

from lamella.core.messages import Usage
from lamella.providers.wire import normalise_usage, split_cache_writes


def test_total_including_cached_tokens_is_split() -> None:
    assert normalise_usage(total=100, read=60, write=30) == Usage(plain=10, read=60, write=30)


def test_plain_count_is_unchanged() -> None:
    assert normalise_usage(plain=10, read=60, write=30, write_long=5).prompt_tokens == 105


def test_missing_usage_is_unknown_not_zero() -> None:
    assert normalise_usage(total=100) == Usage(plain=100, read=None, write=None)
    assert normalise_usage() == Usage()


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (normalise_usage(total=10, read=60), "60 cached tokens of 10"),
        (normalise_usage(plain=-1), "-1 input tokens"),
        (normalise_usage(plain=1, read=-4), "read -4"),
        (normalise_usage(plain=1, output=2, reasoning=3), "3 reasoning tokens of 2"),
        (normalise_usage(total=2**53 + 1), "input 9,007,199,254,740,993"),
        (normalise_usage(plain=1, output=10**30), "output 1,000,"),
    ],
)
def test_impossible_usage_is_unknown_with_reason(usage: Usage, words: str) -> None:
    assert usage.fault is not None
    assert words in usage.fault
    assert (usage.plain, usage.read, usage.output) == (None, None, None)


@pytest.mark.parametrize(
    ("total", "short", "long", "split"),
    [
        (None, None, None, (None, None)),
        (50, None, None, (50, None)),
        (50, 20, 30, (20, 30)),
        (60, 20, 30, (30, 30)),
        (None, 20, 30, (20, 30)),
    ],
)
def test_writes_are_split_by_lifetime(
    total: int | None, short: int | None, long: int | None, split: tuple[int | None, int | None]
) -> None:
    assert split_cache_writes(total, short=short, long=long) == split
