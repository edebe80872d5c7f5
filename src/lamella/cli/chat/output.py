"""Show an answer while it streams: its text on stdout, everything else on stderr."""

import re
from asyncio import TimerHandle, get_running_loop
from collections import Counter, deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO
from unicodedata import category

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from lamella import Turn
from lamella.cli.console import make_console
from lamella.cli.interrupts import cancel_on_signals
from lamella.cli.output import (
    clear_status_line,
    display_width,
    draw_status_line,
    escape_lines,
    escape_to_short_line,
    print_json,
    print_text,
    suppress_echo,
    write_unwrapped,
)
from lamella.cli.prompt_tables import format_receipt, format_tool_call, format_tool_output
from lamella.conversation.turn_runner import EventName, TurnEvent
from lamella.schemas.answers import DeltaEventJson, ToolResultJson, tool_call_to_json
from lamella.schemas.body import JsonBody

if TYPE_CHECKING:
    from lamella.providers import ToolCall
    from lamella.providers.local import PromptProgress


class AnswerDisplay(Protocol):
    """A display for an answer; ``progress_text`` describes how much of the prompt a local model has processed."""

    progress_text: str

    def start(self) -> None:
        """Show that a question was sent."""

    def write(self, text: str) -> None:
        """Show a piece of the answer."""

    def show_thinking(self) -> None:
        """Show that the model is reasoning and has not begun its answer."""

    def show_progress(self, progress: "PromptProgress") -> None:
        """Show how much of the prompt a local model has processed."""

    def pause(self) -> AbstractContextManager[None]:
        """Remove the display meanwhile, so that the user can be asked a question on the terminal."""

    def finish(self) -> None:
        """Finish the display; called after success, failure and cancellation."""

    def report_event(self, event: str, body: JsonBody) -> None:
        """Report an event to programs: a conversation was opened, a turn is done, something failed."""


class PlainOutput:
    """Prints the answer as plain text; on a terminal control characters are escaped."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.progress_text = ""
        self._quiet = quiet
        self._last_char = "\n"
        self._has_status_line = False

    def start(self) -> None:
        self._show_status("waiting for an answer …")

    def write(self, text: str) -> None:
        self._clear_status()
        if not self._quiet:
            write_unwrapped(text)
            self._last_char = text[-1:] or self._last_char

    def show_thinking(self) -> None:
        self._show_status("thinking …")

    def show_progress(self, progress: "PromptProgress") -> None:
        self._show_status(format_progress(progress))

    @contextmanager
    def pause(self) -> Iterator[None]:
        self.finish()
        yield

    def finish(self) -> None:
        self._clear_status()
        if self._last_char != "\n":
            write_unwrapped("\n")
        self._last_char = "\n"

    def report_event(self, event: str, body: JsonBody) -> None:
        """Do nothing: reports are for programs."""

    def _show_status(self, line: str) -> None:
        self._has_status_line = draw_status_line(line) or self._has_status_line

    def _clear_status(self) -> None:
        if self._has_status_line:
            clear_status_line()
            self._has_status_line = False


class JsonOutput(PlainOutput):
    """Prints one JSON object per line to the given stream; text for people goes elsewhere."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(quiet=True)
        self._out = out

    def write(self, text: str) -> None:
        super().write(text)
        self.report_event("delta", DeltaEventJson(text=text))

    def report_event(self, event: str, body: JsonBody) -> None:
        print_json(body, event=event, out=self._out)


async def show_events(events: AsyncGenerator[TurnEvent, None], output: AnswerDisplay) -> Turn | None:
    """Show all events of an answer and return the turn as last sent; a terminating signal stops it."""
    turn = None
    shown = _EventDisplay(output)
    with suppress_echo(), cancel_on_signals():
        output.start()
        try:
            async with aclosing(events):
                async for event in events:
                    turn = event.turn or turn
                    shown.show(event)
        finally:
            output.finish()
    return turn


class _EventDisplay:
    """Shows events as they arrive, and matches tool results to their calls."""

    def __init__(self, output: AnswerDisplay) -> None:
        self._output = output
        # Calls without a result yet. Results arrive in the order of the calls; ids may have been corrected meanwhile.
        self._open_calls: deque[ToolCall] = deque()
        self._has_answer_text = False
        # Lines that were printed already: every tool round sends the turn again with all its warnings.
        self._printed_lines: dict[str, None] = {}

    def show(self, event: TurnEvent) -> None:
        match event.kind:
            case EventName.DELTA:
                self._has_answer_text = self._has_answer_text or bool(event.text.strip())
                self._output.write(event.text)
            case EventName.REASONING:
                self._output.show_thinking()
            case EventName.TOOL:
                self._show_tool(event)
            case _:
                for line in _describe_event(event, has_answer_text=self._has_answer_text):
                    # A note from before the turn was sent appears again among its warnings, with another prefix.
                    what = line.partition(": ")[2] or line
                    if what not in self._printed_lines:
                        print_text(line, err=True)
                    self._printed_lines[what] = None

    def _show_tool(self, event: TurnEvent) -> None:
        """Show a call or its result: one line for people, all of it for programs."""
        call, output = event.call, event.output
        if call is not None:
            self._open_calls.append(call)
            print_text(f"→ {format_tool_call(call.name, call.arguments)}", err=True)
            self._output.report_event("call", tool_call_to_json(call))
        elif output is not None:
            name = escape_to_short_line(self._open_calls.popleft().name if self._open_calls else output.call)
            print_text(f"← {name} {format_tool_output(output.output, failed=output.failed)}", err=True)
            given = ToolResultJson(id=output.call, output=output.output, failed=output.failed)
            self._output.report_event("result", given)
            # Finish the display, so that the text after a tool round starts on a new line.
            self._output.finish()
            self._has_answer_text = False


def _describe_event(event: TurnEvent, *, has_answer_text: bool) -> Iterator[str]:
    """Yield the lines for people about an event that carries no answer text."""
    match event:
        case TurnEvent(kind=EventName.ENVELOPE, turn=turn) if turn is not None:
            yield from (f"warning: {escape_to_short_line(warning)}" for warning in turn.envelope.warnings)
            if turn.compaction is not None:
                yield f"compacted: {format_receipt(turn.compaction)}"
        case TurnEvent(kind=EventName.NOTE):
            yield f"note: {escape_to_short_line(event.message)}"
        case TurnEvent(kind=EventName.RETRY):
            yield f"{escape_to_short_line(event.message)} Trying again in {event.wait or 0:.1f} s."
        case TurnEvent(kind=EventName.COMPACTION, receipt=receipt) if receipt is not None:
            yield f"{escape_to_short_line(event.message)} Compacted: {format_receipt(receipt)}"
        case TurnEvent(kind=EventName.DONE, turn=turn) if (
            turn is not None and turn.envelope.prompt.rounds and not has_answer_text
        ):
            yield "The model returned no text. The tool results are saved; /retry asks again."


def format_progress(progress: "PromptProgress") -> str:
    """Return on one line how much of the prompt was processed."""
    share = progress.processed_tokens / progress.total_tokens if progress.total_tokens else 1.0
    cached = f", {progress.cached_tokens:,} of them cached" if progress.cached_tokens else ""
    return f"reading {progress.total_tokens:,} tokens in{cached}: {share:.0%}"


# finished blocks are printed once, the last block is redrawn as it grows.

# Seconds between two redraws.
_REDRAW_SECONDS = 0.1
# Lines that stay free below the redrawn block, so that the terminal never scrolls part of it away.
_FREE_LINES = 3
_FENCES = ("```", "~~~")
# The language after a code fence. Rendering does not show it, so the completeness check ignores it.
_FENCE_LANGUAGE = re.compile(r"^([ \t]*(?:`{3,}|~{3,}))[ ]*[\w+#.-]+[ ]*$", re.MULTILINE)
# These rules would hide text or show it twice: tags, link references, image URLs, entities.
_DISABLED_RULES = ("html_block", "html_inline", "reference", "image", "autolink", "entity")
_MARKDOWN_PARSER = MarkdownIt().enable(("strikethrough", "table")).disable(_DISABLED_RULES)


class MarkdownOutput:
    """Draws an answer on a terminal with a limited redraw rate and never more lines than the screen has.

    Everything is drawn on one thread. With a second one, each would erase lines that the other has just written.
    """

    def __init__(self) -> None:
        self._console = make_console()
        self.progress_text = ""
        self._live: Live | None = None
        self._redraw_timer: TimerHandle | None = None
        self._unfinished_text = ""
        self._has_printed = False

    def start(self) -> None:
        self._unfinished_text, self._has_printed = "", False
        self._start_live()
        self._show_status("waiting for an answer …")

    def write(self, text: str) -> None:
        done, self._unfinished_text = split_finished_blocks(self._unfinished_text + escape_lines(text))
        if done.strip():
            self._print_block(done)
        if self._redraw_timer is None:
            self._redraw_timer = get_running_loop().call_later(_REDRAW_SECONDS, self._draw)

    def show_thinking(self) -> None:
        self._show_status("thinking …")

    def show_progress(self, progress: "PromptProgress") -> None:
        self.progress_text = format_progress(progress)
        self._show_status(f"{self.progress_text} (Ctrl-C stops)")

    def report_event(self, event: str, body: JsonBody) -> None:
        """Do nothing: reports are for programs."""

    @contextmanager
    def pause(self) -> Iterator[None]:
        # While it is active, rich's display also replaces stdout and stderr: it escapes control characters and ends
        # each piece of text with a line break, so a question and its answer would not be on one line.
        was_active = self._live is not None
        self.finish()
        try:
            yield
        finally:
            if was_active:
                self._start_live()

    def finish(self) -> None:
        self._cancel_redraw()
        live, self._live = self._live, None
        if live is not None:
            live.update("")
            live.stop()
        if self._unfinished_text.strip():
            self._print_block(self._unfinished_text)
        self._unfinished_text = ""

    def _start_live(self) -> None:
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def _draw(self) -> None:
        self._redraw_timer = None
        if self._live is not None:
            self._live.update(_LastLinesView(self._unfinished_text), refresh=True)

    def _show_status(self, line: str) -> None:
        if self._live is not None and not self._unfinished_text:
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _print_block(self, block: str) -> None:
        self._cancel_redraw()
        if self._live is not None:
            # Erase the live version of the block before its final version is printed.
            self._live.update("")
        if self._has_printed:
            self._console.print()
        self._console.print(_MarkdownOrText(block))
        self._has_printed = True

    def _cancel_redraw(self) -> None:
        due, self._redraw_timer = self._redraw_timer, None
        if due is not None:
            due.cancel()


class _LastLinesView:
    """The end of a text, as many lines as fit on the screen."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_SafeMarkdown(self._text), options, pad=False)
        for line in lines[-max(1, console.height - _FREE_LINES) :]:
            yield from _truncate_line(line, options.max_width)
            yield Segment.line()


def _truncate_line(line: list[Segment], columns: int) -> list[Segment]:
    """Cut a line so that no terminal wraps it, even if terminals disagree about the width of a character.

    A wrapped line would take two rows. The next redraw would erase only one of them, and the other would stay.
    """
    cut: list[Segment] = []
    for text, style, control in line:
        kept = ""
        for letter in text:
            columns -= 2 if category(letter) in ("So", "Sk", "Mn", "Me", "Cf", "Co", "Cn") else display_width(letter)
            if columns < 0:
                return [*cut, Segment(kept, style, control)]
            kept += letter
        cut.append(Segment(text, style, control))
    return cut


class _SafeMarkdown(Markdown):
    """Markdown that shows the target of each link, because the model chose its text, and shows tags as text."""

    def __init__(self, text: str) -> None:
        # Parsed with our own parser: rich's would enable the rules that are disabled above.
        super().__init__("", hyperlinks=False)
        self.markup, self.parsed = text, _MARKDOWN_PARSER.parse(text)


class _MarkdownOrText:
    """A text rendered as Markdown, or printed unchanged if rendering would lose a letter or digit of it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_SafeMarkdown(self._text), options, pad=False)
        shown = "".join(segment.text for line in lines for segment in line)
        if shown.strip() and not _count_letters(_FENCE_LANGUAGE.sub(r"\1", self._text)) - _count_letters(shown):
            for line in lines:
                yield from line
                yield Segment.line()
        else:
            yield Text(self._text.strip("\n"), overflow="fold")


def _count_letters(text: str) -> Counter[str]:
    return Counter(letter for letter in text if letter.isalnum())


def split_finished_blocks(text: str) -> tuple[str, str]:
    """Split a text into its finished blocks and the rest.

    A block is finished at an empty line that is followed by another line. It is not finished inside a code fence, or
    if the next line is indented, because that line may belong to a list above.
    """
    cut, fenced, empty, offset = 0, "", False, 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if not fenced and empty and bare and not line[0].isspace():
            cut = offset
        if fenced:
            fenced = "" if bare.startswith(fenced) else fenced
        elif bare.startswith(_FENCES):
            fenced = bare[:3]
        empty = not bare
        offset += len(line)
    return text[:cut], text[cut:]
