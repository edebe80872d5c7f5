"""Markdown while it comes: finished blocks are printed for good, the last one is drawn again as it grows."""

import re
from asyncio import TimerHandle, get_running_loop
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING
from unicodedata import category

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from lamella.faces.cli.chat.output import tell_progress
from lamella.faces.cli.terminal.console import make_console
from lamella.faces.cli.terminal.lines import show_lines
from lamella.faces.cli.terminal.telling import measure

if TYPE_CHECKING:
    from lamella.adapters.providers.local.provider import Progress

# Seconds between two pictures.
_PAUSE = 0.1
# Lines that stay free below what is drawn, so that a terminal never scrolls it away half drawn.
_FREE = 3
_FENCES = ("```", "~~~")
# The language that a fence names is not shown.
_LANGUAGE = re.compile(r"^(\s*(?:`{3,}|~{3,}))[ ]*[\w+#.-]+[ ]*$", re.MULTILINE)
# What these would make of a text is less of it, or the same twice: tags, names of links, addresses of pictures.
_UNUSED = ("html_block", "html_inline", "reference", "image", "autolink", "entity")
_PARSER = MarkdownIt().enable(("strikethrough", "table")).disable(_UNUSED)


class MarkdownOutput:
    """For terminals: at most so many pictures a second, and never more than the screen holds.

    All is drawn on one thread: where another draws as well, each takes away lines that the other has just written.
    """

    def __init__(self) -> None:
        self._console = make_console()
        self.told = ""
        self._live: Live | None = None
        self._due: TimerHandle | None = None
        self._rest = ""
        self._printed = False

    def begin(self) -> None:
        self._rest, self._printed = "", False
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self._wait("waiting for an answer …")

    def more(self, text: str) -> None:
        done, self._rest = split_finished(self._rest + show_lines(text))
        if done.strip():
            self._print(done)
        if self._due is None:
            self._due = get_running_loop().call_later(_PAUSE, self._draw)

    def thinking(self) -> None:
        self._wait("thinking …")

    def reading(self, progress: "Progress") -> None:
        self.told = tell_progress(progress)
        self._wait(f"{self.told} (Ctrl-C stops)")

    def report(self, event: str, body: Mapping[str, object]) -> None:
        """People are told in words."""

    def end(self) -> None:
        self._forget_due()
        live, self._live = self._live, None
        if live is not None:
            live.update("")
            live.stop()
        if self._rest.strip():
            self._print(self._rest)
        self._rest = ""

    def _draw(self) -> None:
        self._due = None
        if self._live is not None:
            self._live.update(_Tail(self._rest), refresh=True)

    def _wait(self, line: str) -> None:
        if self._live is not None and not self._rest:
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)

    def _print(self, block: str) -> None:
        self._forget_due()
        if self._live is not None:
            # What is printed for good takes the place of its picture.
            self._live.update("")
        if self._printed:
            self._console.print()
        self._console.print(_Whole(block))
        self._printed = True

    def _forget_due(self) -> None:
        due, self._due = self._due, None
        if due is not None:
            due.cancel()


class _Tail:
    """The end of a text, as much of it as the screen holds."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_Drawn(self._text), options, pad=False)
        for line in lines[-max(1, console.height - _FREE) :]:
            yield from _cut(line, options.max_width)
            yield Segment.line()


def _cut(line: list[Segment], columns: int) -> list[Segment]:
    """A line that no terminal wraps, whatever width it gives to characters on which they differ.

    One that took two lines would be taken away by half when the next picture is drawn, and stand there for good.
    """
    cut: list[Segment] = []
    for text, style, control in line:
        kept = ""
        for letter in text:
            columns -= 2 if category(letter) in ("So", "Sk", "Mn", "Me", "Cf", "Co", "Cn") else measure(letter)
            if columns < 0:
                return [*cut, Segment(kept, style, control)]
            kept += letter
        cut.append(Segment(text, style, control))
    return cut


class _Drawn(Markdown):
    """Markdown in which a link shows where it leads, since its text is the model's, and a tag is text."""

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup, self.parsed = text, _PARSER.parse(text)


class _Whole:
    """A text drawn as markdown, or as it is where that would leave a letter of it out."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(_Drawn(self._text), options, pad=False)
        shown = "".join(segment.text for line in lines for segment in line)
        if shown.strip() and not _letters(_LANGUAGE.sub(r"\1", self._text)) - _letters(shown):
            for line in lines:
                yield from line
                yield Segment.line()
        else:
            yield Text(self._text.strip("\n"), overflow="fold")


def _letters(text: str) -> Counter[str]:
    return Counter(letter for letter in text if letter.isalnum())


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
