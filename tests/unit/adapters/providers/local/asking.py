"""Asking the embedded model in tests: short prompts, one thread, and what was forecast beside what was reported."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from lamella.adapters.providers.local.cache import Forecast
from lamella.adapters.providers.local.engine import EngineOptions
from lamella.adapters.providers.local.provider import LocalProvider
from lamella.core.artifacts.model import ToolDefinition
from lamella.core.messages.delta import Delta, Reply, fold_deltas
from lamella.core.messages.model import Message, Role
from lamella.core.messages.request import Request

T = TypeVar("T")
SMALL = EngineOptions(shelf=0, window=256, batch=32)
TERSE = Message(role=Role.SYSTEM, pieces=("You are terse.",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An answer, and the forecast that was made for its question."""

    forecast: Forecast
    reply: Reply

    @property
    def reported(self) -> Forecast:
        usage = self.reply.usage
        return Forecast(prompt=usage.prompt or 0, cached=-1 if usage.read is None else usage.read)


def user(text: str) -> Message:
    return Message(role=Role.USER, pieces=(text,))


def assistant(text: str) -> Message:
    return Message(role=Role.ASSISTANT, pieces=(text,))


def request(
    *messages: Message, answer: int = 6, extras: str = '{"temperature": 0}', tools: tuple[ToolDefinition, ...] = ()
) -> Request:
    return Request(model="local", messages=messages, answer=answer, extras=extras, tools=tools)


async def ask(provider: LocalProvider, wanted: Request) -> Asked:
    forecast = await provider.forecast(wanted)
    reply = fold_deltas([delta async for delta in provider.stream(wanted)])
    assert reply is not None
    return Asked(forecast=forecast, reply=reply)


def run(work: Coroutine[None, None, T]) -> T:
    return asyncio.run(work)


async def leave(stream: AsyncIterator[Delta]) -> None:
    await stream.aclose()  # type: ignore[attr-defined]
