"""A run: one turn on its way to its answer, told to as many as follow it, whenever they come."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import datetime
from secrets import token_hex

from lamella.engine.dialogue.turn import TurnView
from lamella.engine.runs.place import EventPlace, TellingEvent
from lamella.engine.sending.events import Event, EventName

_NAME_BYTES = 4


async def announce(turn: TurnView, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events of a turn that was written down before, after the one that tells of it, as every other turn has."""
    async with aclosing(events):
        yield Event(kind=EventName.ENVELOPE, turn=turn)
        async for event in events:
            yield event


class Run:
    """The events of a turn as they come. It goes on while nobody follows it, for ``grace`` seconds and no longer.

    ``message`` is the question, once that is written down. What had been said when a run is stopped is kept. One that
    is ``brief`` asks no model: it only keeps others from the conversation.
    """

    def __init__(self, conversation: str, *, since: datetime, grace: float, brief: bool = False) -> None:
        self.conversation = conversation
        self.brief = brief
        self.since = since
        self.name = token_hex(_NAME_BYTES)
        self.message: str | None = None
        self.error: BaseException | None = None
        # Tells the last message of the conversation that the run is in.
        self.find_head: Callable[[], str] | None = None
        self.stopped = False
        self._grace = grace
        self._told: list[TellingEvent] = []
        self._round, self._said = 0, 0
        self._news = asyncio.Event()
        self._over = asyncio.Event()
        self._gone = asyncio.Event()
        self._followers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, events: AsyncGenerator[Event, None]) -> None:
        """Take the events of a turn in, from now on."""
        self._task = asyncio.get_running_loop().create_task(self._take(events))
        self._listen_for_leaving()

    @property
    def reply(self) -> str | None:
        """The reply by its id, once it is written down."""
        head = None if self.find_head is None else self.find_head()
        return None if head == self.message else head

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    @property
    def is_ending(self) -> bool:
        """Whether whoever follows was told of the end: what is left to do is done in a moment."""
        return self.is_over or bool(self._told and self._told[-1][1].kind is EventName.DONE)

    def let_go(self) -> None:
        """Others may have the conversation from now on."""
        self.end()
        self._gone.set()

    async def wait_gone(self) -> None:
        """Until others may have the conversation."""
        await self._gone.wait()

    async def wait_begun(self) -> None:
        """Until the question is written down; an error before that is raised here, and nobody else hears of it."""
        while not self._told and not self.is_over:
            await self._wait_news()
        if not self._told and self.error is not None:
            raise self.error

    async def wait_over(self) -> None:
        await self._over.wait()

    async def follow(self, after: EventPlace | None = None) -> AsyncGenerator[TellingEvent, None]:
        """Every event, or those after a place of this run; an error of the run is raised at the end."""
        self._followers += 1
        self._stop_timer()
        try:
            at = 0 if after is None else min(after.number, len(self._told))
            while True:
                while at < len(self._told):
                    at += 1
                    yield self._told[at - 1]
                if self.is_over:
                    break
                await self._wait_news()
            if self.error is not None:
                raise self.error
        finally:
            self._followers -= 1
            self._listen_for_leaving()

    async def stop(self) -> None:
        """Stop the model, and wait until what it said is written down."""
        if self._task is not None and not self.is_over:
            self.stopped = True
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)
        await self.wait_over()

    def end(self) -> None:
        """It is over; also one that never began is."""
        self._stop_timer()
        self._over.set()
        self._tell_news()

    async def _take(self, events: AsyncGenerator[Event, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    self._note(event)
        except asyncio.CancelledError:
            self.stopped = True
            self._note(Event(kind=EventName.DONE))
        except BaseException as error:  # noqa: BLE001 - whoever follows is told, whatever it is
            self.error = error
        finally:
            self.end()

    def _note(self, event: Event) -> None:
        if event.turn is not None:
            self.message = event.turn.envelope.message_id
            prompt = event.turn.envelope.prompt
            rounds = len(prompt.unsent) + len(prompt.rounds)
            self._round, self._said = rounds, self._said if rounds == self._round else 0
        self._said += len(event.text)
        place = EventPlace(self.message or "0", self.name, len(self._told) + 1, self._round, self._said)
        self._told.append((place, event))
        self._tell_news()

    def _tell_news(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _wait_news(self) -> None:
        await self._news.wait()

    def _listen_for_leaving(self) -> None:
        """Where nobody is left who follows, it is stopped after the grace, unless somebody comes."""
        if self._followers or self.is_over or self._timer is not None or self._task is None:
            return
        self._timer = asyncio.get_running_loop().call_later(self._grace, self._task.cancel)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
