"""The real SDKs as people use them: every way in which each of them gives an answer."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic import Anthropic
from google.genai import Client
from google.genai.types import HttpOptions
from openai import OpenAI
from tests.wire import anthropic_server, gemini_server, openai_caching
from tests.wire.openai_chat_server import chat_server
from tests.wire.openai_responses_server import responses_server
from tests.wire.script import Say, Wanted
from tests.wire.serving import Loopback

Call = Callable[[str, dict[str, Any]], object]
SAID = Say(
    text="Let me look at it.",
    reasoning="Where is it?",
    calls=(Wanted(id="c1", name="search", arguments={"q": "tides"}),),
)


def open_anthropic(url: str) -> Anthropic:
    return Anthropic(api_key=anthropic_server.KEY, base_url=url, max_retries=0)


def open_openai(url: str) -> OpenAI:
    return OpenAI(api_key=openai_caching.KEY, base_url=f"{url}/v1", max_retries=0)


@contextmanager
def open_gemini(url: str) -> Iterator[Client]:
    with closing(Client(api_key=gemini_server.KEY, vertexai=False, http_options=HttpOptions(base_url=url))) as client:
        yield client


def ask_message(url: str, arguments: dict[str, Any]) -> object:
    with open_anthropic(url) as client:
        return client.messages.create(**arguments)


def ask_message_data(url: str, arguments: dict[str, Any]) -> object:
    with open_anthropic(url) as client:
        return client.messages.create(**arguments).to_dict()


def ask_message_events(url: str, arguments: dict[str, Any]) -> object:
    with open_anthropic(url) as client:
        return list(client.messages.create(**arguments, stream=True))


def ask_message_stream(url: str, arguments: dict[str, Any]) -> object:
    with open_anthropic(url) as client, client.messages.stream(**arguments) as stream:
        assert "".join(stream.text_stream) == SAID.text
    return stream


def ask_message_stream_events(url: str, arguments: dict[str, Any]) -> object:
    with open_anthropic(url) as client, client.messages.stream(**arguments) as stream:
        return list(stream)


def ask_completion(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return client.chat.completions.create(**arguments)


def ask_completion_data(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return client.chat.completions.create(**arguments).to_dict()


def ask_completion_chunks(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return list(client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))


def ask_completion_stream(url: str, arguments: dict[str, Any]) -> object:
    with (
        open_openai(url) as client,
        client.chat.completions.stream(**arguments, stream_options={"include_usage": True}) as stream,
    ):
        for _ in stream:
            pass
    return stream


def ask_completion_stream_events(url: str, arguments: dict[str, Any]) -> object:
    with (
        open_openai(url) as client,
        client.chat.completions.stream(**arguments, stream_options={"include_usage": True}) as stream,
    ):
        return list(stream)


def ask_response(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return client.responses.create(**arguments)


def ask_response_data(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return client.responses.create(**arguments).to_dict()


def ask_response_events(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client:
        return list(client.responses.create(**arguments, stream=True))


def ask_response_stream(url: str, arguments: dict[str, Any]) -> object:
    with open_openai(url) as client, client.responses.stream(**arguments) as stream:
        for _ in stream:
            pass
    return stream


def ask_content(url: str, arguments: dict[str, Any]) -> object:
    with open_gemini(url) as client:
        return client.models.generate_content(**arguments)


def ask_content_data(url: str, arguments: dict[str, Any]) -> object:
    with open_gemini(url) as client:
        return client.models.generate_content(**arguments).to_json_dict()


def ask_content_as_sent(url: str, arguments: dict[str, Any]) -> object:
    with open_gemini(url) as client:
        return client.models.generate_content(**arguments).model_dump(mode="json", by_alias=True)


def ask_content_chunks(url: str, arguments: dict[str, Any]) -> object:
    with open_gemini(url) as client:
        return list(client.models.generate_content_stream(**arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """A dialect with its server and the ways its SDK gives an answer, a whole one first."""

    name: str
    model: str
    serve: Callable[..., AbstractContextManager[Loopback]]
    calls: tuple[Call, ...]


EVERY = (
    Spoken(
        name="anthropic",
        model=anthropic_server.MODEL,
        serve=anthropic_server.anthropic_server,
        calls=(ask_message, ask_message_data, ask_message_events, ask_message_stream, ask_message_stream_events),
    ),
    Spoken(
        name="openai",
        model=openai_caching.MODEL,
        serve=chat_server,
        calls=(
            ask_completion,
            ask_completion_data,
            ask_completion_chunks,
            ask_completion_stream,
            ask_completion_stream_events,
        ),
    ),
    Spoken(
        name="openai-responses",
        model=openai_caching.MODEL,
        serve=responses_server,
        calls=(ask_response, ask_response_data, ask_response_events, ask_response_stream),
    ),
    Spoken(
        name="gemini",
        model=gemini_server.MODEL,
        serve=gemini_server.gemini_server,
        calls=(ask_content, ask_content_data, ask_content_as_sent, ask_content_chunks),
    ),
)
WAYS = [pytest.param(spoken, call, id=call.__name__) for spoken in EVERY for call in spoken.calls]
