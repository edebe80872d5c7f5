"""Telling: the one way out to whoever reads. Nothing that is printed can act on a terminal, whoever wrote it.

Tables go through the console of this room, which is held to the same.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO
from unicodedata import east_asian_width

from lamella.faces.cli.terminal.keys import read_typed
from lamella.faces.cli.terminal.lines import show_json, show_line, show_lines

if TYPE_CHECKING:
    from lamella.wiring import Services

_NARROWEST, _UNKNOWN_WIDTH = 20, 80
_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
# What programs know our JSON by, whatever it tells of.
_FORMAT = {"lamella": 1}
_CLEAR = "\r\x1b[2K"
# What stays in one piece when a line is wrapped: a command is there to be copied.
_PIECES = re.compile(r"`[^`]*`\S*|(?<=: )lamella .+|\S+")


def tell(text: str, *, err: bool = False, under: int = 0) -> None:
    """Lines for people, on stdout or stderr. On a terminal long ones are wrapped between words.

    What is wrapped goes on so many columns ``under`` from the edge, where that leaves room for words.
    """
    stream = sys.stderr if err else sys.stdout
    shown = show_lines(text)
    if is_terminal(stream):
        shown = "\n".join(wrap_line(line, count_columns(), under=under) for line in shown.split("\n"))
    _write(stream, f"{shown}\n")


def tell_json(body: Mapping[str, object], *, out: TextIO | None = None) -> None:
    """A JSON object of this format for programs, on stdout or on another stream, in a line."""
    _write(sys.stdout if out is None else out, show_json(json.dumps({**_FORMAT, **body}, ensure_ascii=False)) + "\n")


def tell_foreign(body: object) -> None:
    """JSON in somebody else's format, on stdout, in lines that people can read."""
    _write(sys.stdout, show_json(json.dumps(body, ensure_ascii=False, indent=2)) + "\n")


def tell_done(line: str, body: Mapping[str, object], *, as_json: bool) -> None:
    """What was done: a line for people, or a JSON object for programs."""
    if as_json:
        tell_json(body)
    else:
        tell(line)


def write_exactly(text: str) -> None:
    """What somebody else said: into a file or pipe as it is, on a terminal so that it can do nothing to it."""
    _write(sys.stdout, show_lines(text) if is_terminal(sys.stdout) else text)


def draw_status(line: str) -> bool:
    """Draw the line that changes, on stderr, and say whether that is possible there; it is never wrapped."""
    if not can_redraw(sys.stderr):
        return False
    _write(sys.stderr, _CLEAR + cut_columns(show_line(line), count_columns() - 1))
    return True


def clear_status() -> None:
    """Take it away."""
    with suppress(OSError, ValueError):
        _write(sys.stderr, _CLEAR)


def ask_yes(question: str, *, err: bool = False) -> bool:
    """Whether somebody says yes; it is asked on stdout or stderr. Where nobody is there to answer, nobody does."""
    stream = sys.stderr if err else sys.stdout
    answer: bool | None = None
    try:
        while answer is None:
            _write(stream, f"{show_line(question)} [y/N]: ")
            typed = read_typed()
            if not typed:
                _write(stream, "\n")
            answer = _ANSWERS.get(typed.strip().lower())
    except KeyboardInterrupt:
        _write(stream, "\n")
        raise
    return answer


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads it."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """Whether a line can be drawn over another; a dumb terminal only goes on."""
    return is_terminal(stream) and not is_dumb()


def is_dumb() -> bool:
    """Whether the terminal knows nothing but text."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def count_columns() -> int:
    """How wide the terminal is, by its own word: a variable may be left from another one, or from before a resize."""
    for stream in (sys.stderr, sys.stdout):
        with suppress(OSError, ValueError, AttributeError):
            return max(_NARROWEST, os.get_terminal_size(stream.fileno()).columns)
    return _UNKNOWN_WIDTH


def wrap_line(line: str, columns: int, *, under: int = 0) -> str:
    """A line that is too long, in several, cut between words; a word that is too long stays whole, to be copied."""
    before = " " * (under if columns >= 2 * under else 0)
    return line if measure(line) <= columns else "\n".join(_wrap(line, columns, before))


def _wrap(line: str, columns: int, before: str) -> Iterator[str]:
    begun, end = "", 0
    for piece in _PIECES.finditer(line):
        longer = line[: piece.end()] if not begun else begun + line[end : piece.end()]
        if begun and measure(longer) > columns:
            yield begun
            longer = before + piece.group()
        begun, end = longer, piece.end()
    yield begun


def cut_columns(text: str, columns: int) -> str:
    """The beginning of a text, as much of it as fits."""
    taken = 0
    for place, letter in enumerate(text):
        taken += measure(letter)
        if taken > columns:
            return text[:place]
    return text


def measure(text: str) -> int:
    """How many columns a text takes."""
    return len(text) if text.isascii() else sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()


def warn_laxer(given: Mapping[str, object], services: "Services") -> None:
    """Say of rules for writing that they have no effect where a conversation sets them laxer than settings do."""
    if not {"note_writes", "memory_writes"} & given.keys():
        return
    from lamella.settings.meaning import tell_laxer

    for line in tell_laxer(services.settings, given):
        tell(f"warning: {line}", err=True)
