"""Asking: from a request to a run, and from a run to what the client gets."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from time import perf_counter

from fastapi import Request
from fastapi.responses import JSONResponse, Response
from opentelemetry.trace import Span

from lamella import Call, Receipt, ToolCall
from lamella.engine.chat import Chat
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.runs.book import MakeEvents
from lamella.engine.runs.place import TellingEvent
from lamella.engine.runs.run import Run
from lamella.engine.sending.events import Event
from lamella.faces.server.leaving import wait_with
from lamella.faces.server.state import Caller, ServerState
from lamella.faces.server.streams import SseResponse, stream_events
from lamella.faces.server.watching.lines import log_answer
from lamella.faces.server.watching.traces import end_answer, note_compaction, start_answer
from lamella.refusals import RunUnderwayError
from lamella.views.serving.streams import view_answered
from lamella.wiring import mask

# Makes the events of a turn in a conversation that nobody else is answered in.
Send = Callable[[Chat], Awaitable[AsyncGenerator[Event, None]]]
# How often a conversation is asked for that another process has, though nothing is under way there by the log.
_TRIES = 10
_CLASSES = ("plain", "read", "write", "write_long", "output")


class AskedTurn:
    """A turn that is asked for: who asks, the chat that it is in once that is open, and what was said to the caller."""

    def __init__(self, state: ServerState, caller: Caller) -> None:
        self.state = state
        self.caller = caller
        self.chat: Chat | None = None
        self.warnings: Sequence[str] = ()
        self._compacted: set[str] = set()
        # As it was asked first, and after each round of tools.
        self._turns: list[TurnView] = []

    async def start(self, conversation: str, send: Send, *, queue: bool = False) -> Run:
        """Begin a run; its question is written down when this returns."""
        state, workers = self.state, self.state.suite.pool.workers
        key = await workers.run(lambda: state.find_key(self.caller, conversation))

        async def make() -> AsyncGenerator[Event, None]:
            self.chat = await state.engine_of(self.caller).conversation(key)
            return self.watch(await send(self.chat), self.chat.id)

        run = await self._start(key, make, queue=queue)
        run.find_head = lambda: "" if self.chat is None else self.chat.head
        return run

    async def _start(self, key: str, make: MakeEvents, *, queue: bool) -> Run:
        """Begin a run where no other is; who has a conversation in which no question waits is about to let it go."""
        state, tries = self.state, 0
        while True:
            tries += 1
            try:
                return await state.runs.start(key, make, queue=queue)
            except RunUnderwayError as error:
                if error.question is not None:
                    raise
                found = await state.suite.pool.workers.run(lambda: self._find_running(key))
                if found.question is not None or tries >= _TRIES:
                    raise found from error

    def _find_running(self, key: str) -> RunUnderwayError:
        """What is under way in another process, as far as it is written down: the question that waits."""
        asked = self.state.open_chat(self.caller, key).turns()
        if not asked or asked[-1].reply is not None:
            return RunUnderwayError(key, question=None, since=None)
        return RunUnderwayError(key, question=asked[-1].message.id, since=asked[-1].message.at)

    async def watch(self, events: AsyncGenerator[Event, None], conversation: str | None) -> AsyncGenerator[Event, None]:
        """The same events; what the answer came to is told to the log, the meters and a span once it is over.

        What is in no ``conversation`` is kept nowhere.
        """
        said: list[str] = []
        begun, ended = perf_counter(), "stopped"
        failed: BaseException | None = None
        span = start_answer(conversation or "", self.caller.name)
        try:
            async with aclosing(events):
                async for event in events:
                    ended = self._note(event, said, begun, span=span) or ended
                    yield event
        except Exception as error:
            ended, failed = "failed", error
            raise
        finally:
            told = self._note_answer(conversation, self._list_calls(), ended=ended, text="".join(said))
            end_answer(span, told, failed=failed)

    def _note(self, event: Event, said: list[str], begun: float, *, span: Span) -> str | None:
        """What an event says for the meters; how the turn ended, if this is its end."""
        meters = self.state.meters
        if event.turn is not None:
            self.warnings = event.turn.envelope.warnings
            self._turns.append(event.turn)
            self._note_receipt(event.turn.compaction, span)
        if event.text:
            if not said:
                meters.note_first(perf_counter() - begun)
            said.append(event.text)
        if event.kind != "done":
            return None
        return "calls" if event.calls else "done"

    def _list_calls(self) -> list[Call]:
        """The model calls that were made for the answer, each once."""
        return list({id(call): call for turn in self._turns for call in turn.ledger.calls}.values())

    def _note_receipt(self, receipt: Receipt | None, span: Span) -> None:
        # A turn tells of what was compacted before it with each of its events.
        if receipt is None or receipt.id in self._compacted:
            return
        self._compacted.add(receipt.id)
        steps = [step.name.value for step in receipt.steps]
        self.state.meters.note_steps(steps)
        note_compaction(span, steps, before=receipt.tokens_before, after=receipt.tokens_after)

    def _note_answer(
        self, conversation: str | None, calls: Sequence[Call], *, ended: str, text: str
    ) -> dict[str, object]:
        call = calls[-1] if calls else None
        usage = {name: _add(getattr(one.usage, name) for one in calls) for name in _CLASSES} if calls else {}
        billed = [one.billed for one in calls if one.billed is not None]
        cost = float(sum(billed)) if billed else None
        self.state.meters.note_answer(ended=ended, usage=usage, cost=cost)
        for one in calls:
            self.state.meters.note_layers(one.by_layer)
        told: dict[str, object] = {
            "conversation": conversation,
            "caller": self.caller.name,
            # An address may have a password in it.
            "model": None if call is None else mask(call.model or ""),
            "ended": ended,
            "stop": None if call is None else call.stop,
            "tokens": usage,
            "cost": cost,
        }
        log_answer(told, text=text, preview=self.state.rules.preview)
        return told


def _add(counts: Iterable[int | None]) -> int | None:
    """What counts add up to; none where none of them is known."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


async def respond(asking: AskedTurn, run: Run, request: Request, *, stream: bool) -> Response:
    """The answer of a run: events as they come, or one body at its end."""
    if stream:
        return SseResponse(stream_events(run.follow(), lambda: tell_end(run)))
    calls = await wait_with(request, _hear_calls(run))
    chat = asking.chat
    assert chat is not None, "a run that is over was begun in a chat"

    def view() -> JSONResponse:
        turn, ledger = chat.find_turn(run.message or ""), chat.ledger()[-1:]
        body = view_answered(chat.id, turn, ledger, calls=calls, warnings=asking.warnings, stopped=run.stopped)
        return JSONResponse(body)

    # Turns from before the chat was opened are read from the store when they are looked at first.
    return await asking.state.suite.pool.workers.run(view)


async def _hear_calls(run: Run) -> list[ToolCall]:
    """The calls that are the client's to run, once an answer is over."""
    async with aclosing(run.follow()) as events:
        return [call for _, event in [one async for one in events] for call in event.calls]


def tell_end(run: Run) -> dict[str, object]:
    """What the end of a stream says: the reply by its id, and whether it was stopped."""
    told = {"conversation": run.conversation, "message": run.message}
    return {**told, "reply": run.reply, "stopped": run.stopped}


async def tell_each(events: Sequence[TellingEvent]) -> AsyncGenerator[TellingEvent, None]:
    """Events that are known already, one after the other."""
    for event in events:
        yield event
