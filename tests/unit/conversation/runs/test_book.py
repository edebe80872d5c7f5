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
from lamella.conversation.turn_runner import Event, EventName
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


async def say(gate: asyncio.Event) -> AsyncGenerator[Event, None]:
    yield Event(kind=EventName.DELTA, text="At ")
    await gate.wait()
    yield Event(kind=EventName.DELTA, text="noon.")


def make(book_of: object = None, **more: float | int) -> RunRegistry:
    reservations = NoReservations() if book_of is None else book_of
    assert isinstance(reservations, NoReservations | TakenReservations)
    return RunRegistry(reservations, clock=SystemClock(), workers=Workers(), **more)  # type: ignore[arg-type]


def test_what_fails_before_it_says_anything_is_raised_and_leaves_the_conversation_free() -> None:
    async def fail() -> AsyncGenerator[Event, None]:
        raise InvalidOperationError("No.", hint="Yes.")

    async def broken() -> AsyncGenerator[Event, None]:
        raise InvalidOperationError("Not at all.", hint="Yes.")
        yield Event(kind=EventName.DELTA)

    async def late() -> AsyncGenerator[Event, None]:
        return broken()

    async def go() -> None:
        book = make()
        for name, one in (("tides", fail), ("tides", late), ("moons", late)):
            with pytest.raises(InvalidOperationError):
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
        assert book.find_run_by_name(run.name) is run
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
        assert run.cut_reason == "interrupted"
        assert run.is_over
        with pytest.raises(ServerUnavailableError):
            await book.start("other", begin)

    asyncio.run(go())


def test_a_run_that_nobody_ever_follows_is_stopped_after_the_grace() -> None:
    async def go() -> None:
        book = make(grace_seconds=0.01)

        async def begin() -> AsyncGenerator[Event, None]:
            return say(asyncio.Event())

        run = await book.start("tides", begin)
        await asyncio.wait_for(run.wait_until_finished(), HANG_SECONDS)
        assert run.cut_reason == "interrupted"
        await book.close(0)

    asyncio.run(go())
