"""Requests to send: conversations with a library, pictures, tools and rounds of tools."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from lamella.core.artifacts.model import ImageData, ToolDefinition
from lamella.core.messages import (
    LIBRARY_HEADING,
    Delta,
    Message,
    ModelReply,
    ModelRequest,
    Role,
    ToolCall,
    ToolOutput,
    ToolRound,
    reply_from_deltas,
    round_messages,
)
from lamella.core.values import replace
from lamella.ports import ModelProvider

SEARCH = ToolDefinition(
    name="search",
    description="Search the notes.",
    parameters='{"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"}',
)
READ = ToolDefinition(name="read", description="Read a note.", parameters='{"properties":{},"type":"object"}')
DOT = ImageData(media_type="image/png", data=b"\x89PNG dot", width=1, height=1, hash="d07")
ROUND = ToolRound(
    text="Let me look.",
    calls=(ToolCall(id="call_1", name="search", arguments='{"q":"tides"}'),),
    outputs=(ToolOutput(call="call_1", output="Two notes on tides."),),
)


def system(*shelf: str, instructions: str = "You are terse.") -> Message:
    head = f"{instructions}\n\n{LIBRARY_HEADING}" if shelf else instructions
    return Message(role=Role.SYSTEM, pieces=(head, *shelf))


def user(text: str, *images: ImageData) -> Message:
    return Message(role=Role.USER, pieces=(text,), images=images)


def assistant(text: str) -> Message:
    return Message(role=Role.ASSISTANT, pieces=(text,))


def note(name: str, size: int = 0) -> str:
    """A block as the library has them, filled up to a size in characters."""
    body = f"Note {name}. "
    return f"<note>\n{(body * (size // len(body) + 1))[: max(size, len(body))]}\n</note>\n"


def ask(*messages: Message, model: str) -> ModelRequest:
    return ModelRequest(model=model, messages=messages, max_output_tokens=800, conversation="harbour")


def grown(request: ModelRequest, reply: str, question: str) -> ModelRequest:
    """The next turn of a conversation whose messages all stay."""
    return replace(request, messages=(*request.messages, assistant(reply), user(question)))


def answered(request: ModelRequest, *rounds: ToolRound) -> ModelRequest:
    """The same request after rounds of tools."""
    added = (message for one in rounds for message in round_messages(one))
    return replace(request, messages=(*request.messages, *added))


def round_of(reply: ModelReply, *outputs: ToolOutput) -> ToolRound:
    """A reply with what its calls gave back."""
    return ToolRound(text=reply.text, calls=reply.calls, provider_reply=reply.provider_reply, outputs=outputs)


def collect(provider: ModelProvider, request: ModelRequest) -> list[Delta]:
    """Every delta of one answer; the provider is closed afterwards."""

    async def run() -> list[Delta]:
        try:
            return [delta async for delta in provider.stream(request)]
        finally:
            await provider.close()

    return asyncio.run(run())


def reply_to(provider: ModelProvider, request: ModelRequest) -> ModelReply:
    reply = reply_from_deltas(collect(provider, request))
    assert reply is not None
    return reply


async def take(stream: AsyncIterator[Delta], number: int) -> Sequence[Delta]:
    """The first few deltas."""
    return [await anext(stream) for _ in range(number)]
