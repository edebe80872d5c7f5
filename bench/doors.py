"""A note chat through the doors of the server beside the same requests sent directly, documents glued into each."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import httpx2

import lamella
from bench.text import make_text
from bench.verdicts import Verdicts
from lamella.testing import ScriptedProvider

TURNS = 40
MODEL = "anthropic:claude-opus-5-5"
DOORS = ("/v1/chat/completions", "/v1/messages")
LAYOUTS = ("in_place", "auto")
_LAYOUT = "LAMELLA_LAYOUT"
_WINDOW = 1_000_000
_DOCUMENTS = 8
_GLUED = 3
_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorCost:
    """What some turns cost through a door and sent directly.

    Of the ``glued`` documents of all questions so many were ``readable`` in the request that answered theirs.
    """

    through: Decimal
    directly: Decimal
    readable: int
    glued: int

    @property
    def ratio(self) -> float:
        return float(self.through / self.directly)


def measure_door(path: str, turns: int = TURNS, *, layout: str = "in_place") -> DoorCost:
    """The same note chat, through a door and directly, by the ledger of each."""
    before = os.environ.get(_LAYOUT)
    os.environ[_LAYOUT] = layout
    try:
        return asyncio.run(_measure(path, turns))
    finally:
        del os.environ[_LAYOUT]
        if before is not None:
            os.environ[_LAYOUT] = before


async def _measure(path: str, turns: int) -> DoorCost:
    from lamella.server.app import make_app
    from lamella.server.serving import ServerOptions, open_server_state

    replies = [f"That is answer {number}." for number in range(turns)]
    script = ScriptedProvider(*replies)
    state = open_server_state(ServerOptions(store="memory:", model=MODEL), provider=script)
    transport = httpx2.ASGITransport(make_app(state))
    history: list[dict[str, Any]] = []
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for number, reply in enumerate(replies):
            history.append({"role": "user", "content": ask(number)})
            answer = await client.post(path, json={"model": MODEL, "max_tokens": 500, "messages": history})
            answer.raise_for_status()
            history.append({"role": "assistant", "content": reply})
        key = answer.headers["x-lamella-conversation"]
        totals = (await client.get(f"/v1/conversations/{key}/ledger")).json()["totals"]
    await state.runs.close(0)
    await state.engine_pool.close()
    sent = ["\n".join(message.text for message in request.messages) for request in script.requests]
    assert len(sent) == turns, "each question was sent once"
    wanted = [(text, name) for text, number in zip(sent, range(turns), strict=True) for name in list_glued(number)]
    readable = sum(make_text(name, _CHARACTERS).strip() in text for text, name in wanted)
    through = Decimal(totals["cost"])
    return DoorCost(through=through, directly=_cost_directly(replies), readable=readable, glued=len(wanted))


def list_glued(number: int) -> list[int]:
    """The documents that a host glues to a question: those that its user has open, which change slowly."""
    return [(number // 5 + shift) % _DOCUMENTS for shift in range(_GLUED)]


def ask(number: int) -> str:
    """A question as a host writes it: its documents first, in frames."""
    frames = [
        f'<document path="note-{name}.md">\n{make_text(name, _CHARACTERS)}\n</document>' for name in list_glued(number)
    ]
    return "\n".join((*frames, f"What of point {number}?"))


def _cost_directly(replies: Sequence[str]) -> Decimal:
    """The same history as the host sends it by itself: every message as it was glued."""
    chat = lamella.Conversation(model=MODEL, window=_WINDOW, layout="in_place")
    cost = Decimal(0)
    for number, reply in enumerate(replies):
        turn = chat.ask(ask(number), at=datetime.now(UTC))
        assert turn.cost is not None, "the model has a price"
        cost += turn.cost.amount
        chat.reply(reply, at=datetime.now(UTC))
    return cost


def bench_doors(verdicts: Verdicts) -> None:
    """A note chat that glues its documents into messages, through the doors beside sent directly."""
    print(
        f"doors: {TURNS} turns, {_GLUED} of {_DOCUMENTS} documents of {_CHARACTERS:,} characters with each", flush=True
    )
    for path, layout in product(DOORS, LAYOUTS):
        cost = measure_door(path, layout=layout)
        print(f"  {path}, {layout}: {cost.through} USD through it, {cost.directly} USD directly", flush=True)
        verdicts.at_most(f"{path}, {layout}: cost over that of sending directly", cost.ratio, 0.7)
        verdicts.at_most(f"{path}, {layout}: documents that cannot be read", cost.glued - cost.readable, 0)
