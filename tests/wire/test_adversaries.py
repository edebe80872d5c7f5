"""Servers that violate their API: the text so far is kept, and the error is clear."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.waiting import HANG_SECONDS
from tests.wire.kinds import WIRES, Wire
from tests.wire.material import ask, user
from tests.wire.serving import Flow, Loopback, Outcome, Plain, json_answer, serve

from lamella.conversation.stream import stream_checked_deltas
from lamella.core.messages import Delta, StopDelta, StopReason, TextDelta, Usage
from lamella.errors import (
    AuthenticationError,
    InvalidReplyError,
    LamellaError,
    ModelNotFoundError,
    ProviderError,
    ProviderOverloadedError,
    RateLimitError,
    WrongEndpointError,
)

TEXT = "Gr\u00fc\u00df dich \U0001f600"


def plain_event(value: object) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def named_event(value: dict[str, object]) -> bytes:
    return f"event: {value['type']}\n".encode() + plain_event(value)


def chunk(delta: dict[str, object], reason: str | None = None) -> dict[str, object]:
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def response_delta(text: str) -> dict[str, object]:
    place = {"item_id": "i", "output_index": 0, "content_index": 0, "sequence_number": 1, "logprobs": []}
    return {"type": "response.output_text.delta", "delta": text, **place}


USAGE = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
RESPONSE: dict[str, object] = {"id": "r1", "object": "response", "status": "completed", "output": [], "usage": USAGE}
MESSAGE: dict[str, object] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "content": [],
    "model": "m",
    "stop_reason": None,
    "usage": {"input_tokens": 5, "output_tokens": 1},
}
STREAMS: dict[str, list[bytes]] = {
    "anthropic": [
        named_event({"type": "message_start", "message": MESSAGE}),
        named_event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        named_event(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        ),
        named_event({"type": "content_block_stop", "index": 0}),
        named_event(
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        ),
        named_event({"type": "message_stop"}),
    ],
    "openai_chat": [
        plain_event(chunk({"role": "assistant", "content": TEXT})),
        plain_event(chunk({}, "stop")),
        plain_event(
            {**chunk({}), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}}
        ),
        b"data: [DONE]\n\n",
    ],
    "openai_responses": [
        named_event({"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "queued"}}),
        named_event(response_delta(TEXT)),
        named_event({"type": "response.completed", "sequence_number": 2, "response": RESPONSE}),
    ],
    "gemini": [
        plain_event({"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}, "index": 0}]}),
        plain_event(
            {
                "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
            }
        ),
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came of a request."""

    deltas: list[Delta]
    error: BaseException | None

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))


# No limit that a busy machine meets: a test that hangs fails.
LONGEST = HANG_SECONDS


def hear(wire: Wire, outcome: Outcome, *, patience: float = 10.0) -> Heard:
    """One request to a server that does this, whatever it is asked."""

    async def listen(url: str) -> Heard:
        provider = wire.connect(url + wire.root, wire.key, patience)
        deltas: list[Delta] = []
        try:
            async with asyncio.timeout(LONGEST):
                async for delta in provider.stream(ask(user("Hello"), model=wire.model)):
                    deltas.append(delta)
        except LamellaError as error:
            return Heard(deltas=deltas, error=error)
        finally:
            await provider.close()
        return Heard(deltas=deltas, error=None)

    with serve(lambda _: outcome, Loopback()) as server:
        return asyncio.run(listen(server.url))


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    found = request.param
    assert isinstance(found, Wire)
    return found


def twice(stream: list[bytes]) -> Flow:
    """Every event but the first and the last comes twice that says no more of the text."""
    return Flow(chunks=[part for part in stream for _ in range(1 if TEXT.encode() in part else 2)])


WHOLE: dict[str, Callable[[list[bytes]], Outcome]] = {
    "byte by byte": lambda stream: Flow(chunks=[bytes([byte]) for byte in b"".join(stream)]),
    "with carriage returns": lambda stream: Flow(chunks=[b"".join(stream).replace(b"\n", b"\r\n")]),
    "under another type": lambda stream: Plain(body=b"".join(stream), headers={"content-type": "text/plain"}),
    "never closed": lambda stream: Flow(chunks=stream, hangs=True),
    "cut off after its end": lambda stream: Flow(chunks=stream, whole=False),
}


@pytest.mark.parametrize("how", WHOLE)
def test_whole_answer_is_complete_at_any_delivery(wire: Wire, how: str) -> None:
    # Some wait as long as they may for the end of a stream that has said all.
    heard = hear(wire, WHOLE[how](STREAMS[wire.name]), patience=2.0 if how == "never closed" else 10.0)
    assert heard.error is None
    assert heard.text == TEXT
    assert [delta.reason for delta in heard.deltas if isinstance(delta, StopDelta)] == [StopReason.END]
    assert [(delta.plain, delta.output) for delta in heard.deltas if isinstance(delta, Usage)] == [(5, 2)]


def test_repeated_usage_counts_once(wire: Wire) -> None:
    heard = hear(wire, twice(STREAMS[wire.name]))
    assert heard.error is None
    assert heard.text == TEXT
    assert len([delta for delta in heard.deltas if isinstance(delta, Usage)]) == 1


STRANGE = {
    "a number": b"data: 5\n\n",
    "too deep": b"data: " + b"[" * 100_000 + b"\n\n",
    "an error without a shape": b'data: {"error": "it broke"}\n\n',
    "no text at all": b'data: {"a": "\xff\xfe"}\n\n',
    "a number too long": b'data: {"a": ' + b"9" * 5_000 + b"}\n\n",
}


@pytest.mark.parametrize("what", STRANGE)
def test_unusual_stream_parts_lose_no_text(wire: Wire, what: str) -> None:
    stream = STREAMS[wire.name]
    said = next(place for place, part in enumerate(stream) if TEXT.encode() in part) + 1
    heard = hear(wire, Flow(chunks=[*stream[:said], STRANGE[what], *stream[said:]]))
    assert heard.text == TEXT
    assert heard.error is None or (isinstance(heard.error, ProviderError) and heard.error.hint)


@pytest.mark.parametrize("error", [{"message": "The model sleeps."}, "The model sleeps."], ids=["shaped", "plain"])
def test_error_with_success_status_keeps_its_message(wire: Wire, error: object) -> None:
    heard = hear(wire, json_answer({"error": error}))
    assert type(heard.error) is ProviderError
    assert "answered with an error: The model sleeps." in str(heard.error)


def test_html_page_with_success_status_is_wrong_endpoint(wire: Wire) -> None:
    page = b"<!DOCTYPE html><html><title>x</title><style>a{}</style><h1>Log in</h1> to go on</html>"
    heard = hear(wire, Plain(body=page, headers={"content-type": "text/html; charset=utf-8"}))
    assert type(heard.error) is WrongEndpointError
    assert str(heard.error).endswith("no answer: Log in to go on.")
    empty = hear(wire, Plain(body=b"", headers={"content-type": "application/json"}))
    assert type(empty.error) is WrongEndpointError
    assert str(empty.error).endswith("answered with nothing.")


def test_html_error_page_is_quoted_without_tags(wire: Wire) -> None:
    page = b"<html><head><title>502</title></head><body><h1>502 Bad Gateway</h1><hr>nginx</body></html>"
    heard = hear(wire, Plain(status=502, body=page, headers={"content-type": "text/html"}))
    assert isinstance(heard.error, ProviderError)
    assert str(heard.error).endswith("answered 502: 502 Bad Gateway nginx.")


@pytest.mark.parametrize(
    ("after", "wait", "hint"),
    [
        ("99999999999", 99_999_999_999.0, "Try again in 99,999,999,999 seconds."),
        ("0.25", 0.25, "Try again in 0.25 seconds."),
        ("1e999", None, "Try again later."),
        ("-5", None, "Try again later."),
        ("soon", None, "Try again later."),
    ],
)
def test_retry_delay_is_parsed_in_seconds(wire: Wire, after: str, wait: float | None, hint: str) -> None:
    heard = hear(wire, json_answer({"error": {"message": "Slow."}}, status=429, headers={"retry-after": after}))
    assert isinstance(heard.error, RateLimitError)
    assert (heard.error.wait, heard.error.hint) == (wait, hint)


def find(name: str) -> Wire:
    return next(wire for wire in WIRES if wire.name == name)


WHOLE_ANSWERS: dict[str, dict[str, object]] = {
    "openai_chat": {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
    },
    "anthropic": {**MESSAGE, "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"},
    "openai_responses": {
        **RESPONSE,
        "output": [{"type": "message", "content": [{"type": "output_text", "text": TEXT}]}],
    },
}


@pytest.mark.parametrize("name", WHOLE_ANSWERS)
def test_unstreamed_answer_is_accepted(name: str) -> None:
    heard = hear(find(name), json_answer(WHOLE_ANSWERS[name]))
    assert heard.error is None
    assert heard.text == TEXT
    assert isinstance(heard.deltas[-2], Usage)
    assert heard.deltas[-2].plain == 5
    assert isinstance(heard.deltas[-1], StopDelta)


def test_unstreamed_non_answer_is_shown(wire: Wire) -> None:
    heard = hear(wire, json_answer({"hello": "world"}))
    assert type(heard.error) is InvalidReplyError
    assert '{"hello": "world"}' in str(heard.error)


def test_text_parts_are_joined_and_number_is_refused() -> None:
    parts = [{"type": "text", "text": "Gr\u00fc\u00df "}, "dich", {"type": "thinking", "thinking": []}]
    end = [plain_event(chunk({}, "stop")), b"data: [DONE]\n\n"]
    heard = hear(find("openai_chat"), Flow(chunks=[plain_event(chunk({"content": parts})), *end]))
    assert (heard.text, heard.error) == ("Gr\u00fc\u00df dich", None)
    said = plain_event(chunk({"content": "So far."}))
    heard = hear(find("openai_chat"), Flow(chunks=[said, plain_event(chunk({"content": 5})), *end]))
    assert heard.text == "So far."
    assert str(heard.error) == "The content of the answer is 5, of type int, and not a text."


def test_requests_one_after_the_other_use_one_connection(wire: Wire) -> None:
    # What ends the stream comes a little after what ends the answer.
    chunks = [*STREAMS[wire.name], b"\n"]

    async def talk(url: str) -> None:
        provider = wire.connect(url + wire.root, wire.key, 5.0)
        for _ in range(3):
            async with asyncio.timeout(LONGEST):
                deltas = [
                    delta async for delta in stream_checked_deltas(provider, ask(user("Hello"), model=wire.model))
                ]
            assert isinstance(deltas[-1], StopDelta)
        await provider.close()

    with serve(lambda _: Flow(chunks=chunks, pace=0.02), Loopback()) as server:
        asyncio.run(talk(server.url))
    assert (len(server.calls), server.connections) == (3, 1)


@pytest.mark.parametrize("name", ["anthropic", "openai_responses"])
def test_unclosed_stream_is_awaited_briefly(name: str) -> None:
    heard = hear(find(name), Flow(chunks=STREAMS[name], hangs=True), patience=30.0)
    assert (heard.text, heard.error) == (TEXT, None)
    assert isinstance(heard.deltas[-1], StopDelta)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "Slow."}, RateLimitError),
        ({"code": "429", "message": "Slow."}, RateLimitError),
        ({"code": 503, "message": "Full.", "status": "UNAVAILABLE"}, ProviderOverloadedError),
        ({"message": "Full.", "status": "UNAVAILABLE"}, ProviderOverloadedError),
        ({"code": 401, "message": "No."}, AuthenticationError),
        ({"code": 404, "message": "There is no {model}."}, ModelNotFoundError),
        ({"code": 7, "message": "Odd."}, ProviderError),
    ],
)
def test_status_in_body_of_success_determines_error(
    wire: Wire, error: dict[str, object], kind: type[LamellaError]
) -> None:
    words = str(error["message"]).format(model=wire.model.rpartition(":")[2])
    assert type(hear(wire, json_answer({"error": {**error, "message": words}})).error) is kind


@pytest.mark.parametrize("name", ["openai_chat", "openai_responses"])
def test_status_in_event_determines_error(name: str) -> None:
    heard = hear(find(name), Flow(chunks=[plain_event({"error": {"code": 429, "message": "Slow."}})]))
    assert type(heard.error) is RateLimitError


@pytest.mark.parametrize("name", WHOLE_ANSWERS)
def test_empty_error_beside_answer_is_ignored(name: str) -> None:
    heard = hear(find(name), json_answer({**WHOLE_ANSWERS[name], "error": {}}))
    assert (heard.text, heard.error) == (TEXT, None)


def message(content: object) -> dict[str, object]:
    return {"output": [{"type": "message", "content": content}]}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("anthropic", {"content": ["a"]}),
        ("anthropic", {"content": [5]}),
        ("anthropic", {"content": [{"type": "text"}]}),
        ("anthropic", {"content": [{}]}),
        ("openai_responses", message(["a"])),
        ("openai_responses", message([{"type": "refusal", "refusal": 3}])),
        ("openai_responses", {"output": "a"}),
        ("openai_responses", {"output": ["a"]}),
        ("openai_responses", {"output": [{"type": "output_text", "text": "a"}]}),
    ],
)
def test_content_that_is_not_text_is_refused(name: str, changed: dict[str, object]) -> None:
    heard = hear(find(name), json_answer({**WHOLE_ANSWERS[name], **changed}))
    assert type(heard.error) is InvalidReplyError
    assert "and not a text" in str(heard.error)
