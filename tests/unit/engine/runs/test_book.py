"""The book of runs: one at a time in a conversation, in this process and in others that share the store."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from time import sleep

import pytest

from lamella.adapters.clocks.system import SystemClock
from lamella.adapters.stores.sharing.reservations import OpenReservations
from lamella.engine.runs.book import RunBook
from lamella.engine.sending.events import Event, EventName
from lamella.engine.workers import Workers
from lamella.errors import CallError
from lamella.refusals import RunUnderwayError, ServerStoppingError


class TakenReservations:
    """Another process answers in every conversation, until it is told to let go."""

    waits = True

    def __init__(self) -> None:
        self.taken = True
        self.released: list[str] = []

    def take(self, conversation: str) -> bool:
        return not self.taken

    def release(self, conversation: str) -> None:
        self.released.append(conversation)


async def say(gate: asyncio.Event) -> AsyncGenerator[Event, None]:
    yield Event(kind=EventName.DELTA, text="At ")
    await gate.wait()
    yield Event(kind=EventName.DELTA, text="noon.")


def make(book_of: object = None, **more: float | int) -> RunBook:
    reservations = OpenReservations() if book_of is None else book_of
    assert isinstance(reservations, OpenReservations | TakenReservations)
    return RunBook(reservations, clock=SystemClock(), workers=Workers(), **more)  # type: ignore[arg-type]


def test_what_fails_before_it_says_anything_is_raised_and_leaves_the_conversation_free() -> None:
    async def fail() -> AsyncGenerator[Event, None]:
        raise CallError("No.", hint="Yes.")

    async def broken() -> AsyncGenerator[Event, None]:
        raise CallError("Not at all.", hint="Yes.")
        yield Event(kind=EventName.DELTA)

    async def late() -> AsyncGenerator[Event, None]:
        return broken()

    async def go() -> None:
        book = make()
        for name, one in (("tides", fail), ("tides", late), ("moons", late)):
            with pytest.raises(CallError):
                await book.start(name, one, queue=True)
        await book.close(0)
        assert len(book) == 0

    asyncio.run(go())


def test_whoever_follows_late_hears_everything_and_whoever_knows_a_place_the_rest() -> None:
    async def go() -> None:
        gate, book = asyncio.Event(), make()

        async def begin() -> AsyncGenerator[Event, None]:
            return say(gate)

        run = await book.start("tides", begin)
        gate.set()
        whole = [one async for one in run.follow()]
        assert [event.text for _, event in whole] == ["At ", "noon."]
        assert [event.text async for _, event in run.follow(whole[0][0])] == ["noon."]
        assert book.find_named(run.name) is run
        await book.close(0)

    asyncio.run(go())


def test_a_conversation_that_another_process_answers_in_is_refused_and_waited_for_where_that_is_asked() -> None:
    async def go() -> None:
        elsewhere = TakenReservations()
        book = make(elsewhere)
        gate = asyncio.Event()
        gate.set()

        async def begin() -> AsyncGenerator[Event, None]:
            return say(gate)

        with pytest.raises(RunUnderwayError):
            await book.start("tides", begin)
        assert await book.is_held_elsewhere("tides")
        with pytest.raises(RunUnderwayError):
            async with book.hold("tides"):
                pass
        waiting = asyncio.create_task(book.start("tides", begin, queue=True))
        await asyncio.sleep(0)
        elsewhere.taken = False
        run = await waiting
        await run.wait_over()
        await book.close(0)
        assert elsewhere.released == ["tides"]

    asyncio.run(go())


class SlowReservations(OpenReservations):
    """Letting go takes a while."""

    waits = True

    def release(self, conversation: str) -> None:
        sleep(0.05)


def test_whoever_heard_the_end_may_ask_again_at_once() -> None:
    async def end() -> AsyncGenerator[Event, None]:
        yield Event(kind=EventName.DONE)
        await asyncio.sleep(0.02)

    async def begin() -> AsyncGenerator[Event, None]:
        return end()

    async def go() -> None:
        book = make(SlowReservations())
        for _ in range(3):
            run = await book.start("tides", begin)
            async with aclosing(run.follow()) as events:
                assert (await anext(events))[1].kind == "done"
        await book.close(1)

    asyncio.run(go())


def test_a_book_that_is_closed_stops_what_is_under_way_and_begins_nothing() -> None:
    async def go() -> None:
        book = make()

        async def begin() -> AsyncGenerator[Event, None]:
            return say(asyncio.Event())

        run = await book.start("tides", begin)
        await book.close(0)
        assert run.stopped
        assert run.is_over
        with pytest.raises(ServerStoppingError):
            await book.start("other", begin)

    asyncio.run(go())


def test_a_run_that_nobody_ever_follows_is_stopped_after_the_grace() -> None:
    async def go() -> None:
        book = make(grace=0.01)

        async def begin() -> AsyncGenerator[Event, None]:
            return say(asyncio.Event())

        run = await book.start("tides", begin)
        await asyncio.wait_for(run.wait_over(), 5)
        assert run.stopped
        await book.close(0)

    asyncio.run(go())
