"""Gemini's answers and its implicit cache, over the bytes that the real SDK sends."""

import asyncio

import pytest
from tests.wire.gemini_server import KEY, MODEL, SIGNATURE, GeminiServer, gemini_server
from tests.wire.material import SEARCH, answered, ask, assistant, grown, note, reply_to, round_of, system, user
from tests.wire.script import Say, Wanted

from lamella.core.messages import ModelReply, ModelRequest, StopReason, ToolOutput
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, InvalidReplyError
from lamella.providers.gemini import GeminiProvider, build_request, read_reply

START = ask(system(note("tides", 30_000)), user("First?"), model=MODEL)


def _send(server: GeminiServer, request: ModelRequest) -> ModelReply:
    return reply_to(GeminiProvider(key=KEY, address=server.url, timeout=10.0), request)


def test_each_turn_reads_nearly_all_that_the_one_before_sent() -> None:
    with gemini_server() as server:
        request = START
        before = 0
        for number in range(4):
            usage = _send(server, request).usage
            assert usage.read is not None
            assert before * 0.99 <= usage.read <= before
            assert usage.write == 0
            before = usage.prompt_tokens or 0
            request = grown(request, f"Answer {number}.", f"Question {number}?")
    assert before > 4_096


def test_streamed_and_whole_answers_give_the_same_reply() -> None:
    from google.genai import Client
    from google.genai.types import HttpOptions

    act = Say(text="Here.", reasoning="Hm.", calls=(Wanted(id="c", name="search", arguments={"q": "x"}),))
    request = replace(START, tools=(SEARCH,))

    async def whole(url: str) -> ModelReply | None:
        client = Client(api_key=KEY, vertexai=False, http_options=HttpOptions(base_url=url))
        answer = await client.aio.models.generate_content(**build_request(request))
        await client.aio.aclose()
        client.close()
        return read_reply(answer)

    with gemini_server(act) as server:
        streamed = _send(server, request)
    with gemini_server(act) as server:
        finished = asyncio.run(whole(server.url))
    assert finished is not None
    assert replace(finished, provider_reply=None) == replace(streamed, provider_reply=None)
    assert (streamed.usage.output, streamed.usage.reasoning) == (7, 2)


def test_call_is_returned_with_signature_and_name() -> None:
    request = replace(START, tools=(SEARCH,))
    with gemini_server(Say(text="", calls=(Wanted(id="c", name="search", arguments={"q": "x"}),))) as server:
        reply = _send(server, request)
        _send(server, answered(request, round_of(reply, ToolOutput(call="c", output="No."))))
    said, got = server.bodies[1]["contents"][-2:]
    assert said["parts"][0]["functionCall"] == {"id": "c", "name": "search", "args": {"q": "x"}}
    assert said["parts"][0]["thoughtSignature"].rstrip("=").replace("+", "-").replace("/", "_") == SIGNATURE.rstrip("=")
    assert got["parts"] == [{"functionResponse": {"id": "c", "name": "search", "response": {"output": "No."}}}]


def test_call_without_id_gets_unsent_id() -> None:
    calls = (Wanted(id="", name="search", arguments={}), Wanted(id="", name="search", arguments={"q": "y"}))
    request = replace(START, tools=(SEARCH,))
    with gemini_server(Say(calls=calls)) as server:
        reply = _send(server, request)
        outputs = tuple(ToolOutput(call=call.id, output="No.", failed=True) for call in reply.calls)
        _send(server, answered(request, round_of(reply, *outputs)))
    assert len({call.id for call in reply.calls}) == 2
    got = server.bodies[1]["contents"][-1]["parts"]
    assert got == [{"functionResponse": {"name": "search", "response": {"error": "No."}}}] * 2


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("MAX_TOKENS", StopReason.LENGTH), ("SAFETY", StopReason.REFUSED), ("MALFORMED_FUNCTION_CALL", StopReason.OTHER)],
)
def test_stop_reason_is_parsed(stop: str, reason: StopReason) -> None:
    with gemini_server(Say(stop=stop)) as server:
        assert _send(server, START).stop is reason


def test_prompt_that_is_blocked_is_refused_without_an_answer() -> None:
    reply = read_reply({"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": {"prompt_token_count": 4}})
    assert reply is not None
    assert (reply.stop, reply.text, reply.usage.plain) == (StopReason.REFUSED, "", 4)
    assert read_reply({}) is None


def test_response_sdk_cannot_parse_is_invalid_reply() -> None:
    with gemini_server(Say(usage={"promptTokenCount": "many"})) as server, pytest.raises(InvalidReplyError):
        _send(server, START)


def test_extra_fields_are_added_and_cannot_replace_own_fields() -> None:
    request = replace(START, extra_fields_json='{"generationConfig": {"temperature": 0}}')
    with gemini_server() as server:
        _send(server, request)
    assert server.bodies[0]["generationConfig"] == {"maxOutputTokens": 800, "temperature": 0}
    with pytest.raises(InvalidOperationError, match="contents"):
        build_request(replace(START, extra_fields_json='{"contents": []}'))


def test_empty_message_is_omitted() -> None:
    request = ask(user("One?"), assistant(""), user("Two?"), model=MODEL)
    assert [content["role"] for content in build_request(request)["contents"]] == ["user", "user"]
