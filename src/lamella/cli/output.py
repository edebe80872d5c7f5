"""Keyboard echo: suppress it while an answer streams, and read what the user types to a question."""

import json
import os
import re
import select
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from decimal import Decimal
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, TextIO, TypeVar
from unicodedata import east_asian_width

from msgspec import Struct, to_builtins

if TYPE_CHECKING:
    from lamella.wiring import ServiceContainer

with suppress(ImportError):  # not available on Windows
    import termios

_LFLAG_INDEX = 3
# Decimal places of small amounts of money.
_COST_DIGITS = 6
# Seconds between two checks for Ctrl-C.
_INTERRUPT_POLL_SECONDS = 0.1


@contextmanager
def suppress_echo() -> Iterator[None]:
    """Suppress the echo of typed keys meanwhile.

    The terminal's own ``^C`` would otherwise move the cursor away from the line that is redrawn.
    """
    with _terminal_echo(enabled=False):
        yield


@contextmanager
def echo_and_flush_input() -> Iterator[None]:
    """Echo keys while a question is asked; input typed before the question is discarded, it is no answer."""
    with _terminal_echo(enabled=True):
        if _is_foreground_process():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        yield


def read_typed_line() -> str:
    """Return the next typed line, or an empty text at the end of input; Ctrl-C always interrupts it.

    A signal that arrives just before a blocking read starts is not handled until the read ends. So the read starts
    only when ``select`` reports input.
    """
    if sys.stdin is None:
        return ""
    if "termios" in globals() and sys.stdin.isatty():
        while not select.select([sys.stdin], [], [], _INTERRUPT_POLL_SECONDS)[0]:
            pass
    return sys.stdin.readline()


@contextmanager
def _terminal_echo(*, enabled: bool) -> Iterator[None]:
    if not _is_foreground_process():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    after = before.copy()
    after[_LFLAG_INDEX] = before[_LFLAG_INDEX] | termios.ECHO if enabled else before[_LFLAG_INDEX] & ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, after)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _is_foreground_process() -> bool:
    """Return whether this process is in the terminal's foreground; the system stops others that change its modes."""
    if sys.stdin is None or "termios" not in globals() or not sys.stdin.isatty():
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False


# Escape text of any origin so that it can be printed on a terminal safely.

_MAX_LINE_LENGTH = 2_000
_KEPT_HALF_LENGTH = _MAX_LINE_LENGTH // 2
# Control characters, line and paragraph separators, characters that change the writing direction, and surrogates.
_CONTROL_CHARS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_INVISIBLE = re.compile(rf"[\t\n{_CONTROL_CHARS}]")
_INVISIBLE_EXCEPT_LINE_BREAKS = re.compile(rf"[{_CONTROL_CHARS}]")


def escape_to_short_line(text: str) -> str:
    """Return a text on one line: invisible characters are escaped, and a very long text is cut in the middle."""
    if len(text) > _MAX_LINE_LENGTH:
        text = f"{text[:_KEPT_HALF_LENGTH]} … {len(text) - 2 * _KEPT_HALF_LENGTH:,} characters … {text[-_KEPT_HALF_LENGTH:]}"
    return _INVISIBLE.sub(_escape_match, text)


def escape_lines(text: str) -> str:
    """Return a text with its line breaks and tabs, and all other control characters escaped."""
    return _INVISIBLE_EXCEPT_LINE_BREAKS.sub(_escape_match, text)


def escape_json(text: str) -> str:
    """Return equivalent JSON with control characters as JSON escapes."""
    return _INVISIBLE_EXCEPT_LINE_BREAKS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun: 1 turn, 2 turns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_cache_miss(tokens: int, cost: Decimal | None) -> str:
    """Return what a cache miss cost, in tokens and money."""
    again = f"{format_count(tokens, 'token')} that had been cached {'was' if tokens == 1 else 'were'} processed again"
    if cost is None:
        return f"{again}; no price is known"
    from lamella.schemas.formatting import format_decimal  # only where money is printed

    return f"{again}, for ${format_decimal(round(cost, _COST_DIGITS))} more than from the cache"


def format_time(at: str, *, utc: bool = False) -> str:
    """Format a stored time in local time or UTC; a text that is no time is returned escaped."""
    try:
        moment = datetime.fromisoformat(at)
        # Times without a zone were stored in UTC.
        known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return f"{known.astimezone(UTC if utc else None):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return escape_to_short_line(at)


def _escape_match(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()


_MIN_WIDTH, _DEFAULT_WIDTH = 20, 80
# Print text and JSON; control characters are escaped, so that no text can act on the terminal.
#
# Tables use the console of this package, which escapes in the same way.

_YES_NO_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
# Identifies Lamella's JSON format and its version in every object.
_JSON_FORMAT = {"lamella": 1}
_CLEAR_LINE = "\r\x1b[2K"
# Pieces that wrapping must not break: commands are there to be copied.
_UNBREAKABLE_PIECE = re.compile(r"`[^`]*`\S*|(?<=: )lamella .+|\S+")


def print_text(text: str, *, err: bool = False, indent: int = 0) -> None:
    """Print lines for people on stdout or stderr; on a terminal long lines are wrapped between words.

    Wrapped lines are indented by ``indent`` columns if that leaves enough space.
    """
    stream = sys.stderr if err else sys.stdout
    shown = escape_lines(text)
    if is_terminal(stream):
        shown = "\n".join(wrap_line(line, get_terminal_width(), indent=indent) for line in shown.split("\n"))
    _write_to_stream(stream, f"{shown}\n")


def format_json(body: Struct) -> str:
    """Return a body as JSON on one line."""
    return _dump_json(to_builtins(body))


def print_json(body: Struct, *, event: str | None = None, out: TextIO | None = None) -> None:
    """Print a body as JSON on one line, to stdout or to ``out``; lines of a stream name their event."""
    named = {} if event is None else {"event": event}
    _write_to_stream(
        sys.stdout if out is None else out, _dump_json({**_JSON_FORMAT, **named, **to_builtins(body)}) + "\n"
    )


def _dump_json(body: object) -> str:
    # Not encoded by msgspec, which rejects the surrogates that file names may contain.
    return escape_json(json.dumps(body, ensure_ascii=False))


def print_raw_json(body: object) -> None:
    """Print JSON of another format, such as a provider's request, indented on stdout."""
    _write_to_stream(sys.stdout, escape_json(json.dumps(body, ensure_ascii=False, indent=2)) + "\n")


def print_result(line: str, body: Struct, *, as_json: bool) -> None:
    """Print the result of a command: a line for people, or a JSON object."""
    if as_json:
        print_json(body)
    else:
        print_text(line)


def write_unwrapped(text: str) -> None:
    """Print a text unchanged into a file or pipe, and escaped on a terminal."""
    _write_to_stream(sys.stdout, escape_lines(text) if is_terminal(sys.stdout) else text)


def draw_status_line(line: str) -> bool:
    """Redraw the status line on stderr, cut to one line; return False if stderr cannot redraw."""
    if not can_redraw(sys.stderr):
        return False
    _write_to_stream(sys.stderr, _CLEAR_LINE + truncate_columns(escape_to_short_line(line), get_terminal_width() - 1))
    return True


def clear_status_line() -> None:
    """Remove the status line; nothing was drawn if stderr cannot redraw."""
    if can_redraw(sys.stderr):
        with suppress(OSError, ValueError):
            _write_to_stream(sys.stderr, _CLEAR_LINE)


def confirm(question: str, *, err: bool = False) -> bool:
    """Ask a yes/no question on stdout or stderr and return whether the user said yes.

    The end of input counts as no.
    """
    stream = sys.stderr if err else sys.stdout
    answer: bool | None = None
    try:
        while answer is None:
            _write_to_stream(stream, f"{escape_to_short_line(question)} [y/N]: ")
            typed = read_typed_line()
            if not typed:
                _write_to_stream(stream, "\n")
            answer = _YES_NO_ANSWERS.get(typed.strip().lower())
    except KeyboardInterrupt:
        _write_to_stream(stream, "\n")
        raise
    return answer


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Return whether a line can be drawn over another; a dumb terminal cannot do that."""
    return is_terminal(stream) and not is_dumb_terminal()


def is_dumb_terminal() -> bool:
    """Return whether the terminal understands no escape codes."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def get_terminal_width() -> int:
    """Return the terminal's real width.

    The variable ``COLUMNS`` is not used: it may come from another terminal, or from before a resize.
    """
    for stream in (sys.stderr, sys.stdout):
        with suppress(OSError, ValueError, AttributeError):
            return max(_MIN_WIDTH, os.get_terminal_size(stream.fileno()).columns)
    return _DEFAULT_WIDTH


def wrap_line(line: str, columns: int, *, indent: int = 0) -> str:
    """Wrap a long line between words; a word that is too long stays whole, so that it can be copied."""
    before = " " * (indent if columns >= 2 * indent else 0)
    return line if display_width(line) <= columns else "\n".join(_iter_wrapped_lines(line, columns, before))


def _iter_wrapped_lines(line: str, columns: int, indent_text: str) -> Iterator[str]:
    begun, end = "", 0
    for piece in _UNBREAKABLE_PIECE.finditer(line):
        longer = line[: piece.end()] if not begun else begun + line[end : piece.end()]
        if begun and display_width(longer) > columns:
            yield begun
            longer = indent_text + piece.group()
        begun, end = longer, piece.end()
    yield begun


def truncate_columns(text: str, columns: int) -> str:
    """Return as much of a text's beginning as fits into ``columns``."""
    used_columns = 0
    for index, letter in enumerate(text):
        used_columns += display_width(letter)
        if used_columns > columns:
            return text[:index]
    return text


def display_width(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _write_to_stream(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()


def warn_about_ignored_write_permissions(overrides: Mapping[str, object], services: "ServiceContainer") -> None:
    """Warn about write permissions of a conversation that are laxer than the settings: they have no effect."""
    if not {"note_writes", "memory_writes"} & overrides.keys():
        return
    from lamella.settings.rules import looser_write_rule_warnings

    for line in looser_write_rule_warnings(services.settings, overrides):
        print_text(f"warning: {line}", err=True)


# a slow command shows on a terminal what it does and how far it is.

_UPDATE_SECONDS = 1.0
_Item = TypeVar("_Item")


class ProgressLine:
    """One line on stderr that a thread redraws every second; it does nothing if stderr is no terminal."""

    def __init__(self, description: str, *, delay: float) -> None:
        self._description = escape_to_short_line(description)
        self._delay = delay
        self._count_text = ""
        self._is_shown = False
        self._started_at = monotonic()
        self._stopped = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._run, daemon=True) if can_redraw(sys.stderr) else None

    def start(self) -> None:
        if self._thread is not None:
            self._thread.start()

    def stop(self) -> None:
        # The thread must end before the line is cleared, or it could draw the line once more.
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        self._clear()

    def set_count(self, done: int, total: int) -> None:
        """Set how many items are done."""
        self._count_text = f" {done:,} of {total:,}"

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the line while other text is written; the lock keeps the thread from redrawing it meanwhile."""
        with self._lock:
            self._clear()
            yield

    def _run(self) -> None:
        pause = self._delay
        while not self._stopped.wait(pause):
            with self._lock, suppress(OSError, ValueError):
                self._draw()
            pause = _UPDATE_SECONDS

    def _draw(self) -> None:
        self._is_shown = draw_status_line(
            f"{self._description} …{self._count_text} ({monotonic() - self._started_at:,.0f} s)"
        )

    def _clear(self) -> None:
        if self._is_shown:
            self._is_shown = False
            clear_status_line()


@contextmanager
def show_if_slow(description: str, *, delay: float = _UPDATE_SECONDS) -> Iterator[ProgressLine]:
    """Show a progress line if the work takes longer than ``delay`` seconds."""
    waiting = ProgressLine(description, delay=delay)
    waiting.start()
    try:
        yield waiting
    finally:
        waiting.stop()


def with_progress(items: Iterable[_Item], description: str, *, total: int) -> Iterator[_Item]:
    """Yield the items and show on a terminal how many are done; the caller must not print meanwhile."""
    with show_if_slow(description) as waiting:
        for done, item in enumerate(items, start=1):
            waiting.set_count(done, total)
            yield item
