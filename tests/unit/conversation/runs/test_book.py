"""The book of runs: one at a time in a conversation, in this process and in others that share the store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import sleep

import pytest
from tests.waiting import HANG_SECONDS

from lamella.clocks import SystemClock
from lamella.conversation.runs import RunRegistry
from lamella.conversation.threads import Workers
from lamella.conversation.turn_runner import EventName, TurnEvent
from lamella.errors import InvalidOperationError, RunInProgressError, ServerUnavailableError
from lamella.stores.sharing import NoReservations


class TakenReservations:
    """Another process answers in every conversation, until it is told to let go."""

    needs_thread = True

    def __init__(self) -> None:
        self.taken = True
        self.released: list[str] = []

    def acquire(self, conversation_key: str) -> bool:
        return not self.taken

    def release(self, conversation_key: str) -> None:
        self.released.append(conversation_key)


async def say(gate: asyncio.Event) -> AsyncGenerator[TurnEvent, None]:
    yield TurnEvent(kind=EventName.DELTA, text="At ")
    await gate.wait()
    yield TurnEvent(kind=EventName.DELTA, text="noon.")


def make(book_of: object = None, **more: float | int) -> RunRegistry:
    reservations = NoReservations() if book_of is None else book_of
    assert isinstance(reservations, NoReservations | TakenReservations)
    return RunRegistry(reservations, clock=SystemClock(), workers=Workers(), **more)  # type: ignore[arg-type]


def test_early_failure_is_raised_and_frees_conversation() -> None:
    async def fail() -> AsyncGenerator[TurnEvent, None]:
        raise InvalidOperationError("No.", hint="Yes.")

    async def broken() -> AsyncGenerator[TurnEvent, None]:
        raise InvalidOperationError("Not at all.", hint="Yes.")
        yield TurnEvent(kind=EventName.DELTA)

    async def late() -> AsyncGenerator[TurnEvent, None]:
        return broken()

    async def go() -> None:
        book = make()
        for name, one in (("tides", fail), ("tides", late), ("moons", late)):
            with pytest.raises(InvalidOperationError):
                await book.start(name, one, queue=True)
        await book.close(0)
        assert len(book) == 0

    asyncio.run(go())


def test_late_follower_gets_all_events_or_the_rest() -> None:
    async def go() -> None:
        gate, book = asyncio.Event(), make()

        async def begin() -> AsyncGenerator[TurnEvent, None]:
            return say(gate)

        run = await book.start("tides", begin)
        gate.set()
        whole = [one async for one in run.follow()]
        assert [event.text for _, event in whole] == ["At ", "noon."]
        assert [event.text async for _, event in run.follow(whole[0][0])] == ["noon."]
        assert book.find_run_by_name(run.name) is run
        await book.close(0)

    asyncio.run(go())


def test_run_in_other_process_is_refused_or_waited_for() -> None:
    async def go() -> None:
        elsewhere = TakenReservations()
        book = make(elsewhere)
        gate = asyncio.Event()
        gate.set()

        async def begin() -> AsyncGenerator[TurnEvent, None]:
            return say(gate)

        with pytest.raises(RunInProgressError):
            await book.start("tides", begin)
        assert await book.is_answered_elsewhere("tides")
        with pytest.raises(RunInProgressError):
            async with book.exclusive("tides"):
                pass
        waiting = asyncio.create_task(book.start("tides", begin, queue=True))
        await asyncio.sleep(0)
        elsewhere.taken = False
        run = await waiting
        await run.wait_until_finished()
        await book.close(0)
        assert elsewhere.released == ["tides"]

    asyncio.run(go())


class SlowReservations(NoReservations):
    """Letting go takes a while."""

    needs_thread = True

    def release(self, conversation_key: str) -> None:
        sleep(0.05)


def test_next_question_is_allowed_right_after_end() -> None:
    async def end() -> AsyncGenerator[TurnEvent, None]:
        yield TurnEvent(kind=EventName.DONE)
        await asyncio.sleep(0.02)

    async def begin() -> AsyncGenerator[TurnEvent, None]:
        return end()

    async def go() -> None:
        book = make(SlowReservations())
        for _ in range(3):
            run = await book.start("tides", begin)
            async with aclosing(run.follow()) as events:
                assert (await anext(events))[1].kind == "done"
        await book.close(1)

    asyncio.run(go())


def test_closed_registry_stops_runs_and_starts_none() -> None:
    async def go() -> None:
        book = make()

        async def begin() -> AsyncGenerator[TurnEvent, None]:
            return say(asyncio.Event())

        run = await book.start("tides", begin)
        await book.close(0)
        assert run.cut_reason == "interrupted"
        assert run.is_over
        with pytest.raises(ServerUnavailableError):
            await book.start("other", begin)

    asyncio.run(go())


def test_run_without_followers_is_stopped_after_grace_period() -> None:
    async def go() -> None:
        book = make(grace_seconds=0.01)

        async def begin() -> AsyncGenerator[TurnEvent, None]:
            return say(asyncio.Event())

        run = await book.start("tides", begin)
        await asyncio.wait_for(run.wait_until_finished(), HANG_SECONDS)
        assert run.cut_reason == "interrupted"
        await book.close(0)

    asyncio.run(go())
