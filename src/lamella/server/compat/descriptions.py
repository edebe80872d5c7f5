"""Bodies of the compatibility endpoints as the OpenAPI description has them.

Requests are read as the client wrote them, so these classes describe the fields that Lamella looks at. The APIs' own
documentation describes the rest.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from lamella.schemas.body import Count

_Object = dict[str, object]
_Messages = Annotated[list[_Object], Meta(min_length=1)]


class LamellaOptions(Struct, kw_only=True):
    """Options for Lamella, for clients that cannot set headers."""

    conversation: str | UnsetType = UNSET
    recall: bool | UnsetType = UNSET


class ChatCompletionRequest(Struct, kw_only=True):
    """A request of OpenAI's Chat Completions API."""

    messages: _Messages
    model: str | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    lamella: LamellaOptions | UnsetType = UNSET


class ResponsesRequest(Struct, kw_only=True):
    """A request of OpenAI's Responses API."""

    input: Annotated[str | list[_Object], Meta(examples=["When to sow?"])]
    model: str | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    previous_response_id: str | UnsetType = UNSET
    lamella: LamellaOptions | UnsetType = UNSET


class MessagesRequest(Struct, kw_only=True):
    """A request of Anthropic's Messages API."""

    messages: _Messages
    max_tokens: Count
    model: str | UnsetType = UNSET
    stream: bool | UnsetType = UNSET
    lamella: LamellaOptions | UnsetType = UNSET


class TokenCountRequest(Struct, kw_only=True):
    """A request of Anthropic's API whose tokens are counted."""

    messages: _Messages
    model: str | UnsetType = UNSET


class CompletionChoiceJson(Struct, kw_only=True):
    """A choice of a completion."""

    index: int
    message: _Object
    finish_reason: str | None


class ChatCompletionJson(Struct, kw_only=True):
    """A complete answer in the format of OpenAI's chat API."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[CompletionChoiceJson]
    usage: _Object | UnsetType = UNSET


class ResponseJson(Struct, kw_only=True):
    """A complete answer in the format of OpenAI's Responses API."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: str
    output: list[_Object]
    previous_response_id: str | UnsetType | None = UNSET
    usage: _Object | UnsetType | None = UNSET


class DeletedResponseJson(Struct, kw_only=True):
    """A response that was deleted."""

    id: str
    deleted: bool


class AnthropicMessageJson(Struct, kw_only=True):
    """A complete answer in the format of Anthropic's API."""

    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[_Object]
    stop_reason: str | None
    stop_sequence: str | None
    usage: _Object


class TokenCountJson(Struct, kw_only=True):
    """The number of tokens of a request."""

    input_tokens: Count
