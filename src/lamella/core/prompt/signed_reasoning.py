"""Signed reasoning in tool rounds: it is sent again only behind exactly the bytes that it was made behind.

Providers sign the reasoning of a reply together with everything in front of it: system prompt, tools and messages. If any
of that has changed since, the signature is invalid and the provider rejects the request. ``hash_reasoning_context`` makes
the hash that is stored with a reply. ``drop_invalidated_reasoning`` compares it with what is in front of the reply now, and
removes the reasoning if the two differ. Both read only the request, so each replay sends what was sent.
"""

import json
from collections.abc import Sequence
from hashlib import sha256
from operator import attrgetter
from typing import NamedTuple

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages import Message, ModelReply, ProviderReply
from lamella.core.prompt.layers.model import TokenCounter
from lamella.core.prompt.layers.tool_rounds import render_call
from lamella.core.text.content import canonical_json
from lamella.core.values import replace

_SIGNED_TYPES = ("thinking", "redacted_thinking", "reasoning")


class CheckedMessages(NamedTuple):
    """The messages of a request without invalid signatures, and the positions of replies that lost their reasoning."""

    messages: tuple[Message, ...]
    reasoning_dropped_at: tuple[int, ...]


def bind_reasoning_to_request(
    reply: ModelReply, *, model: str | None, tools: Sequence[ToolDefinition], messages: Sequence[Message]
) -> ModelReply:
    """Return a reply that says which request it answers, if it has reasoning that a provider signed."""
    native = reply.provider_reply
    if native is None or not _has_signed_items(native):
        return reply
    answers = f"{hash_reasoning_context(tools, messages)} {model or ''}"
    return replace(reply, provider_reply=replace(native, answers=answers))


_get_provider_reply = attrgetter("provider_reply")


def hash_reasoning_context(tools: Sequence[ToolDefinition], messages: Sequence[Message]) -> str:
    """Return the hash of everything that a reply is bound to, but for the model."""
    chain = _GrowingRequestHash(tools)
    for message in messages:
        chain.add(message)
    return chain.value


def drop_invalidated_reasoning(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], *, model: str | None, count: TokenCounter
) -> CheckedMessages:
    """Return the messages; a reply loses its reasoning if something in front of it, or the model, has changed.

    ``model`` is None if the prompt does not know it. A reply of an earlier version of Lamella says nothing about its request and
    stays as it is.
    """
    # Most of thousands of messages have none; ``filter`` looks at them without a loop.
    if not any(one.answers for one in filter(None, map(_get_provider_reply, messages))):
        return CheckedMessages(tuple(messages), ())
    chain = _GrowingRequestHash(tools)
    checked: list[Message] = []
    dropped: list[int] = []
    for position, message in enumerate(messages):
        native = message.provider_reply
        if native is not None and native.answers:
            answered, _, author = native.answers.partition(" ")
            if answered != chain.value or author != (model or ""):
                message = without_reasoning(message, count=count)
                dropped.append(position)
        chain.add(message)
        checked.append(message)
    return CheckedMessages(tuple(checked), tuple(dropped))


def drop_reasoning_of_other_models(
    messages: Sequence[Message], *, model: str, count: TokenCounter
) -> tuple[Message, ...]:
    """Return the messages without the reasoning of replies that say that another model wrote them."""
    authors = [
        message.provider_reply.answers.partition(" ")[2] if message.provider_reply else "" for message in messages
    ]
    return tuple(
        without_reasoning(message, count=count) if author and author != model else message
        for message, author in zip(messages, authors, strict=True)
    )


def without_reasoning(message: Message, *, count: TokenCounter) -> Message:
    """Return an assistant message without its signed reasoning, with the tokens of what is left."""
    native = message.provider_reply
    assert native is not None, "the caller has checked it"
    called = "".join(render_call(call) for call in message.calls)
    text = f"{message.text}\n{called}" if message.text else called
    kept = [item for item in json.loads(native.json) if not _is_signed(item)]
    # The id of a call would refer to the reasoning that led to it.
    plain = [{name: value for name, value in item.items() if name != "id" or "call_id" not in item} for item in kept]
    left = ProviderReply(format=native.format, json=canonical_json(plain))
    return replace(message, provider_reply=left, tokens=count(text) if text else 0, piece_token_counts=())


def _has_signed_items(native: ProviderReply) -> bool:
    # Most replies have none, and are not parsed.
    if (
        '"thinking"' not in native.json
        and '"reasoning"' not in native.json
        and '"redacted_thinking"' not in native.json
    ):
        return False
    try:
        items = json.loads(native.json)
    except ValueError:
        return False
    return (
        isinstance(items, list)
        and all(isinstance(item, dict) for item in items)
        and any(_is_signed(item) for item in items)
    )


def _is_signed(item: dict[str, object]) -> bool:
    return item.get("type") in _SIGNED_TYPES


class _GrowingRequestHash:
    """A hash over the beginning of a request, which grows by messages."""

    def __init__(self, tools: Sequence[ToolDefinition]) -> None:
        self._hash = sha256(canonical_json([[tool.name, tool.description, tool.parameters] for tool in tools]).encode())

    @property
    def value(self) -> str:
        return self._hash.hexdigest()

    def add(self, message: Message) -> None:
        native = message.provider_reply
        parts: list[object] = [
            message.role.value,
            message.call_id,
            message.failed,
            [one.hash for one in message.images],
        ]
        parts += [[call.id, call.name, call.arguments] for call in message.calls]
        for text in (canonical_json(parts), message.text, "" if native is None else native.json):
            data = text.encode()
            self._hash.update(len(data).to_bytes(8, "big"))
            self._hash.update(data)
