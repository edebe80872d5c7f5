"""Requests to send: conversations with a library, pictures, tools and rounds of tools."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from lamella.core.artifacts.model import Image, ToolDefinition
from lamella.core.messages.delta import Delta, Reply, ToolCall, fold_deltas
from lamella.core.messages.headings import LIBRARY_HEADING
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request
from lamella.core.messages.rounds import ToolOutput, ToolRound, round_messages
from lamella.core.values import replace
from lamella.ports import ChatProvider

SEARCH = ToolDefinition(
    name="search",
    description="Search the notes.",
    parameters='{"properties":{"q":{"type":"string"}},"required":["q"],"type":"object"}',
)
READ = ToolDefinition(name="read", description="Read a note.", parameters='{"properties":{},"type":"object"}')
DOT = Image(media_type="image/png", data=b"\x89PNG dot", width=1, height=1, hash="d07")
ROUND = ToolRound(
    text="Let me look.",
    calls=(ToolCall(id="call_1", name="search", arguments='{"q":"tides"}'),),
    outputs=(ToolOutput(call="call_1", output="Two notes on tides."),),
)


def system(*shelf: str, instructions: str = "You are terse.") -> Message:
    head = f"{instructions}\n\n{LIBRARY_HEADING}" if shelf else instructions
    return Message(role=Role.SYSTEM, pieces=(head, *shelf))


def user(text: str, *images: Image) -> Message:
    return Message(role=Role.USER, pieces=(text,), images=images)


def assistant(text: str) -> Message:
    return Message(role=Role.ASSISTANT, pieces=(text,))


def note(name: str, size: int = 0) -> str:
    """A block as the library has them, filled up to a size in characters."""
    body = f"Note {name}. "
    return f"<note>\n{(body * (size // len(body) + 1))[: max(size, len(body))]}\n</note>\n"


def ask(*messages: Message, model: str) -> Request:
    return Request(model=model, messages=messages, answer=800, conversation="harbour")


def grown(request: Request, reply: str, question: str) -> Request:
    """The next turn of a conversation whose messages all stay."""
    return replace(request, messages=(*request.messages, assistant(reply), user(question)))


def answered(request: Request, *rounds: ToolRound) -> Request:
    """The same request after rounds of tools."""
    added = (message for one in rounds for message in round_messages(one))
    return replace(request, messages=(*request.messages, *added))


def round_of(reply: Reply, *outputs: ToolOutput) -> ToolRound:
    """A reply with what its calls gave back."""
    return ToolRound(text=reply.text, calls=reply.calls, carried=reply.carried, outputs=outputs)


def collect(provider: ChatProvider, request: Request) -> list[Delta]:
    """Every delta of one answer; the provider is closed afterwards."""

    async def run() -> list[Delta]:
        try:
            return [delta async for delta in provider.stream(request)]
        finally:
            await provider.close()

    return asyncio.run(run())


def reply_to(provider: ChatProvider, request: Request) -> Reply:
    reply = fold_deltas(collect(provider, request))
    assert reply is not None
    return reply


async def take(stream: AsyncIterator[Delta], number: int) -> Sequence[Delta]:
    """The first few deltas."""
    return [await anext(stream) for _ in range(number)]
