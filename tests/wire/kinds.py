"""Every wire format as the suites need it: its server, its provider, and the errors it would send."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.wire import anthropic_server as anthropic
from tests.wire import gemini_server as gemini
from tests.wire import openai_caching as openai
from tests.wire.openai_chat_server import chat_server
from tests.wire.openai_responses_server import responses_server
from tests.wire.script import Act, Fail
from tests.wire.serving import Loopback

from lamella.ports import ModelProvider
from lamella.providers.anthropic import AnthropicProvider
from lamella.providers.gemini import GeminiProvider
from lamella.providers.openai_chat import OpenAIChatProvider
from lamella.providers.openai_responses import OpenAIResponsesProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A wire format under test."""

    name: str
    model: str
    key: str
    serve: Callable[..., AbstractContextManager[Loopback]]
    connect: Callable[..., ModelProvider]
    root: str
    rate_limit: Act
    overload: Act
    overflow: Act
    late_failure: Act
    impossible: dict[str, object]
    misled: dict[str, object]


def _anthropic(url: str, key: str, patience: float) -> ModelProvider:
    return AnthropicProvider(key=key, address=url, timeout=patience)


def _openai_chat(url: str, key: str, patience: float) -> ModelProvider:
    return OpenAIChatProvider(key=key, address=url, timeout=patience)


def _openai_responses(url: str, key: str, patience: float) -> ModelProvider:
    return OpenAIResponsesProvider(key=key, address=url, timeout=patience)


def _gemini(url: str, key: str, patience: float) -> ModelProvider:
    return GeminiProvider(key=key, address=url, timeout=patience)


WIRES = (
    Wire(
        name="anthropic",
        model=anthropic.MODEL,
        key=anthropic.KEY,
        serve=anthropic.anthropic_server,
        connect=_anthropic,
        root="",
        rate_limit=Fail(status=429, kind="rate_limit_error", words="Slow down", headers={"retry-after": "17"}),
        overload=Fail(status=529, kind="overloaded_error", words="Overloaded"),
        overflow=Fail(
            status=400, kind="invalid_request_error", words="prompt is too long: 1200000 tokens > 1000000 maximum"
        ),
        late_failure=Fail(kind="overloaded_error", words="Overloaded", inside=True),
        impossible={"input_tokens": -5},
        misled={"input_tokens": "many", "cache_read_input_tokens": None},
    ),
    Wire(
        name="openai_chat",
        model=openai.MODEL,
        key=openai.KEY,
        serve=chat_server,
        connect=_openai_chat,
        root="/v1",
        rate_limit=Fail(status=429, kind="rate_limit_exceeded", words="Slow down", headers={"retry-after": "17"}),
        overload=Fail(status=503, kind="server_error", words="The server is overloaded"),
        overflow=Fail(
            status=400, kind="context_length_exceeded", words="Your input exceeds the context window of this model."
        ),
        late_failure=Fail(kind="rate_limit_exceeded", words="Too many tokens", inside=True),
        impossible={"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}},
        misled={"prompt_tokens": "many", "prompt_tokens_details": [1]},
    ),
    Wire(
        name="openai_responses",
        model=openai.MODEL,
        key=openai.KEY,
        serve=responses_server,
        connect=_openai_responses,
        root="/v1",
        rate_limit=Fail(status=429, kind="rate_limit_exceeded", words="Slow down", headers={"retry-after": "17"}),
        overload=Fail(status=503, kind="server_error", words="The server is overloaded"),
        overflow=Fail(
            status=400, kind="context_length_exceeded", words="Your input exceeds the context window of this model."
        ),
        late_failure=Fail(kind="rate_limit_exceeded", words="Too many tokens", inside=True),
        impossible={"input_tokens": 5, "input_tokens_details": {"cached_tokens": 900, "cache_write_tokens": 0}},
        misled={"input_tokens": "many", "input_tokens_details": [1]},
    ),
    Wire(
        name="gemini",
        model=gemini.MODEL,
        key=gemini.KEY,
        serve=gemini.gemini_server,
        connect=_gemini,
        root="",
        rate_limit=Fail(status=429, kind="RESOURCE_EXHAUSTED", words="Slow down", headers={"retry-after": "17"}),
        overload=Fail(status=503, kind="UNAVAILABLE", words="The model is overloaded."),
        overflow=Fail(
            status=400,
            kind="INVALID_ARGUMENT",
            words="The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
        late_failure=Fail(status=503, kind="UNAVAILABLE", words="The model is overloaded.", inside=True),
        impossible={"promptTokenCount": 5, "cachedContentTokenCount": 900},
        misled={"promptTokenCount": None},
    ),
)
