"""Asking: from a request to a run, and from a run to what the client gets."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from time import perf_counter

from fastapi.responses import JSONResponse, Response
from opentelemetry.trace import Span

from lamella import Call, Receipt
from lamella.engine.chat import Chat
from lamella.engine.runs.place import TellingEvent
from lamella.engine.runs.run import Run
from lamella.engine.sending.sending import Event
from lamella.faces.server.state import Caller, ServerState
from lamella.faces.server.streams import SseResponse, stream_events
from lamella.faces.server.watching.lines import log_answer
from lamella.faces.server.watching.traces import end_answer, note_compaction, start_answer
from lamella.views.serving.streams import view_answered

# Makes the events of a turn in a conversation that nobody else is answered in.
Send = Callable[[Chat], Awaitable[AsyncGenerator[Event, None]]]
_CLASSES = ("plain", "read", "write", "output")


class AskedTurn:
    """A turn that is asked for: who asks, the chat that it is in once that is open, and what was said to the caller."""

    def __init__(self, state: ServerState, caller: Caller) -> None:
        self.state = state
        self.caller = caller
        self.chat: Chat | None = None
        self.warnings: Sequence[str] = ()
        self._compacted: set[str] = set()

    async def start(self, conversation: str, send: Send, *, queue: bool = False) -> Run:
        """Begin a run; its question is written down when this returns."""
        state, workers = self.state, self.state.suite.pool.workers
        key = await workers.run(lambda: state.find_key(self.caller, conversation))

        async def make() -> AsyncGenerator[Event, None]:
            self.chat = await state.engine_of(self.caller).conversation(key)
            chat = self.chat
            return self.watch(await send(chat), chat.id, lambda: next(iter(chat.ledger()[-1:]), ()))

        run = await state.runs.start(key, make, queue=queue)
        run.find_head = lambda: "" if self.chat is None else self.chat.head
        return run

    async def watch(
        self, events: AsyncGenerator[Event, None], conversation: str | None, list_calls: Callable[[], Sequence[Call]]
    ) -> AsyncGenerator[Event, None]:
        """The same events; what the answer came to is told to the log, the meters and a span once it is over.

        What is in no ``conversation`` is kept nowhere. ``list_calls`` gives the model calls of the turn.
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
            told = self._note_answer(conversation, list_calls(), ended=ended, text="".join(said))
            end_answer(span, told, failed=failed)

    def _note(self, event: Event, said: list[str], begun: float, *, span: Span) -> str | None:
        """What an event says for the meters; how the turn ended, if this is its end."""
        meters = self.state.meters
        if event.turn is not None:
            self.warnings = event.turn.envelope.warnings
            self._note_receipt(event.turn.compaction, span)
        if event.text:
            if not said:
                meters.note_first(perf_counter() - begun)
            said.append(event.text)
        if event.kind != "done":
            return None
        return "calls" if event.calls else "done"

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
        usage = {} if call is None else {name: getattr(call.usage, name) for name in _CLASSES}
        cost = None if call is None or call.billed is None else float(call.billed)
        self.state.meters.note_answer(ended=ended, usage=usage, cost=cost)
        told: dict[str, object] = {
            "conversation": conversation,
            "caller": self.caller.name,
            "model": None if call is None else call.model,
            "ended": ended,
            "tokens": usage,
            "cost": cost,
        }
        log_answer(told, text=text, preview=self.state.rules.preview)
        return told


async def respond(asking: AskedTurn, run: Run, *, stream: bool) -> Response:
    """The answer of a run: events as they come, or one body at its end."""
    if stream:
        return SseResponse(stream_events(run.follow(), lambda: tell_end(run)))
    async with aclosing(run.follow()) as events:
        calls = [call for _, event in [one async for one in events] for call in event.calls]
    chat = asking.chat
    assert chat is not None, "a run that is over was begun in a chat"
    return JSONResponse(
        view_answered(
            chat.id,
            chat.find_turn(run.message or ""),
            chat.ledger()[-1:],
            calls=calls,
            warnings=asking.warnings,
            stopped=run.stopped,
        )
    )


def tell_end(run: Run) -> dict[str, object]:
    """What the end of a stream says: the reply by its id, and whether it was stopped."""
    told = {"conversation": run.conversation, "message": run.message}
    return {**told, "reply": run.reply, "stopped": run.stopped}


async def tell_each(events: Sequence[TellingEvent]) -> AsyncGenerator[TellingEvent, None]:
    """Events that are known already, one after the other."""
    for event in events:
        yield event
