"""The book of runs: who is answering where, in this process and, where a store is shared, in all of them."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from lamella.engine.runs.run import Run
from lamella.engine.runs.stops import StopSigns
from lamella.engine.sending.events import Event
from lamella.engine.workers import Workers
from lamella.ports import Clock, Shelf
from lamella.refusals import RunUnderwayError, ServerStoppingError

# How many that are over are kept in mind for those who lost their connection; the store has the rest.
_KEPT = 200
# How many wait for their turn in one conversation.
_QUEUE = 8
# How often it is looked whether another process is done.
_LOOK = 0.1
# How often a process looks for stop signs of others, and how often one who put one up looks whether it was heeded.
_HEED, _LOOKS = 0.5, 100
# How often a conversation that another process has is asked for before that is said.
_TRIES = 4
# A turn that is to be sent, made once nobody else is at it.
MakeEvents = Callable[[], Awaitable[AsyncGenerator[Event, None]]]


class Reservations(Protocol):
    """What processes that share a store take turns by, conversation by conversation.

    What ``waits`` for a server is asked by threads; the rest is asked where it is needed.
    """

    waits: bool

    def take(self, conversation: str) -> bool:
        """Whether this process may answer there now; then no other may until it is released."""
        ...

    def release(self, conversation: str) -> None: ...


class RunBook:
    """One run at a time in each conversation, at most ``most`` of them; each is stopped ``grace`` s after all left."""

    def __init__(
        self,
        reservations: Reservations,
        *,
        clock: Clock,
        workers: Workers,
        grace: float = 15.0,
        most: int = 500,
        shelf: Shelf | None = None,
    ) -> None:
        self._reservations = reservations
        self._signs = StopSigns(shelf, clock=clock) if shelf is not None and reservations.waits else None
        self._watching: asyncio.Task[None] | None = None
        self._clock = clock
        self._workers = workers
        self._grace = grace
        self._most = most
        self._under: dict[str, Run] = {}
        self._waiting: Counter[str] = Counter()
        self._over: OrderedDict[str, Run] = OrderedDict()
        self._ends: set[asyncio.Task[None]] = set()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._under)

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    def find(self, conversation: str) -> Run | None:
        """What is under way in a conversation, in this process."""
        return self._under.get(conversation)

    def find_named(self, name: str) -> Run | None:
        """A run by its name, also one that is over, as long as it is kept in mind."""
        under = (run for run in self._under.values() if run.name == name)
        return next(under, None) or self._over.get(name)

    async def start(self, conversation: str, make: MakeEvents, *, queue: bool = False) -> Run:
        """Begin a run and wait until its question is written down; where one is under way it waits, or is refused."""
        run = await self._claim(conversation, queue=queue)
        try:
            await self._reserve(conversation, queue=queue)
        except BaseException:
            self._let_go(run)
            raise
        try:
            run.begin(await make())
        except BaseException:
            await self._release(conversation)
            self._let_go(run)
            raise
        end = asyncio.get_running_loop().create_task(self._end(run))
        self._ends.add(end)
        end.add_done_callback(self._ends.discard)
        if self._signs is not None and (self._watching is None or self._watching.done()):
            self._watching = asyncio.get_running_loop().create_task(self._watch(self._signs))
        await run.wait_begun()
        return run

    async def stop(self, conversation: str) -> bool:
        """Stop what is under way in a conversation, in whichever process that is; whether there was something."""
        run = self._under.get(conversation)
        if run is not None and not run.brief:
            await run.stop()
            return True
        if self._signs is None or not await self.is_held_elsewhere(conversation):
            return False
        await self._workers.run(partial(self._signs.put, conversation))
        for _ in range(_LOOKS):
            await asyncio.sleep(_LOOK)
            if not await self.is_held_elsewhere(conversation):
                break
        await self._workers.run(partial(self._signs.remove, conversation))
        return True

    @asynccontextmanager
    async def hold(self, conversation: str) -> AsyncGenerator[None, None]:
        """A conversation in which nothing else happens meanwhile; refused while a turn is under way in it."""
        run = await self._claim(conversation, queue=False, brief=True)
        try:
            await self._reserve(conversation, queue=False)
            try:
                yield
            finally:
                await self._release(conversation)
        finally:
            self._let_go(run)

    async def is_held_elsewhere(self, conversation: str) -> bool:
        """Whether another process is answering in a conversation."""
        return await self._workers.run(partial(self.look_elsewhere, conversation))

    def look_elsewhere(self, conversation: str) -> bool:
        """The same for a thread that may wait."""
        if conversation in self._under:
            return False
        taken = self._reservations.take(conversation)
        if taken:
            self._reservations.release(conversation)
        return not taken

    async def close(self, seconds: float) -> None:
        """Begin nothing any more, let what is under way end for so many seconds, and stop the rest: all is kept."""
        self._stopping = True
        runs = list(self._under.values())
        if runs:
            await asyncio.wait([asyncio.ensure_future(run.wait_over()) for run in runs], timeout=seconds)
        await asyncio.gather(*(run.stop() for run in list(self._under.values())))
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        if self._ends:
            await asyncio.wait(set(self._ends))

    async def _watch(self, signs: StopSigns) -> None:
        """Stop what somebody asked another process to stop, as long as there is something under way here."""
        while under := {key: run for key, run in self._under.items() if not run.brief}:
            await asyncio.sleep(_HEED)
            for key, at in (await self._workers.run(partial(signs.find, list(under)))).items():
                # What was begun after the sign was put up is another turn.
                if under[key].since <= at:
                    await under[key].stop()

    async def _claim(self, conversation: str, *, queue: bool, brief: bool = False) -> Run:
        # What is brief is waited for, and what has told its end: they are over before anybody could ask again.
        while not self._stopping and (before := self._under.get(conversation)) and (queue or _is_short(before)):
            if self._waiting[conversation] >= _QUEUE:
                raise self._refuse(conversation)
            self._waiting[conversation] += 1
            try:
                await before.wait_gone()
            finally:
                self._waiting[conversation] -= 1
                if not self._waiting[conversation]:
                    del self._waiting[conversation]
        if self._stopping or len(self._under) >= self._most:
            why = "is being stopped" if self._stopping else f"has {self._most:,} turns under way, as many as it takes"
            raise ServerStoppingError(f"The server {why}.", hint="Try again in a moment.")
        if conversation in self._under:
            raise self._refuse(conversation)
        run = self._under[conversation] = Run(conversation, since=self._clock.now(), grace=self._grace, brief=brief)
        return run

    async def _reserve(self, conversation: str, *, queue: bool) -> None:
        # Another process may have told its end already, and be about to let go.
        tries = 0
        while not await self._take(conversation):
            tries += 1
            if self._stopping or (not queue and tries > _TRIES):
                raise RunUnderwayError(conversation, question=None, since=None)
            await asyncio.sleep(_LOOK)

    async def _take(self, conversation: str) -> bool:
        if not self._reservations.waits:
            return self._reservations.take(conversation)
        return await self._workers.run(lambda: self._reservations.take(conversation))

    async def _release(self, conversation: str) -> None:
        if not self._reservations.waits:
            self._reservations.release(conversation)
            return
        await self._workers.finish(lambda: self._reservations.release(conversation))

    def _refuse(self, conversation: str) -> RunUnderwayError:
        run = self._under[conversation]
        since = run.since.isoformat(timespec="seconds").replace("+00:00", "Z")
        return RunUnderwayError(conversation, question=run.message, since=since)

    async def _end(self, run: Run) -> None:
        await run.wait_over()
        try:
            await self._release(run.conversation)
        finally:
            self._let_go(run)

    def _let_go(self, run: Run) -> None:
        if self._under.get(run.conversation) is run:
            del self._under[run.conversation]
        run.let_go()
        if run.brief:
            return
        self._over[run.name] = run
        while len(self._over) > _KEPT:
            self._over.popitem(last=False)


def _is_short(run: Run) -> bool:
    return run.brief or run.is_ending
