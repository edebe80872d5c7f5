"""Usage keeps what is unknown unknown: none is not zero."""

import pytest

from lamella.core.messages import UNKNOWN_USAGE, Usage


def test_usage_is_unknown_by_default() -> None:
    nothing = Usage(plain=None, read=None, write=None, write_long=None, output=None, reasoning=None, fault=None)
    assert nothing == UNKNOWN_USAGE == Usage()


@pytest.mark.parametrize(
    ("usage", "prompt", "rate"),
    [
        (UNKNOWN_USAGE, None, None),
        (Usage(plain=10), 10, None),
        (Usage(plain=10, read=0), 10, 0.0),
        (Usage(plain=10, read=30, write=5, write_long=5), 50, 0.6),
        (Usage(plain=0, read=0), 0, None),
    ],
)
def test_hit_rate_is_known_only_with_reads(usage: Usage, prompt: int | None, rate: float | None) -> None:
    assert usage.prompt_tokens == prompt
    assert usage.hit_rate == rate
