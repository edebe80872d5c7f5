"""Asking the embedded model in tests: short prompts, one thread, and what was forecast beside what was reported."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages import Delta, Message, ModelReply, ModelRequest, Role, reply_from_deltas
from lamella.providers.local import CacheForecast, LlamaServerOptions, LocalProvider

T = TypeVar("T")
SMALL = LlamaServerOptions(saved_prompts_mib=0, window=256, batch_size=32)
TERSE = Message(role=Role.SYSTEM, pieces=("You are terse.",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An answer, and the forecast that was made for its question."""

    forecast: CacheForecast
    reply: ModelReply

    @property
    def reported(self) -> CacheForecast:
        usage = self.reply.usage
        return CacheForecast(
            prompt_tokens=usage.prompt_tokens or 0, cached_tokens=-1 if usage.read is None else usage.read
        )


def user(text: str) -> Message:
    return Message(role=Role.USER, pieces=(text,))


def assistant(text: str) -> Message:
    return Message(role=Role.ASSISTANT, pieces=(text,))


def request(
    *messages: Message, answer: int = 6, extras: str = '{"temperature": 0}', tools: tuple[ToolDefinition, ...] = ()
) -> ModelRequest:
    return ModelRequest(
        model="local", messages=messages, max_output_tokens=answer, extra_fields_json=extras, tools=tools
    )


async def ask(provider: LocalProvider, wanted: ModelRequest) -> Asked:
    forecast = await provider.forecast(wanted)
    reply = reply_from_deltas([delta async for delta in provider.stream(wanted)])
    assert reply is not None
    return Asked(forecast=forecast, reply=reply)


def run(work: Coroutine[None, None, T]) -> T:
    return asyncio.run(work)


async def leave(stream: AsyncIterator[Delta]) -> None:
    await stream.aclose()  # type: ignore[attr-defined]
