"""Answers at the doors, as the APIs that their clients know have them."""

from typing import Literal

from pydantic import JsonValue

from lamella.faces.server.bodies.shape import Count, JsonBody


class CalledFunctionJson(JsonBody):
    """A function that is called."""

    name: str
    arguments: str


class FunctionCallJson(JsonBody):
    """A call of a function."""

    id: str
    type: Literal["function"]
    function: CalledFunctionJson


class CompletionMessageJson(JsonBody):
    """What the model answered; its calls are `tool_calls`, where there are any."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    tool_calls: list[FunctionCallJson] | None = None


class CompletionChoiceJson(JsonBody):
    """The one answer."""

    index: Literal[0]
    message: CompletionMessageJson
    logprobs: None
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class CompletionUsageJson(JsonBody):
    """Tokens, cached ones included."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: dict[str, int]
    completion_tokens_details: dict[str, int]


class ChatCompletionJson(JsonBody):
    """A whole completion, as OpenAI's chat API gives it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoiceJson]
    usage: CompletionUsageJson


class ResponseUsageJson(JsonBody):
    """Tokens, cached ones included."""

    input_tokens: Count
    input_tokens_details: dict[str, int]
    output_tokens: Count
    output_tokens_details: dict[str, int]
    total_tokens: Count


class ResponseJson(JsonBody):
    """A whole response, as OpenAI's Responses API gives it."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["completed", "incomplete", "in_progress"]
    error: None
    incomplete_details: dict[str, str] | None
    instructions: str | None
    output: list[dict[str, JsonValue]]
    previous_response_id: str | None
    usage: ResponseUsageJson | None


class MessageUsageJson(JsonBody):
    """Tokens by price class."""

    input_tokens: Count
    output_tokens: Count
    cache_read_input_tokens: Count
    cache_creation_input_tokens: Count


class AnthropicMessageJson(JsonBody):
    """A whole message, as Anthropic's API gives it."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[dict[str, JsonValue]]
    stop_reason: Literal["end_turn", "max_tokens", "tool_use", "refusal"] | None
    stop_sequence: None
    usage: MessageUsageJson
