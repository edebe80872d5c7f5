"""Deltas add up to a reply once their end has come; usage keeps what is unknown unknown."""

import pytest

from lamella.core.messages.delta import Delta, ReasoningDelta, Reply, Stop, StopReason, TextDelta, ToolCall, fold_deltas
from lamella.core.messages.usage import UNKNOWN_USAGE, Usage

CALL = ToolCall(id="c", name="search", arguments="{}")


def test_deltas_add_up_to_a_reply() -> None:
    usage = Usage(plain=3, read=1)
    stop = Stop(reason=StopReason.TOOLS, id="m")
    deltas: list[Delta] = [
        ReasoningDelta(text="Hm"),
        TextDelta(text="a"),
        Usage(plain=9),
        TextDelta(text="b"),
        CALL,
        usage,
        stop,
    ]
    assert fold_deltas(deltas) == Reply(
        text="ab", reasoning="Hm", calls=(CALL,), usage=usage, stop=StopReason.TOOLS, id="m"
    )


def test_without_an_end_there_is_no_reply() -> None:
    assert fold_deltas([TextDelta(text="a")]) is None
    assert fold_deltas([]) is None


def test_a_reply_without_usage_has_unknown_usage() -> None:
    reply = fold_deltas([Stop(reason=StopReason.END)])
    assert reply is not None
    assert reply.usage is UNKNOWN_USAGE


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
def test_the_hit_rate_is_known_only_where_reads_are(usage: Usage, prompt: int | None, rate: float | None) -> None:
    assert usage.prompt == prompt
    assert usage.hit_rate == rate
