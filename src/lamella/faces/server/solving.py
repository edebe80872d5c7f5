"""Solving: a question that comes with its history, answered in a run as every other turn is."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from secrets import token_hex

from fastapi import Request

from lamella.engine.engine import Engine
from lamella.engine.runs.run import Run
from lamella.engine.sending.events import Event
from lamella.errors import ReplyBrokenError
from lamella.faces.server.asking import AskedTurn
from lamella.faces.server.leaving import wait_with
from lamella.wiring import solve_request

_NAME_BYTES = 16


class AskedSolution(AskedTurn):
    """A request with its history that is asked for: in the conversation that keeps it, or in none."""

    _solution: dict[str, object] | None = None
    _head = ""

    async def answer(self, request: Request, body: Mapping[str, object], key: str | None) -> dict[str, object]:
        """The whole answer; ``key`` is of the conversation that it is kept in, where nobody else is answered then."""
        engine, runs = self.state.engine_of(self.caller), self.state.runs

        async def make() -> AsyncGenerator[Event, None]:
            return self.watch(self._solve(engine, body, key), key)

        # What is kept nowhere is in nobody's way, and counts among those that are under way.
        run = await runs.start(key or f"unkept-{token_hex(_NAME_BYTES)}", make)
        run.find_head = lambda: self._head
        await wait_with(request, _follow(run))
        if self._solution is None:
            where = "" if key is None else f" What was said is kept: GET /v1/conversations/{key}."
            raise ReplyBrokenError("The answer was stopped before its end.", hint=f"Ask again.{where}")
        return self._solution

    async def _solve(self, engine: Engine, body: Mapping[str, object], key: str | None) -> AsyncGenerator[Event, None]:
        """What happens on the way; the end is told once everything that belongs to the answer is known."""
        heard: asyncio.Queue[Event | None] = asyncio.Queue()
        solving = asyncio.get_running_loop().create_task(solve_request(engine, body, tell=heard.put_nowait))
        solving.add_done_callback(lambda _: heard.put_nowait(None))
        end: list[Event] = []
        try:
            while (event := await heard.get()) is not None:
                if event.kind == "done":
                    end.append(event)
                else:
                    yield event
            self._solution = await solving
            self._head = "" if key is None else (await engine.conversation(key)).head
            for event in end:
                yield event
        finally:
            solving.cancel()
            await asyncio.wait([solving])


async def _follow(run: Run) -> None:
    """Until an answer is over."""
    async with aclosing(run.follow()) as events:
        async for _ in events:
            pass
