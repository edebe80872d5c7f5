"""Sending: one turn to a model and back, as events. Tried again where that may help, never after text was said.

A turn is written down before it is sent, its answer as soon as it ends. What was said before someone stopped it, or
before the connection broke, is kept.
"""

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

from lamella.core.log.call import Call, Timing
from lamella.core.log.nodes import Told
from lamella.core.log.receipt import Receipt
from lamella.core.log.terms import Terms
from lamella.core.messages.delta import (
    Delta,
    ReasoningDelta,
    Stop,
    StopReason,
    TextDelta,
    ToolCall,
    fold_deltas,
    join_text,
)
from lamella.core.messages.request import Request
from lamella.core.messages.rounds import ToolOutput
from lamella.core.messages.usage import Usage
from lamella.core.prompt.state import State
from lamella.core.search.finding import Found
from lamella.core.values import replace
from lamella.engine.cold import ColdCache, CoolingChat, find_cold
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.fitting import wait_apart
from lamella.engine.dialogue.turn import TurnView, check_room, no_model
from lamella.engine.sending.delivery import BROKEN, STOPPED, Attempt, Delivery, hear, tell_blind, tell_seconds
from lamella.engine.sending.editing import AnswerEditor
from lamella.engine.sending.events import Event, EventName
from lamella.engine.sending.limits import PATIENCE, TurnLimits, TurnMeter, count_rounds, refuse_calls
from lamella.engine.sending.tools import Toolbox, Toolset
from lamella.errors import (
    AnswerAsideError,
    ContextOverflowError,
    LamellaError,
    ProviderRetryError,
)

NO_LIMITS = TurnLimits()
_PAUSE = timedelta(seconds=10)
_UNPRICED = "No price is known of {model}: max_cost holds nothing back."


class SendingChat(CoolingChat, Protocol):
    """A conversation that can be asked, answered, given results, and made smaller while a turn waits."""

    @property
    def calls(self) -> Sequence[ToolCall]: ...

    def ask(self, asked: Ask, *, at: datetime | None = None) -> TurnView: ...

    def reply(self, given: str | Answer, *, at: datetime | None = None) -> object: ...

    def give(self, outputs: Sequence[ToolOutput], *, at: datetime | None = None) -> TurnView: ...

    def shrink_waiting(self, *, at: datetime | None = None) -> TurnView | None: ...
    def make_room(self, *, at: datetime | None = None) -> Receipt | None: ...
    def ledger(self) -> Sequence[Sequence[Call]]: ...

    def turns(self, head: str | None = None) -> Sequence[Told]: ...

    def recall(self, query: str, *, limit: int = ...) -> Sequence[Found]: ...

    @property
    def standing(self) -> tuple[State, Terms]: ...

    @property
    def settings(self) -> Mapping[str, object]: ...


@dataclass(slots=True, kw_only=True)
class _TurnAttempt(Attempt):
    """An answer on its way."""

    built: float
    shrunk: bool = False
    # Whether tools may be called in it.
    call: bool = True
    # Those of the answer that was written down, which wait for what they give.
    calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        return join_text(delta.text for delta in self.deltas if isinstance(delta, TextDelta))


def send(
    chat: SendingChat, asked: Ask, post: Delivery, *, toolbox: Toolset | None = None, limits: TurnLimits = NO_LIMITS
) -> AsyncGenerator[Event, None]:
    """Ask, send, and record the answer. Closing the iterator stops the model and keeps what it said."""
    return _answer(chat, partial(_ask, chat, asked, post), post, toolbox=toolbox, limits=limits)


def answer(
    chat: SendingChat,
    turn: TurnView,
    post: Delivery,
    *,
    calls: Sequence[ToolCall] = (),
    toolbox: Toolset | None = None,
    limits: TurnLimits = NO_LIMITS,
    began: datetime | None = None,
) -> AsyncGenerator[Event, None]:
    """Send a turn that waits, and record its answer. One that was left with ``calls`` begins with them.

    What it used of its limits before it was left counts, but for the time. One that ``began`` now is told of.
    """
    return _answer(chat, partial(_go_on, turn, post, began), post, calls=calls, toolbox=toolbox, limits=limits)


class _Opening(NamedTuple):
    """A turn that is about to be sent, when it was begun, how long it took to build, and whether anybody knows yet.

    ``cold`` is what it was to cost where the cache lapsed before it.
    """

    turn: TurnView
    started: datetime
    built: float
    told: bool
    cold: ColdCache | None = None


async def _ask(chat: SendingChat, asked: Ask, post: Delivery) -> _Opening:
    started = post.clock.now()
    before = chat.standing[0].trail.at
    # Told where prices decide; whoever asks on at once made no pause, and need not wait for it to be looked at.
    paused = before is not None and started - before > _PAUSE
    cold = await post.workers.run(partial(_find_lapsed, chat, started)) if paused else None
    begun = post.clock.now() if paused else started
    turn = await wait_apart(lambda: chat.ask(asked, at=started), post.workers.run)
    return _Opening(turn, started, tell_seconds(begun, post.clock.now()), told=False, cold=cold)


def _find_lapsed(chat: CoolingChat, at: datetime) -> ColdCache | None:
    """What the next message costs where the cache lapsed. Where that cannot be told, asking says why, if it cannot."""
    try:
        cold = find_cold(chat, at=at)
    except LamellaError:
        return None
    return cold if cold is not None and cold.lapsed else None


async def _go_on(turn: TurnView, post: Delivery, began: datetime | None) -> _Opening:
    return _Opening(turn, began or post.clock.now(), 0.0, told=began is None)


def _tell(opening: _Opening, post: Delivery, limits: TurnLimits) -> Iterator[Event]:
    """What is said of a turn before it is sent."""
    if not opening.told:
        if opening.cold is not None:
            yield Event(kind=EventName.COLD, cold=opening.cold)
        yield Event(kind=EventName.ENVELOPE, turn=opening.turn)
        if limits.max_cost is not None and opening.turn.cost is None:
            yield Event(kind=EventName.NOTE, said=_UNPRICED.format(model=post.model))


async def _answer(
    chat: SendingChat,
    begin: Callable[[], Awaitable[_Opening]],
    post: Delivery,
    *,
    limits: TurnLimits,
    calls: Sequence[ToolCall] = (),
    toolbox: Toolset | None = None,
) -> AsyncGenerator[Event, None]:
    """Send a turn and record its answer, in as many rounds of tools as it takes and its limits allow.

    Calls that are the caller's to run leave it open. It stops cleanly between any two rounds: what was called for and
    what came back is written down by then. Whatever the model does, it ends: calls beyond a limit are refused in words,
    and at last it is sent a request in which it cannot call.
    """
    opening = await begin()
    for event in _tell(opening, post, limits):
        yield event
    turn, built = opening.turn, opening.built
    meter = TurnMeter(limits, clock=post.clock, started=opening.started)
    while True:
        rounds, refused = count_rounds(turn) if turn.envelope.prompt.rounds else (0, 0)
        if not calls:
            sent = _TurnAttempt(started=post.clock.now(), built=built, call=refused < PATIENCE)
            async with aclosing(_answer_once(chat, turn, sent, post=post)) as events:
                async for event in events:
                    turn = event.turn or turn
                    yield event
            calls = sent.calls
        told = turn.envelope.prompt.tools
        tools = toolbox or (Toolbox() if calls else None)
        if tools is None or not calls or tools.leaves(calls, told):
            yield Event(kind=EventName.DONE, turn=turn, calls=tuple(calls))
            return
        why = await _find_reached(chat, meter, post, rounds=rounds) or tools.find_enough()
        outputs = refuse_calls(calls, why) if why else await tools.run(calls, told)
        # Written down before anybody hears of it: whoever stops here would have the tools run once more.
        at = post.clock.now()
        given = await _give(chat, outputs, post, at=at)
        built = (post.clock.now() - at).total_seconds()
        for output in outputs:
            yield Event(kind=EventName.TOOL, output=output)
        if isinstance(given, LamellaError):
            raise given
        turn, calls = given, ()
        yield Event(kind=EventName.ENVELOPE, turn=turn)


async def _find_reached(chat: SendingChat, meter: TurnMeter, post: Delivery, *, rounds: int) -> str:
    """The limit that a turn of so many rounds has reached, in words; nothing while it has reached none."""
    if meter.counts:
        meter.weigh((await post.workers.run(chat.ledger))[-1], answers=rounds + 1)
    return meter.find_reached(rounds)


async def _give(
    chat: SendingChat, outputs: Sequence[ToolOutput], post: Delivery, *, at: datetime
) -> TurnView | LamellaError:
    """The turn with what its tools gave, or why it cannot go on with that, which is raised once they were heard."""
    try:
        return await wait_apart(partial(chat.give, outputs, at=at), post.workers.finish)
    except LamellaError as error:
        return error


async def _answer_once(
    chat: SendingChat, turn: TurnView, sent: _TurnAttempt, *, post: Delivery
) -> AsyncGenerator[Event, None]:
    """Send a turn and record one answer to it: in words, or with calls."""
    while True:
        try:
            async with aclosing(hear(sent, partial(_make_request, turn, sent, post), post)) as coming:
                async for one in coming:
                    event = _retry(*one) if isinstance(one, tuple) else _take(one, sent, post)
                    if event is not None:
                        yield event
            rest = None if post.editor is None else _end_text(post.editor, sent)
            if rest is not None:
                yield rest
        except BaseException as error:
            shrunk = await _shrink(error, chat, sent, post=post)
            if shrunk is not None:
                turn = shrunk.turn or turn
                yield shrunk
                continue
            tell_blind(error, turn.messages)
            stopped = isinstance(error, GeneratorExit | CancelledError | KeyboardInterrupt)
            await _record_cut(chat, turn, sent, post=post, ended=STOPPED if stopped else BROKEN, why=error)
            raise
        else:
            await _record(chat, turn, sent, post=post)
            return


async def _shrink(error: BaseException, chat: SendingChat, sent: _TurnAttempt, *, post: Delivery) -> Event | None:
    """The turn made smaller, once, where it did not fit after all and nothing was said to it yet."""
    if not isinstance(error, ContextOverflowError) or sent.deltas or sent.shrunk:
        return None
    now = post.clock.now()
    smaller = await wait_apart(lambda: chat.shrink_waiting(at=now), post.workers.run)
    if smaller is None:
        return None
    sent.shrunk = True
    return Event(kind=EventName.COMPACTION, turn=smaller, receipt=smaller.compaction, said=error.message)


def _retry(error: ProviderRetryError, wait: float) -> Event:
    return Event(kind=EventName.RETRY, said=error.message, wait=wait)


async def _make_request(turn: TurnView, sent: _TurnAttempt, post: Delivery) -> Request:
    """The request of one try."""
    model = turn.envelope.prompt.model
    if model is None:
        raise no_model()
    check_room(turn.envelope.tokens.total, answer=post.answer, window=post.window)
    request = turn.chat_request(model=model, answer=post.answer)
    return request if sent.call else replace(request, call=False)


def _take(delta: Delta, sent: _TurnAttempt, post: Delivery) -> Event | None:
    """Keep a delta, and tell what there is to be told of it."""
    if post.editor is not None and isinstance(delta, TextDelta):
        delta = TextDelta(text=post.editor.take(delta.text))
    sent.deltas.append(delta)
    return _event(delta)


def _end_text(editor: AnswerEditor, sent: _TurnAttempt) -> Event | None:
    """What an editor held back of the answer until its end."""
    rest = editor.end(called=any(isinstance(delta, ToolCall) for delta in sent.deltas))
    sent.deltas.append(TextDelta(text=rest))
    return Event(kind=EventName.DELTA, text=rest) if rest else None


def _event(delta: Delta) -> Event | None:
    match delta:
        case TextDelta():
            return Event(kind=EventName.DELTA, text=delta.text) if delta.text else None
        case ReasoningDelta():
            return Event(kind=EventName.REASONING, said=delta.text)
        case ToolCall():
            return Event(kind=EventName.TOOL, call=delta)
        case Usage():
            return Event(kind=EventName.USAGE, usage=delta)
        case Stop():
            return None


async def _record_cut(
    chat: SendingChat, turn: TurnView, sent: _TurnAttempt, *, post: Delivery, ended: str, why: BaseException
) -> None:
    """Write down what came before an answer was cut short; where it is kept aside, that must not hide why it was."""
    try:
        await _record(chat, turn, sent, post=post, ended=ended)
    except AnswerAsideError as aside:
        why.add_note(aside.message)
        if isinstance(why, LamellaError):
            _tell_both(why, aside)


def _tell_both(why: LamellaError, aside: LamellaError) -> None:
    """Have an error say of another what happened, too, and what to do about it, at every door."""
    advice = why.advice
    why.message = f"{why.message} {aside.message}"
    why.hint = lambda door: f"{advice if isinstance(advice, str) else advice(door)} {aside.hint_at(door)}"


async def _record(chat: SendingChat, turn: TurnView, sent: _TurnAttempt, *, post: Delivery, ended: str = "") -> None:
    """Write the answer down; one of which nothing arrived leaves the turn waiting.

    Calls of an answer that was cut short are not kept: nobody knows whether they are whole. Nor are those of one in
    which nothing could be called: there is no model that needs them, and no end to one that makes them.
    """
    reply = fold_deltas(sent.deltas) or fold_deltas([*sent.deltas, Stop(reason=StopReason.OTHER)])
    if reply is None or (ended and not sent.text):
        return
    finished = post.clock.now()
    timing = Timing(build=sent.built, first=sent.first, total=tell_seconds(sent.started, finished))
    given = Answer(
        reply=replace(reply, calls=(), carried=None) if ended or not sent.call else reply,
        message=turn.envelope.message_id,
        timing=timing,
        retries=sent.retries,
        ended=ended,
        foreseen=sent.foreseen,
        sources=post.editor.sources if post.editor is not None else (),
    )

    def write() -> None:
        if post.answered is not None:
            post.answered()
        chat.reply(given, at=finished)
        sent.calls = tuple(chat.calls)

    await post.workers.finish(write)
