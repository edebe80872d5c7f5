"""A small plugin of each kind, as a package would bring it."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import datetime
from decimal import Decimal

from lamella.attach import Tool
from lamella.conversation.runner_context import RunRequest
from lamella.conversation.turn_runner import TurnEvent
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.plugins import ReadText, ReplyInPrompt
from lamella.ports import Store
from lamella.runners.agent import run_chat
from lamella.testing import InMemoryStore


class Echo:
    """A provider whose model repeats the last message."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextDelta(text=request.messages[-1].text)
        yield StopDelta(reason=StopReason.END)

    async def close(self) -> None:
        """There is no connection."""


def open_echo(_model: str, *, timeout: float | None) -> Echo:
    return Echo()


_STORES: dict[str, Store] = {}


def open_shelf(url: str, *, timeout: float) -> Store:
    return _STORES.setdefault(url, InMemoryStore())


class WordCounter:
    """Counts words as tokens."""

    prefixes = ("echo:",)

    def count(self, text: str) -> int:
        return len(text.split()) or len(text)


def read_ticket(name: str) -> ReadText:
    return ReadText(text=f"Ticket {name}: the bridge opens at noon.\n" + "It creaks.\n" * 50, title=f"Ticket {name}")


async def run_shouting(run_request: RunRequest) -> AsyncGenerator[TurnEvent, None]:
    async for event in run_chat(run_request):
        yield event


def _roll(sides: int = 6) -> str:
    return f"One of {sides}."


ROLL = Tool(
    name="roll_dice",
    description="Rolls a die.",
    parameters={"type": "object", "properties": {"sides": {"type": "integer"}}},
    run=_roll,
)


def choose_longest(replies: Sequence[ReplyInPrompt]) -> list[str]:
    return [one.id for one in sorted(replies, key=lambda one: -len(one.text))]


class HousePrices:
    """Every token of the house's own models costs the same."""

    def price(self, model: str, usage: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None:
        return Decimal(usage.total + output) / 1_000_000 if model.startswith("echo:") else None


class BadgeScanner:
    """Finds numbers of staff badges."""

    anchors = ("BADGE-",)

    def scan(self, text: str) -> list[tuple[int, str]]:
        return [(number, "a badge") for number, line in enumerate(text.splitlines(), start=1) if "BADGE-" in line]
