"""Showing an answer while it comes: its text on stdout, everything else on stderr."""

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol, TextIO

from lamella import Turn
from lamella.engine.sending.events import Event, EventName
from lamella.faces.cli.tables.receipts import tell_receipt
from lamella.faces.cli.tables.said import tell_called, tell_given
from lamella.faces.cli.terminal.keys import unseen_keys
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.signals import ended_by_signals
from lamella.faces.cli.terminal.telling import clear_status, draw_status, tell, tell_json, write_exactly

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress
    from lamella.providers import ToolCall


class Output(Protocol):
    """Where an answer goes. ``told`` is how far reading the prompt in has come."""

    told: str

    def begin(self) -> None:
        """Something was asked."""

    def more(self, text: str) -> None:
        """More of the answer."""

    def thinking(self) -> None:
        """The model reasons; there is nothing of the answer yet."""

    def reading(self, progress: "Progress") -> None:
        """A model in this process reads the prompt in."""

    def end(self) -> None:
        """Nothing more comes, for whatever reason."""

    def report(self, event: str, body: Mapping[str, object]) -> None:
        """What programs should know: a conversation was opened, a turn is done, something failed."""


class PlainOutput:
    """Text as it is; a terminal is shown control characters, so that none can act on it."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.told = ""
        self._quiet = quiet
        self._last = "\n"
        self._shown = False

    def begin(self) -> None:
        self._tell("waiting for an answer …")

    def more(self, text: str) -> None:
        self._clear()
        if not self._quiet:
            write_exactly(text)
            self._last = text[-1:] or self._last

    def thinking(self) -> None:
        self._tell("thinking …")

    def reading(self, progress: "Progress") -> None:
        self._tell(tell_progress(progress))

    def end(self) -> None:
        self._clear()
        if self._last != "\n":
            write_exactly("\n")
        self._last = "\n"

    def report(self, event: str, body: Mapping[str, object]) -> None:
        """People are told in words."""

    def _tell(self, line: str) -> None:
        self._shown = draw_status(line) or self._shown

    def _clear(self) -> None:
        if self._shown:
            clear_status()
            self._shown = False


class JsonOutput(PlainOutput):
    """A JSON object per line for programs, on the stream that is given; everything else is for people."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(quiet=True)
        self._out = out

    def more(self, text: str) -> None:
        super().more(text)
        self.report("delta", {"text": text})

    def report(self, event: str, body: Mapping[str, object]) -> None:
        tell_json({"event": event, **body}, out=self._out)


async def follow(events: AsyncGenerator[Event, None], output: Output) -> Turn | None:
    """Show what happens, to the end, and give the turn as it was sent at last; what ends the process stops it."""
    turn = None
    shown = _EventDisplay(output)
    with unseen_keys(), ended_by_signals():
        output.begin()
        try:
            async with aclosing(events):
                async for event in events:
                    turn = event.turn or turn
                    shown.show(event)
        finally:
            output.end()
    return turn


class _EventDisplay:
    """Shows events as they come; of a result it knows which call it answers."""

    def __init__(self, output: Output) -> None:
        self._output = output
        # Those whose results have not come, which come in their order; ids may be mended on the way.
        self._calls: deque[ToolCall] = deque()
        self._said = False
        # A turn is sent on after every round, each time with the warnings it was asked with.
        self._told: dict[str, None] = {}

    def show(self, event: Event) -> None:
        match event.kind:
            case EventName.DELTA:
                self._said = self._said or bool(event.text.strip())
                self._output.more(event.text)
            case EventName.REASONING:
                self._output.thinking()
            case EventName.TOOL:
                self._show_tool(event)
            case _:
                for line in _tell(event, said=self._said):
                    # What was noted before the turn was asked is one of its warnings.
                    what = line.partition(": ")[2] or line
                    if what not in self._told:
                        tell(line, err=True)
                    self._told[what] = None

    def _show_tool(self, event: Event) -> None:
        """A call, or what it gave: a line for people, all of it for programs."""
        call, output = event.call, event.output
        if call is not None:
            self._calls.append(call)
            tell(f"→ {tell_called(call.name, call.arguments)}", err=True)
            self._output.report("call", {"id": call.id, "name": call.name, "arguments": call.arguments})
        elif output is not None:
            name = show_line(self._calls.popleft().name if self._calls else output.call)
            tell(f"← {name} {tell_given(output.output, failed=output.failed)}", err=True)
            given = {"id": output.call, "output": output.output, "failed": output.failed}
            self._output.report("result", given)
            # What the model says next is another piece of its answer, on lines of its own.
            self._output.end()
            self._said = False


def _tell(event: Event, *, said: bool) -> Iterator[str]:
    """What people should know of an event that is not the answer."""
    match event:
        case Event(kind=EventName.ENVELOPE, turn=turn) if turn is not None:
            yield from (f"warning: {show_line(warning)}" for warning in turn.envelope.warnings)
            if turn.compaction is not None:
                yield f"compacted to make room: {tell_receipt(turn.compaction)}"
        case Event(kind=EventName.NOTE):
            yield f"note: {show_line(event.said)}"
        case Event(kind=EventName.RETRY):
            yield f"{show_line(event.said)} Trying again in {event.wait or 0:.1f} s."
        case Event(kind=EventName.COMPACTION, receipt=receipt) if receipt is not None:
            yield f"{show_line(event.said)} Compacted: {tell_receipt(receipt)}"
        case Event(kind=EventName.DONE, turn=turn) if turn is not None and turn.envelope.prompt.rounds and not said:
            yield "The model gave no answer in words. What its tools gave is kept; /retry asks again."


def tell_progress(progress: "Progress") -> str:
    """How far reading in is, in a line."""
    share = progress.done / progress.total if progress.total else 1.0
    cached = f", {progress.cached:,} of them cached" if progress.cached else ""
    return f"reading {progress.total:,} tokens in{cached}: {share:.0%}"
