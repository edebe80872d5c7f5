"""Markdown while it comes: finished blocks are printed for good, the last one is drawn again as it grows."""

import sys
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner

from lamella.faces.cli.chat.output import tell_progress
from lamella.faces.cli.terminal.lines import show_lines

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress

_PER_SECOND = 10
# Lines that stay free below what is drawn, so that a terminal never scrolls it away half drawn.
_FREE = 3
_FENCES = ("```", "~~~")


class MarkdownOutput:
    """For terminals: at most so many pictures a second, and never more than the screen holds."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
        self.told = ""
        self._live: Live | None = None
        self._rest = ""
        self._printed = False

    def begin(self) -> None:
        self._rest, self._printed = "", False
        self._live = Live(console=self._console, refresh_per_second=_PER_SECOND, transient=True)
        self._live.start()
        self._wait("waiting for an answer …")

    def more(self, text: str) -> None:
        done, self._rest = split_finished(self._rest + show_lines(text))
        if done.strip():
            self._print(done)
        if self._live is not None:
            self._live.update(_Tail(self._rest))

    def thinking(self) -> None:
        self._wait("thinking …")

    def reading(self, progress: "Progress") -> None:
        self.told = tell_progress(progress)
        self._wait(f"{self.told} (Ctrl-C stops)")

    def end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.update("")
            live.stop()
        if self._rest.strip():
            self._print(self._rest)
        self._rest = ""

    def _wait(self, line: str) -> None:
        if self._live is not None and not self._rest:
            self._live.update(Spinner("dots", text=line))

    def _print(self, block: str) -> None:
        if self._printed:
            self._console.print()
        self._console.print(_render(block))
        self._printed = True


class _Tail:
    """The end of a text, as much of it as the screen holds."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_render(self._text), options, pad=False)
        for line in lines[-max(1, console.height - _FREE) :]:
            yield from line
            yield Segment.line()


def split_finished(text: str) -> tuple[str, str]:
    """What is finished of a text, and the rest: a block ends at an empty line after which something else begins.

    Not within a code fence, and not where the next line is indented, since it may belong to a list above.
    """
    cut, fenced, empty, place = 0, "", False, 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if not fenced and empty and bare and not line[0].isspace():
            cut = place
        if fenced:
            fenced = "" if bare.startswith(fenced) else fenced
        elif bare.startswith(_FENCES):
            fenced = bare[:3]
        empty = not bare
        place += len(line)
    return text[:cut], text[cut:]


def _render(text: str) -> Markdown:
    # A link shows where it leads: its text is the model's.
    return Markdown(text, hyperlinks=False)
