"""Send one turn to a model and record its answer, as a stream of events.

``TurnRunner`` asks and sends, or sends a turn that waits. It needs a ``SendContext`` and runs as many tool rounds as
``TurnLimits`` allows; a reached limit ends the tool calls, not the turn. ``stream_with_retries`` receives one answer
under a ``RetryPolicy``.

A request is retried where that may help, but never after the first text arrived. A turn is recorded before it is sent,
and its answer as soon as it ends. Text that arrived before a stop or a broken connection is kept.
"""

import asyncio
from asyncio import CancelledError
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from lamella.clocks import PhaseTimer
from lamella.conversation.compaction import run_restarting_for_summaries
from lamella.conversation.expired_cache import CacheExpiry, estimate_expired_cache
from lamella.conversation.past_turns import list_open_calls
from lamella.conversation.stream import AnswerEditor, predict_cache_usage, stream_checked_deltas
from lamella.conversation.threads import Workers
from lamella.conversation.tool_executor import DEFAULT_CALL_TIMEOUT, DEFAULT_STEPS, LocalToolset, Toolset
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnRequest, check_answer_fits, no_model_error
from lamella.core.log.call import ANSWER_PURPOSE, CacheUsage, CallTiming, IncompleteReplyReason, ModelCall
from lamella.core.log.receipts import CompactionReceipt
from lamella.core.messages import (
    Delta,
    Message,
    ModelRequest,
    ReasoningDelta,
    StopDelta,
    StopReason,
    TextDelta,
    ToolCall,
    ToolOutput,
    Usage,
    join_text,
    reply_from_deltas,
)
from lamella.core.prompt.layers.tool_rounds import group_rounds
from lamella.core.values import replace
from lamella.errors import (
    ContextOverflowError,
    LamellaError,
    ReplyOnOtherBranchError,
    RequestRejectedError,
    RetryableProviderError,
)
from lamella.ports import Clock, FileChange, ModelProvider

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation

DEFAULT_IDLE_TIMEOUT = 120.0
# Maximum tokens of an answer if no other value is set.
DEFAULT_ANSWER_TOKENS = 1_024
# It is not known for every model whether it accepts images, and servers report that in different ways.
_NO_VISION_HINT = (
    " If the model does not see pictures, say so in model_facts (sees = false): it gets words in their place."
)


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """The number of retries and their delays, which double from ``first_delay`` to ``max_delay`` seconds.

    Up to half of each delay is added at random. If a provider asks for a delay of more than ``max_requested_delay``
    seconds, there is no retry. An attempt fails after ``idle_timeout`` seconds without data.
    """

    max_attempts: int = 4
    first_delay: float = 1.0
    max_delay: float = 30.0
    max_requested_delay: float = 120.0
    idle_timeout: float = DEFAULT_IDLE_TIMEOUT

    def delay(self, retry_number: int, *, requested_delay: float | None, jitter: float) -> float:
        """Return the seconds to wait before this retry, at least as long as the provider asks for."""
        doubled: float = min(self.max_delay, self.first_delay * 2 ** (retry_number - 1))
        return max(requested_delay or 0.0, doubled * (1 + jitter / 2))


class SendContext(Struct, frozen=True, kw_only=True):
    """Everything that is needed to send a turn.

    Attributes:
        sleep: Injected together with ``jitter``, so that this package uses neither a real clock nor randomness.
        workers: Threads that build, read and record, so that the event loop of the caller is not blocked.
        max_answer_tokens: Maximum tokens of the answer.
        window: If set, a request that leaves less space than ``max_answer_tokens`` is not sent.
        on_answer: Called when part of an answer has arrived.
        model: The model that the turn is sent to.
        editor: Changes the text of the answer while it streams.
    """

    provider: ModelProvider
    clock: Clock
    sleep: Callable[[float], Awaitable[None]]
    jitter: Callable[[], float]
    workers: Workers = msgspec.field(default_factory=Workers)
    retry_policy: RetryPolicy = RetryPolicy()
    max_answer_tokens: int = DEFAULT_ANSWER_TOKENS
    window: int | None = None
    on_answer: Callable[[], None] | None = None
    model: str = ""
    editor: AnswerEditor | None = None


@dataclass(slots=True)
class PartialAnswer:
    """The part of an answer that has arrived so far."""

    started: datetime
    deltas: list[Delta] = field(default_factory=list)
    first_token_seconds: float | None = None
    retries: int = 0
    predicted_cache_usage: CacheUsage | None = None


async def stream_with_retries(
    attempt: PartialAnswer, make_request: Callable[[], Awaitable[ModelRequest]], send_context: SendContext
) -> AsyncGenerator[Delta | tuple[RetryableProviderError, float], None]:
    """Stream the answer to a request, with retries; before each retry, yield its error and the delay.

    The caller appends the deltas to ``attempt``. Once there is one, the request is not retried.
    """
    while True:
        try:
            request = await make_request()
            attempt.predicted_cache_usage = await predict_cache_usage(send_context.provider, request)
            async with aclosing(stream_checked_deltas(send_context.provider, request)) as coming:
                async for delta in coming:
                    attempt.first_token_seconds = (
                        elapsed_seconds(attempt.started, send_context.clock.now())
                        if attempt.first_token_seconds is None
                        else attempt.first_token_seconds
                    )
                    yield delta
        except RetryableProviderError as error:
            wait = None if attempt.deltas else _retry_delay(error, attempt.retries, send_context)
            if wait is None:
                raise
            attempt.retries += 1
            yield error, wait
            await send_context.sleep(wait)
        else:
            return


def _retry_delay(error: RetryableProviderError, retries: int, send_context: SendContext) -> float | None:
    """Return the delay before the next retry, or None if there is none."""
    policy = send_context.retry_policy
    if retries + 1 >= policy.max_attempts or (error.wait or 0.0) > policy.max_requested_delay:
        return None
    return policy.delay(retries + 1, requested_delay=error.wait, jitter=send_context.jitter())


def add_image_hint(error: BaseException, sent: Sequence[Message]) -> None:
    """Add a hint about images to an error if the provider rejected a request that contains images."""
    # Compare the exact class: subclasses have a more specific reason than the images.
    if type(error) is RequestRejectedError and any(message.images for message in sent):
        error.hint += _NO_VISION_HINT


def get_cut_reason(error: BaseException) -> str:
    """Return why an answer ended before its end: a stop by the user, an interruption by the program, or an error."""
    if isinstance(error, CancelledError) and error.args == (IncompleteReplyReason.INTERRUPTED,):
        return IncompleteReplyReason.INTERRUPTED
    stopped = isinstance(error, GeneratorExit | CancelledError | KeyboardInterrupt)
    return IncompleteReplyReason.STOPPED if stopped else IncompleteReplyReason.BROKEN


def elapsed_seconds(since: datetime, now: datetime) -> float:
    """Return the elapsed seconds, rounded to a tenth of a millisecond to keep the recorded event short."""
    return round((now - since).total_seconds(), 4)


# Limits of one turn, and what it has used of them.

# How often calls are rejected with a message before the model gets a request in which it cannot call tools.
MAX_REJECTED_ROUNDS = 2
_REJECTED_PREFIX = "Not run: "


class TurnLimits(Struct, frozen=True, kw_only=True):
    """The limits of one turn: tool rounds, seconds per call and in total, tokens and cost in dollars.

    None means no limit. Limits are checked between two tool rounds; a running call is not cut off by them.
    """

    steps: int = DEFAULT_STEPS
    call_seconds: float = DEFAULT_CALL_TIMEOUT
    turn_seconds: float | None = None
    turn_tokens: int | None = None
    max_cost: Decimal | None = None


class TurnUsage:
    """The usage of a turn against its limits, since it ``started`` or was resumed.

    If ``has_usage_limits`` is True, the caller must report the answered requests with ``recompute_usage_from_calls``.
    """

    def __init__(self, limits: TurnLimits, *, clock: Clock, started: datetime) -> None:
        self._limits = limits
        self.has_usage_limits = limits.turn_tokens is not None or limits.max_cost is not None
        self._clock = clock
        self._started = started
        self._tokens = 0
        self._cost = Decimal(0)

    def recompute_usage_from_calls(self, calls: Sequence[ModelCall], *, answer_count: int) -> None:
        """Add up the tokens and cost of the last ``answer_count`` answers and of the auxiliary calls before them.

        ``calls`` are all ledger calls of the question. Calls for abandoned answers come earlier in it and are not
        counted. Calls without a known price count as free.
        """
        self._tokens, self._cost = 0, Decimal(0)
        for call in reversed(calls):
            answer_count -= call.purpose == ANSWER_PURPOSE
            if answer_count < 0:
                break
            self._tokens += (call.usage.prompt_tokens or 0) + (call.usage.output or 0)
            self._cost += call.billed or 0

    def limit_reached_message(self, rounds: int) -> str:
        """Return a text naming the limit that a turn with this many tool rounds has reached, or ""."""
        limits = self._limits
        seconds = (self._clock.now() - self._started).total_seconds()
        if rounds >= limits.steps:
            return f"a turn has at most {limits.steps} tool round{'' if limits.steps == 1 else 's'}"
        if limits.turn_seconds is not None and seconds >= limits.turn_seconds:
            return f"a turn calls tools for at most {limits.turn_seconds:g} seconds"
        if limits.turn_tokens is not None and self._tokens >= limits.turn_tokens:
            return f"a turn has at most {limits.turn_tokens:,} tokens, and {self._tokens:,} were used"
        if limits.max_cost is not None and self._cost >= limits.max_cost:
            return f"a turn costs at most ${limits.max_cost:f}, and ${self._cost:f} were spent"
        return ""


def rejected_call_outputs(calls: Sequence[ToolCall], reason: str) -> tuple[ToolOutput, ...]:
    """Return failed results for calls that are not run because the model is to answer now."""
    message = f"{_REJECTED_PREFIX}{reason}. Answer with what you have."
    return tuple(ToolOutput(call=call.id, output=message, failed=True) for call in calls)


def count_tool_rounds(turn: BuiltTurn) -> tuple[int, int]:
    """Return the number of tool rounds of a turn, and how many of the last ones were rejected in a row."""
    prompt = turn.envelope.prompt
    rounds = group_rounds((*prompt.removed_rounds, *prompt.rounds))
    refused = 0
    for _, results in reversed(rounds):
        if not all(result.message.failed and result.text.startswith(_REJECTED_PREFIX) for result in results):
            break
        refused += 1
    return len(rounds), refused


# Events.


class EventName(StrEnum):
    """The kind of an event."""

    CACHE_EXPIRED = "cold"
    ENVELOPE = "envelope"
    DELTA = "delta"
    REASONING = "reasoning"
    TOOL = "tool"
    USAGE = "usage"
    RETRY = "retry"
    COMPACTION = "compaction"
    NOTE = "note"
    PERMISSION = "permission"
    DONE = "done"


class PermissionRequest(Struct, frozen=True, kw_only=True):
    """A change that a tool wants to write. ``allowed`` is None until the user has answered."""

    id: str
    change: FileChange
    allowed: bool | None = None


class TurnEvent(Struct, frozen=True, kw_only=True, gc=False):
    """One step of a running turn.

    Attributes:
        text: The next part of the answer, and nothing else.
        calls: Tool calls that the caller has to run, if a turn ends without an answer.
        expired_cache: The cost of a message after the cache expired; sent before the message.
    """

    kind: EventName
    text: str = ""
    turn: BuiltTurn | None = None
    message: str = ""
    call: ToolCall | None = None
    output: ToolOutput | None = None
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    receipt: CompactionReceipt | None = None
    wait: float | None = None
    expired_cache: CacheExpiry | None = None
    permission: PermissionRequest | None = None


# Sending.

DEFAULT_LIMITS = TurnLimits()
_MIN_PAUSE = timedelta(seconds=10)
_UNKNOWN_PRICE_WARNING = "No price is known of {model}: max_cost holds nothing back."


@dataclass(slots=True, kw_only=True)
class _TurnAttempt(PartialAnswer):
    """An answer that is being received."""

    build_seconds: float
    build_phases: Mapping[str, float]
    was_shrunk: bool = False
    # Whether the model may call tools in this answer.
    allows_tool_calls: bool = True
    # The calls of the recorded answer that wait for their results.
    pending_calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        return join_text(delta.text for delta in self.deltas if isinstance(delta, TextDelta))


class _PreparedSend(NamedTuple):
    """A turn that is about to be sent, with its start time and the seconds it took to build.

    ``is_announced`` is whether its start events were already sent. ``expired_cache`` is the cost estimate if the cache
    expired before it.
    """

    turn: BuiltTurn
    started: datetime
    build_seconds: float
    build_phases: Mapping[str, float]
    is_announced: bool
    expired_cache: CacheExpiry | None = None


class TurnRunner:
    """Sends the turns of one conversation to a model and records the answers, as streams of events.

    Closing a stream stops the model and keeps the text so far. The calls of the model are run by ``toolset``, within
    ``limits``.
    """

    def __init__(
        self,
        conversation: "Conversation",
        send_context: SendContext,
        *,
        toolset: Toolset | None = None,
        limits: TurnLimits = DEFAULT_LIMITS,
    ) -> None:
        self._conversation = conversation
        self._context = send_context
        self._toolset = toolset
        self._limits = limits

    def ask(self, turn_request: TurnRequest) -> AsyncGenerator[TurnEvent, None]:
        """Ask, send and record the answer."""
        return self._run_turn_with_tool_rounds(lambda: self._prepare_question(turn_request))

    def resume(
        self, turn: BuiltTurn, *, pending_calls: Sequence[ToolCall] = (), started_at: datetime | None = None
    ) -> AsyncGenerator[TurnEvent, None]:
        """Send a waiting turn and record its answer; with ``pending_calls``, those open calls are run first.

        Earlier usage of the turn counts against its limits, except the time. If ``started_at`` is given, the turn was
        recorded just now and its start events are still to be sent.
        """

        async def prepare() -> _PreparedSend:
            started = started_at or self._context.clock.now()
            return _PreparedSend(turn, started, 0.0, {}, is_announced=started_at is None)

        return self._run_turn_with_tool_rounds(prepare, pending_calls=pending_calls)

    async def _prepare_question(self, turn_request: TurnRequest) -> _PreparedSend:
        started = self._context.clock.now()
        before = self._conversation.current_state[0].cache_history.at
        # The estimate matters only after a pause. A user who continues at once should not wait for it.
        paused = before is not None and started - before > _MIN_PAUSE
        expired = await self._context.workers.run(lambda: self._estimate_expired_cache(started)) if paused else None
        build_started = self._context.clock.now() if paused else started
        timer = PhaseTimer.from_clock(self._context.clock)
        turn = await run_restarting_for_summaries(
            lambda: timer.run(lambda: self._conversation.ask(turn_request, at=started)), self._context.workers.run
        )
        return _PreparedSend(
            turn,
            started,
            elapsed_seconds(build_started, self._context.clock.now()),
            timer.seconds,
            is_announced=False,
            expired_cache=expired,
        )

    def _estimate_expired_cache(self, at: datetime) -> CacheExpiry | None:
        """Return the cost of the next message if the cache has expired.

        Errors give None: if the turn cannot be built, asking raises the same error.
        """
        try:
            found = estimate_expired_cache(self._conversation, at=at)
        except LamellaError:
            return None
        return found if found is not None and found.expired else None

    def _pre_send_events(self, prepared: _PreparedSend) -> Iterator[TurnEvent]:
        """Yield the events that come before a turn is sent."""
        if not prepared.is_announced:
            if prepared.expired_cache is not None:
                yield TurnEvent(kind=EventName.CACHE_EXPIRED, expired_cache=prepared.expired_cache)
            yield TurnEvent(kind=EventName.ENVELOPE, turn=prepared.turn)
            if self._limits.max_cost is not None and prepared.turn.cost is None:
                yield TurnEvent(kind=EventName.NOTE, message=_UNKNOWN_PRICE_WARNING.format(model=self._context.model))

    async def _run_turn_with_tool_rounds(
        self, prepare: Callable[[], Awaitable[_PreparedSend]], *, pending_calls: Sequence[ToolCall] = ()
    ) -> AsyncGenerator[TurnEvent, None]:
        """Send a turn and record its answer, with as many tool rounds as it needs and its limits allow.

        Calls that the caller has to run leave the turn open. A stop between two rounds is clean: by then the calls and
        their results are recorded. The turn always ends: calls beyond a limit are rejected with a message, and finally
        the model gets a request in which it cannot call tools.
        """
        prepared = await prepare()
        for event in self._pre_send_events(prepared):
            yield event
        turn, built, phases = prepared.turn, prepared.build_seconds, prepared.build_phases
        usage = TurnUsage(self._limits, clock=self._context.clock, started=prepared.started)
        while True:
            rounds, refused = count_tool_rounds(turn) if turn.envelope.prompt.rounds else (0, 0)
            if not pending_calls:
                attempt = _TurnAttempt(
                    started=self._context.clock.now(),
                    build_seconds=built,
                    build_phases=phases,
                    allows_tool_calls=refused < MAX_REJECTED_ROUNDS,
                )
                async with aclosing(self._send_and_record_one_answer(turn, attempt)) as events:
                    async for event in events:
                        turn = event.turn or turn
                        yield event
                pending_calls = attempt.pending_calls
            definitions = turn.envelope.prompt.tools
            tools = self._toolset or (LocalToolset() if pending_calls else None)
            if tools is None or not pending_calls or tools.leaves_calls_to_caller(pending_calls, definitions):
                yield TurnEvent(kind=EventName.DONE, turn=turn, calls=tuple(pending_calls))
                return
            reason = await self._limit_reached_message(usage, rounds=rounds) or tools.get_stop_reason()
            outputs: tuple[ToolOutput, ...] = ()
            if reason:
                outputs = rejected_call_outputs(pending_calls, reason)
            else:
                # Each result is recorded when it comes and before its event is sent, so that a tool whose result was
                # lost is the only one that runs again.
                async with self._keep_alive(), aclosing(tools.run(pending_calls, definitions)) as coming:
                    async for some in coming:
                        pending_calls = list_open_calls(pending_calls, some)
                        if not pending_calls:
                            outputs = some
                            break
                        await self._record_early_outputs(some)
                        for output in some:
                            yield TurnEvent(kind=EventName.TOOL, output=output)
            at = self._context.clock.now()
            timer = PhaseTimer.from_clock(self._context.clock)
            sent_on = await self._submit_tool_outputs(outputs, at=at, timer=timer)
            built, phases = (self._context.clock.now() - at).total_seconds(), timer.seconds
            for output in outputs:
                yield TurnEvent(kind=EventName.TOOL, output=output)
            if isinstance(sent_on, LamellaError):
                raise sent_on
            turn, pending_calls = sent_on, ()
            yield TurnEvent(kind=EventName.ENVELOPE, turn=turn)

    @asynccontextmanager
    async def _keep_alive(self) -> AsyncGenerator[None, None]:
        """Keep the provider's cache while tools run, if the settings say so. Some tools wait for a person."""
        if not self._conversation.max_keep_alives:
            yield
            return

        async def keep() -> None:
            # The turn must not fail because its cache entry was not kept.
            with suppress(LamellaError):
                await self._conversation.keep_alive()

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _limit_reached_message(self, usage: TurnUsage, *, rounds: int) -> str:
        """Return a text naming the limit that a turn with this many tool rounds has reached, or ""."""
        if usage.has_usage_limits:
            usage.recompute_usage_from_calls(
                (await self._context.workers.run(self._conversation.ledger))[-1], answer_count=rounds + 1
            )
        return usage.limit_reached_message(rounds)

    async def _record_early_outputs(self, outputs: Sequence[ToolOutput]) -> None:
        """Record results of tools while others still run."""
        at = self._context.clock.now()
        await self._context.workers.run_uncancellable(lambda: self._conversation.record_early_outputs(outputs, at=at))

    async def _submit_tool_outputs(
        self, outputs: Sequence[ToolOutput], *, at: datetime, timer: PhaseTimer
    ) -> BuiltTurn | LamellaError:
        """Return the turn with its tool results, or the error that stops it.

        The caller raises the error after it has sent the events of the results.
        """
        try:
            return await run_restarting_for_summaries(
                lambda: timer.run(lambda: self._conversation.submit_tool_outputs(outputs, at=at)),
                self._context.workers.run_uncancellable,
            )
        except LamellaError as error:
            return error

    async def _send_and_record_one_answer(
        self, turn: BuiltTurn, attempt: _TurnAttempt
    ) -> AsyncGenerator[TurnEvent, None]:
        """Send a turn and record one answer to it: text, or tool calls."""
        while True:
            try:
                async with aclosing(
                    stream_with_retries(attempt, partial(self._make_request, turn, attempt), self._context)
                ) as coming:
                    async for one in coming:
                        event = _retry_event(*one) if isinstance(one, tuple) else self._handle_delta(one, attempt)
                        if event is not None:
                            yield event
                rest = None if self._context.editor is None else _final_text_event(self._context.editor, attempt)
                if rest is not None:
                    yield rest
            except BaseException as error:
                shrunk = await self._shrink_after_overflow(error, attempt)
                if shrunk is not None:
                    turn = shrunk.turn or turn
                    yield shrunk
                    continue
                add_image_hint(error, turn.messages)
                await self._record_partial_answer(turn, attempt, end_reason=get_cut_reason(error), error=error)
                raise
            else:
                await self._record_answer(turn, attempt)
                return

    async def _shrink_after_overflow(self, error: BaseException, attempt: _TurnAttempt) -> TurnEvent | None:
        """Compact the turn if it did not fit the context window after all; only once, and only before any output."""
        if not isinstance(error, ContextOverflowError) or attempt.deltas or attempt.was_shrunk:
            return None
        now = self._context.clock.now()
        smaller = await run_restarting_for_summaries(
            lambda: self._conversation.shrink_pending_turn(at=now), self._context.workers.run
        )
        if smaller is None:
            return None
        attempt.was_shrunk = True
        return TurnEvent(kind=EventName.COMPACTION, turn=smaller, receipt=smaller.compaction, message=error.message)

    async def _make_request(self, turn: BuiltTurn, attempt: _TurnAttempt) -> ModelRequest:
        """Build the request of one attempt."""
        model = turn.envelope.prompt.model
        if model is None:
            raise no_model_error()
        check_answer_fits(
            turn.envelope.tokens.total, max_answer_tokens=self._context.max_answer_tokens, window=self._context.window
        )
        request = turn.build_model_request(model=model, max_answer_tokens=self._context.max_answer_tokens)
        return request if attempt.allows_tool_calls else replace(request, allows_tool_calls=False)

    def _handle_delta(self, delta: Delta, attempt: _TurnAttempt) -> TurnEvent | None:
        """Store a delta and return its event, if it has one."""
        if self._context.editor is not None and isinstance(delta, TextDelta):
            delta = TextDelta(text=self._context.editor.feed(delta.text))
        attempt.deltas.append(delta)
        return _delta_event(delta)

    async def _record_partial_answer(
        self, turn: BuiltTurn, attempt: _TurnAttempt, *, end_reason: str, error: BaseException
    ) -> None:
        """Record an answer that was cut short, without hiding the error ``error`` that ended it.

        If the conversation has moved on, the answer goes to another branch; the message about that is added
        to ``error``.
        """
        try:
            await self._record_answer(turn, attempt, end_reason=end_reason)
        except ReplyOnOtherBranchError as stored_elsewhere:
            error.add_note(stored_elsewhere.message)
            if isinstance(error, LamellaError):
                _merge_error_messages(error, stored_elsewhere)

    async def _record_answer(self, turn: BuiltTurn, attempt: _TurnAttempt, *, end_reason: str = "") -> None:
        """Record the answer; if nothing arrived, the turn keeps waiting.

        The tool calls of an answer that was cut short are dropped, because they may be incomplete. Calls in an answer
        to a request without tool calls are dropped too: a model that makes them anyway would never finish.
        """
        reply = reply_from_deltas(attempt.deltas) or reply_from_deltas(
            [*attempt.deltas, StopDelta(reason=StopReason.OTHER)]
        )
        if reply is None or (end_reason and not attempt.text):
            return
        finished = self._context.clock.now()
        timing = CallTiming(
            build=attempt.build_seconds,
            first=attempt.first_token_seconds,
            total=elapsed_seconds(attempt.started, finished),
            phases=dict(attempt.build_phases),
        )
        answer = ModelAnswer(
            reply=replace(reply, calls=(), provider_reply=None)
            if end_reason or not attempt.allows_tool_calls
            else reply,
            question_id=turn.envelope.message_id,
            timing=timing,
            retries=attempt.retries,
            end_reason=end_reason,
            predicted_cache_usage=attempt.predicted_cache_usage,
            citations=self._context.editor.sources if self._context.editor is not None else (),
        )

        def write() -> None:
            if self._context.on_answer is not None:
                self._context.on_answer()
            self._conversation.reply(answer, at=finished)
            attempt.pending_calls = tuple(self._conversation.pending_tool_calls)

        await self._context.workers.run_uncancellable(write)


def _retry_event(error: RetryableProviderError, wait: float) -> TurnEvent:
    return TurnEvent(kind=EventName.RETRY, message=error.message, wait=wait)


def _final_text_event(editor: AnswerEditor, attempt: _TurnAttempt) -> TurnEvent | None:
    """Return the event for the text that an editor held back until the end of the answer."""
    rest = editor.finish(has_tool_calls=any(isinstance(delta, ToolCall) for delta in attempt.deltas))
    attempt.deltas.append(TextDelta(text=rest))
    return TurnEvent(kind=EventName.DELTA, text=rest) if rest else None


def _delta_event(delta: Delta) -> TurnEvent | None:
    match delta:
        case TextDelta():
            return TurnEvent(kind=EventName.DELTA, text=delta.text) if delta.text else None
        case ReasoningDelta():
            return TurnEvent(kind=EventName.REASONING, message=delta.text)
        case ToolCall():
            return TurnEvent(kind=EventName.TOOL, call=delta)
        case Usage():
            return TurnEvent(kind=EventName.USAGE, usage=delta)
        case StopDelta():
            return None


def _merge_error_messages(error: LamellaError, other: LamellaError) -> None:
    """Append the message and the hint of one error to another, for every interface."""
    advice = error.raw_hint
    error.message = f"{error.message} {other.message}"
    error.hint = lambda hints: f"{advice if isinstance(advice, str) else advice(hints)} {other.hint_for(hints)}"
