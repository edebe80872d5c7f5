"""Bounds: events come whole however they were cut, and nothing comes for ever."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from httpx2 import AsyncByteStream, Response
from hypothesis import given
from hypothesis import strategies as st

from lamella.adapters.providers.connection.bounds import Bounds, EndlessAnswer, EventBuffer, bound_answer

STREAM = b'data: {"a": 1}\n\n: a comment\n\ndata: b\r\n\r\n\n\n\n\n\nevent: x\n: another\ndata: c\n\ndata: left'
SAID = [b'data: {"a": 1}', b"data: b", b"event: x\ndata: c", b"data: left"]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM))))
def test_events_come_whole_and_without_comments_wherever_parts_end(cuts: list[int]) -> None:
    events = EventBuffer(Bounds())
    ends = [*sorted(cuts), len(STREAM)]
    parts = [STREAM[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    told = [*(piece for part in parts for piece in events.take(part)), *events.end()]
    lines = b"".join(told).replace(b"\r\n", b"\n")
    assert [event.strip(b"\n") for event in lines.split(b"\n\n") if event.strip()] == SAID


class Drip(AsyncByteStream):
    """A word now and then, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.001)
            yield b"data: a\n\n"


def test_an_answer_that_takes_for_ever_ends() -> None:
    heard: list[bytes] = []

    async def run() -> None:
        response = Response(200, stream=Drip())
        await bound_answer(response, Bounds(seconds=0.1))
        async for part in response.aiter_bytes():
            heard.append(part)

    with pytest.raises(EndlessAnswer, match="seconds"):
        asyncio.run(run())
    assert heard[0] == b"data: a\n\n"


def test_a_refusal_that_takes_for_ever_reads_as_far_as_it_may() -> None:
    async def run() -> bytes:
        response = Response(500, stream=Drip())
        await bound_answer(response, Bounds(refusal=1_000))
        return await response.aread()

    assert 0 < len(asyncio.run(run())) <= 1_000
