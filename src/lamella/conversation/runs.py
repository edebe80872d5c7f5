"""Runs: turns being answered, whose events any number of followers can read at any time.

``RunRegistry`` allows one run per conversation, here and in other processes, and ``Run`` has the events of one turn.
``replay_turn_events`` replays a recorded answer for followers that missed a part or came later. A ``StreamPosition``
is written so that another process can read it. ``RunSignals`` reach whichever process is answering: a stop, or the
user's answer to a tool that asks whether it may write.
"""

import asyncio
import re
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex
from typing import NamedTuple, Protocol

from lamella.conversation.threads import Workers
from lamella.conversation.turn import BuiltTurn
from lamella.conversation.turn_runner import EventName, PermissionRequest, TurnEvent
from lamella.core.log.branch import read_rounds
from lamella.core.log.call import IncompleteReplyReason
from lamella.core.log.events.call import to_model_call
from lamella.core.log.turn import ReplyEvent
from lamella.core.log.turn_records import TurnRecord
from lamella.core.messages import ToolRound
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, NotFoundError, RunInProgressError, ServerUnavailableError
from lamella.ports import AllowWrite, Clock, FileChange, SharedTable

_EVENT_ID = re.compile(r"([0-9a-f]{1,64})\.([0-9a-f]{1,32})\.([0-9]{1,9})\.([0-9]{1,6})\.([0-9]{1,9})")


class StreamPosition(NamedTuple):
    """The position of an event: the question, the run, and how much of the answer came before it.

    ``number`` counts the events of the run. A process that does not know the run uses ``tool_round``, the finished tool
    rounds, and ``character_count``, the characters of text since then.
    """

    message_id: str
    run: str
    number: int
    tool_round: int
    character_count: int

    def to_event_id(self) -> str:
        """Return the position as an event id."""
        return ".".join(map(str, self))


# An event with the position after it.
PositionedEvent = tuple[StreamPosition, TurnEvent]


def parse_event_id(text: str) -> StreamPosition:
    """Parse an event id; raises ``InvalidOperationError`` if it is malformed."""
    found = _EVENT_ID.fullmatch(text.strip())
    if found is None:
        raise InvalidOperationError(
            f"{text[:80]!r} is no id of an event.", hint="Give the id of the last event as it came."
        )
    message, run, *numbers = found.groups()
    return StreamPosition(message, run, *map(int, numbers))


# Replay of recorded answers.

# The run name in positions of events that are replayed from the store.
_STORED_RUN = "0"


def replay_turn_events(
    record: TurnRecord, contents: Mapping[str, bytes], *, after_position: StreamPosition | None
) -> Sequence[PositionedEvent]:
    """Return the events of a recorded answer after a position; the last one is the end, if the answer ended."""
    done, character_count = (
        (0, 0) if after_position is None else (after_position.tool_round, after_position.character_count)
    )
    message = record.message.id
    found: list[PositionedEvent] = []
    rounds = read_rounds(record, contents)
    for number, one in enumerate(rounds[done:], start=done):
        heard = character_count if number == done else 0
        found += [
            (_position_in_stored_answer(message, number, heard + shift), event)
            for shift, event in _replay_round_events(one, heard)
        ]
    if record.reply is None:
        return _number_events(found)
    heard = character_count if done >= len(rounds) else 0
    rest, length = record.reply.text[heard:], len(record.reply.text)
    if rest:
        found.append(
            (_position_in_stored_answer(message, len(rounds), length), TurnEvent(kind=EventName.DELTA, text=rest))
        )
    event = record.reply.event
    calls = [to_model_call(call) for call in event.calls] if isinstance(event, ReplyEvent) else []
    end = _position_in_stored_answer(message, len(rounds), length)
    found += [(end, TurnEvent(kind=EventName.USAGE, usage=call.usage)) for call in calls[-1:]]
    return _number_events([*found, (end, TurnEvent(kind=EventName.DONE))])


def _replay_round_events(tool_round: ToolRound, characters_before: int) -> Iterator[tuple[int, TurnEvent]]:
    """Yield the events of a tool round, each with the number of characters added by then."""
    rest = tool_round.text[characters_before:]
    if rest:
        yield len(rest), TurnEvent(kind=EventName.DELTA, text=rest)
    for call in tool_round.calls:
        yield len(rest), TurnEvent(kind=EventName.TOOL, call=call)
    for output in tool_round.outputs:
        yield len(rest), TurnEvent(kind=EventName.TOOL, output=output)


def _position_in_stored_answer(message: str, tool_round: int, character_count: int) -> StreamPosition:
    return StreamPosition(message, _STORED_RUN, 0, tool_round, character_count)


def _number_events(events: Sequence[PositionedEvent]) -> list[PositionedEvent]:
    return [(place._replace(number=number), event) for number, (place, event) in enumerate(events, start=1)]


# One run.

_RUN_NAME_BYTES = 4
_PERMISSION_ID_BYTES = 8
# How long a run without followers waits for an answer of the user. No model runs meanwhile, so it may be longer than
# the grace period: a page that was closed over lunch finds the question where it was.
PERMISSION_GRACE_SECONDS = 3_600.0


async def with_start_event(turn: BuiltTurn, events: AsyncGenerator[TurnEvent, None]) -> AsyncGenerator[TurnEvent, None]:
    """Yield the start event of a turn that was recorded before, then its events.

    Other turns send the start event themselves.
    """
    async with aclosing(events):
        yield TurnEvent(kind=EventName.ENVELOPE, turn=turn)
        async for event in events:
            yield event


class Run:
    """The events of a turn as they arrive; without followers it continues for ``grace_seconds`` at most.

    ``message_id`` is the id of the question once it is recorded. Text that arrived before a stop is kept. A run with
    ``is_brief`` calls no model: it only reserves the conversation. With ``asks_user`` its followers can answer when a
    tool asks whether it may write.
    """

    def __init__(
        self,
        conversation_key: str,
        *,
        started_at: datetime,
        grace_seconds: float,
        is_brief: bool = False,
        asks_user: bool = False,
    ) -> None:
        self.conversation_key = conversation_key
        self.is_brief = is_brief
        self.asks_user = asks_user
        self.started_at = started_at
        self.name = token_hex(_RUN_NAME_BYTES)
        self.message_id: str | None = None
        self.error: BaseException | None = None
        # Returns the last message of the conversation that the run belongs to.
        self.get_head: Callable[[], str] | None = None
        # Why the answer ended before its end, or None.
        self.cut_reason: IncompleteReplyReason | None = None
        self._grace_seconds = grace_seconds
        self._events: list[PositionedEvent] = []
        self._tool_round, self._character_count = 0, 0
        self._event_arrived = asyncio.Event()
        self._finished = asyncio.Event()
        self._released = asyncio.Event()
        self._follower_count = 0
        self._grace_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._open_permissions: dict[str, asyncio.Future[bool]] = {}

    def start(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        """Start to consume the events of a turn."""
        self._task = asyncio.get_running_loop().create_task(self._consume_events(events))
        self._start_grace_timer()

    @property
    def reply_id(self) -> str | None:
        """Return the id of the reply once it is recorded, or None."""
        head = None if self.get_head is None else self.get_head()
        return None if head == self.message_id else head

    @property
    def is_over(self) -> bool:
        """Return whether the run has finished."""
        return self._finished.is_set()

    @property
    def is_ending(self) -> bool:
        """Return whether the last event was sent; the remaining work takes only a moment."""
        return self.is_over or bool(self._events and self._events[-1][1].kind is EventName.DONE)

    def release(self) -> None:
        """Finish the run and let other runs use the conversation."""
        self.mark_finished()
        self._released.set()

    async def wait_until_released(self) -> None:
        """Wait until other runs may use the conversation."""
        await self._released.wait()

    async def wait_until_started(self) -> None:
        """Wait until the question is recorded; an error before that is raised only here."""
        while not self._events and not self.is_over:
            await self._wait_for_event()
        if not self._events and self.error is not None:
            raise self.error

    async def wait_until_finished(self) -> None:
        """Wait until the run has finished."""
        await self._finished.wait()

    async def follow(self, after: StreamPosition | None = None) -> AsyncGenerator[PositionedEvent, None]:
        """Yield every event, or those after a position of this run; an error of the run is raised at the end."""
        self._follower_count += 1
        self._stop_timer()
        try:
            at = 0 if after is None else min(after.number, len(self._events))
            while True:
                while at < len(self._events):
                    at += 1
                    yield self._events[at - 1]
                if self.is_over:
                    break
                await self._wait_for_event()
            if self.error is not None:
                raise self.error
        finally:
            self._follower_count -= 1
            self._start_grace_timer()

    @property
    def open_permissions(self) -> Sequence[str]:
        """Return the ids of the permission requests that wait for an answer."""
        return list(self._open_permissions)

    async def ask_permission(self, change: FileChange) -> bool:
        """Ask the followers whether a change may be written, and return the answer; waits until one answers."""
        request = PermissionRequest(id=token_hex(_PERMISSION_ID_BYTES), change=change)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._open_permissions[request.id] = answer
        self._restart_grace_timer()
        self._update_status(TurnEvent(kind=EventName.PERMISSION, permission=request))
        try:
            allowed = await answer
        finally:
            del self._open_permissions[request.id]
            self._restart_grace_timer()
        self._update_status(TurnEvent(kind=EventName.PERMISSION, permission=replace(request, allowed=allowed)))
        return allowed

    def answer_permission(self, permission_id: str, *, allowed: bool) -> bool:
        """Give the user's answer to a permission request; return whether that request was waiting for it."""
        answer = self._open_permissions.get(permission_id)
        if answer is None or answer.done():
            return False
        answer.set_result(allowed)
        return True

    async def stop(self, reason: IncompleteReplyReason = IncompleteReplyReason.STOPPED) -> None:
        """Stop the model and wait until the text so far is recorded."""
        if self._task is not None and not self.is_over:
            self._cancel(self._task, reason)
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)
        await self.wait_until_finished()

    def _cancel(self, task: asyncio.Task[None], reason: IncompleteReplyReason) -> None:
        self.cut_reason = self.cut_reason or reason
        # The code that records the answer reads the reason from the exception.
        task.cancel(reason)

    def mark_finished(self) -> None:
        """Mark the run as finished, including a run that never started."""
        self._stop_timer()
        self._finished.set()
        self._notify_followers()

    async def _consume_events(self, events: AsyncGenerator[TurnEvent, None]) -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    self._update_status(event)
        except asyncio.CancelledError:
            self.cut_reason = self.cut_reason or IncompleteReplyReason.INTERRUPTED
            self._update_status(TurnEvent(kind=EventName.DONE))
        except BaseException as error:  # noqa: BLE001 - the error is raised to the followers
            self.error = error
        finally:
            self.mark_finished()

    def _update_status(self, event: TurnEvent) -> None:
        if event.turn is not None:
            self.message_id = event.turn.envelope.message_id
            prompt = event.turn.envelope.prompt
            rounds = len(prompt.removed_rounds) + len(prompt.rounds)
            self._tool_round, self._character_count = rounds, self._character_count if rounds == self._tool_round else 0
        self._character_count += len(event.text)
        place = StreamPosition(
            self.message_id or "0", self.name, len(self._events) + 1, self._tool_round, self._character_count
        )
        self._events.append((place, event))
        self._notify_followers()

    def _notify_followers(self) -> None:
        # Replace the event before setting it, so that followers that wait again get the new one.
        news, self._event_arrived = self._event_arrived, asyncio.Event()
        news.set()

    async def _wait_for_event(self) -> None:
        await self._event_arrived.wait()

    def _start_grace_timer(self) -> None:
        """Without followers, stop the run after the grace period unless a follower comes."""
        if self._follower_count or self.is_over or self._grace_timer is not None or self._task is None:
            return
        grace = max(self._grace_seconds, PERMISSION_GRACE_SECONDS) if self._open_permissions else self._grace_seconds
        self._grace_timer = asyncio.get_running_loop().call_later(
            grace, self._cancel, self._task, IncompleteReplyReason.INTERRUPTED
        )

    def _restart_grace_timer(self) -> None:
        self._stop_timer()
        self._start_grace_timer()

    def _stop_timer(self) -> None:
        if self._grace_timer is not None:
            self._grace_timer.cancel()
            self._grace_timer = None


# Signals to a run in another process.

# Older signals are ignored: their run is over.
_SIGNAL_RETENTION = timedelta(seconds=30)
_ALLOWED, _DENIED = "allowed", "denied"


class RunSignals:
    """Requests to stop and answers of users, in the shared table of a store, for the process that runs the turn."""

    def __init__(self, shared_table: SharedTable, *, clock: Clock) -> None:
        self._shared_table = shared_table
        self._clock = clock

    def request_stop(self, conversation_key: str) -> None:
        """Ask the process that is answering in a conversation to stop."""
        self._set(conversation_key, _stop_key(conversation_key), self._clock.now().isoformat())

    def find_stop_requests(self, conversations: Sequence[str]) -> Mapping[str, datetime]:
        """Return those of these conversations that have a stop request, with its time."""
        names = {_stop_key(one): one for one in conversations}
        found = self._shared_table.get_many(*names, at=self._clock.now())
        return {names[name]: datetime.fromisoformat(at) for name, at in found.items()}

    def remove_stop_request(self, conversation_key: str) -> None:
        """Remove the stop request, after it took effect or timed out."""
        self._shared_table.remove(_stop_key(conversation_key))

    def answer_permission(self, conversation_key: str, permission_id: str, *, allowed: bool) -> None:
        """Give the user's answer to the process that waits for it."""
        self._set(conversation_key, _permission_key(permission_id), _ALLOWED if allowed else _DENIED)

    def find_permission_answers(self, permission_ids: Sequence[str]) -> Mapping[str, bool]:
        """Return those of these permission requests that were answered, with the answer."""
        names = {_permission_key(one): one for one in permission_ids}
        found = self._shared_table.get_many(*names, at=self._clock.now())
        return {names[name]: answer == _ALLOWED for name, answer in found.items()}

    def _set(self, conversation_key: str, name: str, value: str) -> None:
        at = self._clock.now()
        self._shared_table.set(name, value, at=at, expires_at=at + _SIGNAL_RETENTION, conversation_key=conversation_key)


def _stop_key(conversation_key: str) -> str:
    return f"stop:{conversation_key}"


def _permission_key(permission_id: str) -> str:
    return f"permission:{permission_id}"


# The registry of runs.

# How many finished runs are kept in memory for followers that lost their connection. The store has the rest.
_MAX_FINISHED_RUNS = 200
# How many requests may wait in one conversation.
_MAX_QUEUED = 8
# Seconds between two checks whether another process has finished.
_POLL_SECONDS = 0.1
# Seconds between two checks for signals of other processes, and how often a stop request checks for its effect.
_SIGNAL_POLL_SECONDS, _MAX_STOP_POLLS = 0.5, 100
# How often a conversation reserved by another process is tried before the request is rejected.
_MAX_RESERVE_TRIES = 4
# Builds the turn to send; called when no other run uses the conversation.
MakeEvents = Callable[[], Awaitable[AsyncGenerator[TurnEvent, None]]]


class Reservations(Protocol):
    """Locks by which processes on one store take turns, one per conversation.

    If ``needs_thread`` is True, the calls wait for a server and are made in worker threads. Otherwise they are made
    directly.
    """

    needs_thread: bool

    def acquire(self, conversation_key: str) -> bool:
        """Return whether this process may answer in the conversation now; it then has it until ``release``."""
        ...

    def release(self, conversation_key: str) -> None: ...


class RunRegistry:
    """At most one run per conversation and ``max_runs`` runs in all.

    A run is stopped ``grace_seconds`` after its last follower left.
    """

    def __init__(
        self,
        reservations: Reservations,
        *,
        clock: Clock,
        workers: Workers,
        grace_seconds: float = 15.0,
        max_runs: int = 500,
        shared_table: SharedTable | None = None,
    ) -> None:
        self._reservations = reservations
        self._signals = (
            RunSignals(shared_table, clock=clock) if shared_table is not None and reservations.needs_thread else None
        )
        self._watch_task: asyncio.Task[None] | None = None
        self._clock = clock
        self._workers = workers
        self._grace_seconds = grace_seconds
        self._max_runs = max_runs
        self._current_runs: dict[str, Run] = {}
        self._queue_lengths: Counter[str] = Counter()
        self._finished_runs: OrderedDict[str, Run] = OrderedDict()
        self._finish_tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._current_runs)

    @property
    def is_stopping(self) -> bool:
        """Return whether the registry is closing and starts no new runs."""
        return self._is_stopping

    def find_run(self, conversation_key: str) -> Run | None:
        """Return the current run of a conversation in this process, or None."""
        return self._current_runs.get(conversation_key)

    def find_run_by_name(self, name: str) -> Run | None:
        """Return a run by its name, including finished runs that are still in memory, or None."""
        under = (run for run in self._current_runs.values() if run.name == name)
        return next(under, None) or self._finished_runs.get(name)

    def find_permission_function(self, conversation_key: str) -> AllowWrite | None:
        """Return the function that asks the user of the current run about a change, or None if nobody can be asked."""
        run = self._current_runs.get(conversation_key)
        return run.ask_permission if run is not None and run.asks_user else None

    async def start(
        self, conversation_key: str, make_events: MakeEvents, *, queue: bool = False, asks_user: bool = False
    ) -> Run:
        """Start a run and wait until its question is recorded.

        If the conversation already has a run, the new one waits with ``queue`` and is rejected without it. With
        ``asks_user``, tools that ask before they write wait for ``answer_permission``; otherwise they write nothing.
        """
        run = await self._claim_run(conversation_key, queue=queue, asks_user=asks_user)
        try:
            await self._reserve(conversation_key, queue=queue)
        except BaseException:
            self._release_run(run)
            raise
        try:
            run.start(await make_events())
        except BaseException:
            await self._release(conversation_key)
            self._release_run(run)
            raise
        end = asyncio.get_running_loop().create_task(self._finish_run(run))
        self._finish_tasks.add(end)
        end.add_done_callback(self._finish_tasks.discard)
        if self._signals is not None and (self._watch_task is None or self._watch_task.done()):
            self._watch_task = asyncio.get_running_loop().create_task(self._watch_signals(self._signals))
        await run.wait_until_started()
        return run

    async def stop(self, conversation_key: str) -> bool:
        """Stop the run of a conversation, in whichever process it is; return whether there was one."""
        run = self._current_runs.get(conversation_key)
        if run is not None and not run.is_brief:
            await run.stop()
            return True
        if self._signals is None or not await self.is_answered_elsewhere(conversation_key):
            return False
        await self._workers.run(partial(self._signals.request_stop, conversation_key))
        for _ in range(_MAX_STOP_POLLS):
            await asyncio.sleep(_POLL_SECONDS)
            if not await self.is_answered_elsewhere(conversation_key):
                break
        await self._workers.run(partial(self._signals.remove_stop_request, conversation_key))
        return True

    async def answer_permission(self, conversation_key: str, permission_id: str, *, allowed: bool) -> None:
        """Give the user's answer to a permission request of the current run, in whichever process that is.

        Raises ``NotFoundError`` if no such request waits.
        """
        run = self._current_runs.get(conversation_key)
        if run is not None and run.answer_permission(permission_id, allowed=allowed):
            return
        if run is None and self._signals is not None and await self.is_answered_elsewhere(conversation_key):
            answer = partial(self._signals.answer_permission, conversation_key, permission_id, allowed=allowed)
            await self._workers.run(answer)
            return
        raise NotFoundError(
            f"No permission request {permission_id[:80]!r} waits for an answer.",
            hint="It was answered before, or its turn has ended. Read the conversation again.",
        )

    @asynccontextmanager
    async def exclusive(self, conversation_key: str) -> AsyncGenerator[None, None]:
        """Reserve a conversation for the duration of the block; raises an error while a turn is being answered."""
        run = await self._claim_run(conversation_key, queue=False, is_brief=True)
        try:
            await self._reserve(conversation_key, queue=False)
            try:
                yield
            finally:
                await self._release(conversation_key)
        finally:
            self._release_run(run)

    async def is_answered_elsewhere(self, conversation_key: str) -> bool:
        """Return whether another process is answering in a conversation."""
        return await self._workers.run(partial(self.is_answered_elsewhere_blocking, conversation_key))

    def is_answered_elsewhere_blocking(self, conversation_key: str) -> bool:
        """Return whether another process is answering in a conversation; blocks, so call it in a worker thread."""
        if conversation_key in self._current_runs:
            return False
        # There is no query for a reservation, so try to acquire it and release it again.
        taken = self._reservations.acquire(conversation_key)
        if taken:
            self._reservations.release(conversation_key)
        return not taken

    async def close(self, seconds: float) -> None:
        """Start no more runs, wait up to ``seconds`` for the current ones, then stop the rest; all text is kept."""
        self._is_stopping = True
        runs = list(self._current_runs.values())
        if runs:
            await asyncio.wait([asyncio.ensure_future(run.wait_until_finished()) for run in runs], timeout=seconds)
        await asyncio.gather(
            *(run.stop(IncompleteReplyReason.INTERRUPTED) for run in list(self._current_runs.values()))
        )
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.wait([self._watch_task])
        if self._finish_tasks:
            await asyncio.wait(set(self._finish_tasks))

    async def _watch_signals(self, signals: RunSignals) -> None:
        """Pass on what other processes asked of runs, as long as this process has runs."""
        while under := {key: run for key, run in self._current_runs.items() if not run.is_brief}:
            await asyncio.sleep(_SIGNAL_POLL_SECONDS)
            for key, at in (await self._workers.run(partial(signals.find_stop_requests, list(under)))).items():
                # A run that started after the stop request is a different turn.
                if under[key].started_at <= at:
                    await under[key].stop()
            waiting = {request: run for run in under.values() for request in run.open_permissions}
            if waiting:
                answers = await self._workers.run(partial(signals.find_permission_answers, list(waiting)))
                for request, allowed in answers.items():
                    waiting[request].answer_permission(request, allowed=allowed)

    async def _claim_run(
        self, conversation_key: str, *, queue: bool, is_brief: bool = False, asks_user: bool = False
    ) -> Run:
        # Brief runs, and runs that have sent their last event, end in a moment. Waiting for them avoids a rejection.
        while (
            not self._is_stopping
            and (before := self._current_runs.get(conversation_key))
            and (queue or _is_about_to_end(before))
        ):
            if self._queue_lengths[conversation_key] >= _MAX_QUEUED:
                raise self._run_in_progress_error(conversation_key)
            self._queue_lengths[conversation_key] += 1
            try:
                await before.wait_until_released()
            finally:
                self._queue_lengths[conversation_key] -= 1
                if not self._queue_lengths[conversation_key]:
                    del self._queue_lengths[conversation_key]
        if self._is_stopping or len(self._current_runs) >= self._max_runs:
            why = (
                "is being stopped"
                if self._is_stopping
                else f"has {self._max_runs:,} turns under way, as many as it takes"
            )
            raise ServerUnavailableError(f"The server {why}.", hint="Try again in a moment.")
        if conversation_key in self._current_runs:
            raise self._run_in_progress_error(conversation_key)
        run = self._current_runs[conversation_key] = Run(
            conversation_key,
            started_at=self._clock.now(),
            grace_seconds=self._grace_seconds,
            is_brief=is_brief,
            asks_user=asks_user,
        )
        return run

    async def _reserve(self, conversation_key: str, *, queue: bool) -> None:
        # Another process may have sent its last event and be about to release the conversation.
        tries = 0
        while not await self._acquire(conversation_key):
            tries += 1
            if self._is_stopping or (not queue and tries > _MAX_RESERVE_TRIES):
                raise RunInProgressError(conversation_key, question=None, since=None)
            await asyncio.sleep(_POLL_SECONDS)

    async def _acquire(self, conversation_key: str) -> bool:
        if not self._reservations.needs_thread:
            return self._reservations.acquire(conversation_key)
        return await self._workers.run(lambda: self._reservations.acquire(conversation_key))

    async def _release(self, conversation_key: str) -> None:
        if not self._reservations.needs_thread:
            self._reservations.release(conversation_key)
            return
        await self._workers.run_uncancellable(lambda: self._reservations.release(conversation_key))

    def _run_in_progress_error(self, conversation_key: str) -> RunInProgressError:
        run = self._current_runs[conversation_key]
        since = run.started_at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return RunInProgressError(conversation_key, question=run.message_id, since=since)

    async def _finish_run(self, run: Run) -> None:
        await run.wait_until_finished()
        try:
            await self._release(run.conversation_key)
        finally:
            self._release_run(run)

    def _release_run(self, run: Run) -> None:
        if self._current_runs.get(run.conversation_key) is run:
            del self._current_runs[run.conversation_key]
        run.release()
        if run.is_brief:
            return
        self._finished_runs[run.name] = run
        while len(self._finished_runs) > _MAX_FINISHED_RUNS:
            self._finished_runs.popitem(last=False)


def _is_about_to_end(run: Run) -> bool:
    return run.is_brief or run.is_ending
