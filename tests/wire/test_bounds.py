"""Servers that never end: reading is limited, and the text so far is kept."""

import asyncio
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import pytest
from tests.wire.kinds import WIRES, Wire
from tests.wire.material import ask, user
from tests.wire.serving import Flow, Loopback, Outcome, Plain, serve
from tests.wire.test_adversaries import STREAMS, TEXT, chunk, hear, named_event, plain_event, response_delta

from lamella.conversation.stream import stream_checked_deltas
from lamella.core.messages import Delta, TextDelta
from lamella.errors import InvalidReplyError, LamellaError, ProviderError, ProviderTimeoutError

# All that may come of one answer, with what waits in sockets.
MOST = 80 * 1_024 * 1_024
LONG = "x" * 10_000
HUGE = 100 * 1_024 * 1_024


@dataclass(slots=True)
class Torrent:
    """An opening and then the same for ever; ``given`` is how many bytes the server got rid of."""

    opening: list[bytes]
    more: bytes
    given: int = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            for part in chain(self.opening, [self.more]):
                self.given += len(part)
                yield part
            self.opening = []


@dataclass(slots=True)
class Ended:
    """What was heard until the end, and how it ended."""

    deltas: list[Delta] = field(default_factory=list)
    error: LamellaError | None = None

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))


def listen(wire: Wire, outcome: Outcome) -> Ended:
    """What the engine hears of a server that does this, whatever it is asked."""
    ended = Ended()

    async def run(url: str) -> None:
        provider = wire.connect(url + wire.root, wire.key, 10.0)
        try:
            async for delta in stream_checked_deltas(provider, ask(user("Hello"), model=wire.model)):
                ended.deltas.append(delta)
        except LamellaError as error:
            ended.error = error
        finally:
            await provider.close()

    with serve(lambda _: outcome, Loopback()) as server:
        asyncio.run(run(server.url))
    return ended


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    found = request.param
    assert isinstance(found, Wire)
    return found


def said(wire: Wire) -> list[bytes]:
    """The stream up to the text it says."""
    stream = STREAMS[wire.name]
    return stream[: next(place for place, part in enumerate(stream) if TEXT.encode() in part) + 1]


WITHOUT_END: dict[str, bytes] = {
    "a line": b"x" * 65_536,
    "a line in small parts": b"x" * 1_024,
    "comments": b": still here\n" * 4_096,
    "comments apart": b": still here\n\n" * 4_096,
    "lines of one event": b"data: \n" * 8_192,
    "blank lines": b"\n" * 65_536,
}


@pytest.mark.parametrize("what", WITHOUT_END)
def test_endless_part_is_cut_and_text_kept(wire: Wire, what: str) -> None:
    torrent = Torrent([*said(wire), *([b"data: "] if "line in" in what or what == "a line" else [])], WITHOUT_END[what])
    ended = listen(wire, Flow(chunks=torrent))
    assert ended.text == TEXT
    # On a busy machine comments may take longer than the patience of whoever waits for words.
    assert isinstance(ended.error, InvalidReplyError | ProviderTimeoutError)
    assert torrent.given < MOST


def gemini_part(part: dict[str, object]) -> bytes:
    return plain_event({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]})


def block_delta(delta: dict[str, object]) -> bytes:
    return named_event({"type": "content_block_delta", "index": 0, "delta": delta})


def call_delta(arguments: str) -> dict[str, object]:
    return chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "", "arguments": arguments}}]})


def arguments_delta() -> dict[str, object]:
    place = {"item_id": "i", "output_index": 0, "sequence_number": 1}
    return {"type": "response.function_call_arguments.delta", "delta": LONG, **place}


def thought_delta() -> dict[str, object]:
    return {**response_delta(LONG), "type": "response.reasoning_text.delta"}


MANY: dict[str, dict[str, Callable[[], bytes]]] = {
    "anthropic": {
        "words": lambda: block_delta({"type": "text_delta", "text": LONG}),
        "thoughts": lambda: block_delta({"type": "thinking_delta", "thinking": LONG}),
        "arguments": lambda: block_delta({"type": "input_json_delta", "partial_json": LONG}),
    },
    "openai_chat": {
        "words": lambda: plain_event(chunk({"content": LONG})),
        "thoughts": lambda: plain_event(chunk({"reasoning_content": LONG})),
        "arguments": lambda: plain_event(call_delta(LONG)),
    },
    "openai_responses": {
        "words": lambda: named_event(response_delta(LONG)),
        "thoughts": lambda: named_event(thought_delta()),
        "arguments": lambda: named_event(arguments_delta()),
    },
    "gemini": {
        "words": lambda: gemini_part({"text": LONG}),
        "thoughts": lambda: gemini_part({"text": LONG, "thought": True}),
        "arguments": lambda: gemini_part({"functionCall": {"name": "x", "args": {"x": LONG}}}),
    },
}


@pytest.mark.parametrize("what", ["words", "thoughts", "arguments"])
def test_endless_events_are_cut_and_text_kept(wire: Wire, what: str) -> None:
    torrent = Torrent(said(wire), MANY[wire.name][what]())
    ended = listen(wire, Flow(chunks=torrent))
    assert ended.text.startswith(TEXT)
    assert type(ended.error) is InvalidReplyError
    assert torrent.given < MOST


def test_huge_event_is_not_buffered(wire: Wire) -> None:
    huge = MANY[wire.name]["words"]().replace(LONG.encode(), b"x" * HUGE)
    torrent = Torrent([*said(wire), *(huge[at : at + 65_536] for at in range(0, HUGE, 65_536))], b"x" * 65_536)
    ended = listen(wire, Flow(chunks=torrent))
    assert ended.text == TEXT
    assert type(ended.error) is InvalidReplyError
    assert torrent.given < MOST


def test_endless_compressed_answer_is_cut_and_text_kept(wire: Wire) -> None:
    packed = gzip.compress(b"".join(said(wire)) + b"data: " + b"x" * HUGE, compresslevel=1)
    assert len(packed) < HUGE / 100
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    ended = listen(wire, Plain(body=packed, headers=headers))
    assert ended.text == TEXT
    assert type(ended.error) is InvalidReplyError
    assert "4,194,304 bytes" in str(ended.error)


@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_answer_in_one_piece_that_unpacks_without_end_is_refused(wire: Wire, kind: str) -> None:
    packed = gzip.compress(b'{"a": "' + b"x" * HUGE + b'"}', compresslevel=1)
    ended = listen(wire, Plain(body=packed, headers={"content-type": kind, "content-encoding": "gzip"}))
    assert type(ended.error) is InvalidReplyError
    assert "4,194,304 bytes" in str(ended.error)


@pytest.mark.parametrize(("status", "told"), [(200, "packed more than once"), (502, "answered 502")])
def test_repeatedly_compressed_answer_is_not_unpacked(wire: Wire, status: int, told: str) -> None:
    """Gigabytes in the middle may be a few bytes outside and none inside; here the inside says what would be read."""
    once = gzip.compress(b"".join(STREAMS[wire.name]) if status < 300 else b"<h1>Inside</h1>")
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip, GZIP"}
    ended = listen(wire, Plain(status=status, body=gzip.compress(once), headers=headers))
    assert ended.error is not None
    assert told in str(ended.error)
    assert "Inside" not in str(ended.error)
    assert not ended.text


@pytest.mark.parametrize("tag", [b"<style ", b"<", b"<style></style>"])
def test_large_error_page_is_quoted_with_status(wire: Wire, tag: bytes) -> None:
    page = b"<html><h1>Bad Gateway</h1>" + tag * (2_000_000 // len(tag))
    heard = hear(wire, Plain(status=502, body=page, headers={"content-type": "text/html"}))
    assert isinstance(heard.error, ProviderError)
    assert "answered 502: Bad Gateway" in str(heard.error)
    assert len(str(heard.error)) < 600
