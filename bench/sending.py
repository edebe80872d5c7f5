"""What Lamella adds around a model: a turn sent through it beside the same answer taken from the provider itself."""

import asyncio
import statistics
import time
from dataclasses import dataclass

import lamella
from bench.text import make_text
from lamella import Note
from lamella.core.messages import Usage
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

TURNS = 200
NOTE_EVERY = 10
MODEL = "anthropic:claude-opus-5-5"
_LINE = ScriptedReply(text=make_text(1, 400), chunk_size=20, usage=Usage(plain=100, read=0, write=0, output=100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The median of a turn through Lamella, and of the provider alone, in seconds."""

    sent_seconds: float
    alone_seconds: float

    @property
    def added_seconds(self) -> float:
        return self.sent_seconds - self.alone_seconds


def measure_overhead(url: str) -> Overhead:
    """Send a conversation turn by turn, then every request of it again without Lamella."""
    return asyncio.run(_measure(url))


async def _measure(url: str) -> Overhead:
    provider = ScriptedProvider(*[_LINE for _ in range(2 * TURNS)])
    sent: list[float] = []
    async with lamella.open(url, model=MODEL, provider=provider) as engine:
        conversation = await engine.conversation("bench", layout="in_place", window=10**9)
        for number in range(TURNS):
            notes = [Note(path=f"{number}.md", text=make_text(number))] if number % NOTE_EVERY == 0 else []
            started = time.perf_counter()
            async for _ in conversation.send(f"Question {number}?", attach=notes):
                pass
            sent.append(time.perf_counter() - started)
    alone: list[float] = []
    for request in list(provider.requests):
        started = time.perf_counter()
        async for _ in provider.stream(request):
            pass
        alone.append(time.perf_counter() - started)
    return Overhead(sent_seconds=statistics.median(sent), alone_seconds=statistics.median(alone))
