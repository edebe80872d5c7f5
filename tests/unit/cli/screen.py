"""Commands at a pseudo-terminal in this process: keys that are pressed when a text appears, and the screen at the end."""

import fcntl
import os
import re
import struct
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Condition, Thread

import pyte
from prompt_toolkit.application import create_app_session

from lamella.cli.entry_point import run_command_line

ENTER, TAB, CTRL_C, CTRL_D, ALT_ENTER = "\r", "\t", "\x03", "\x04", "\x1b\r"
# The end of a question that is answered with a line; all else is typed into the line editor.
QUESTION = "[y/N]: "
_LINES, _COLUMNS, _SCROLLED = 60, 100, 2_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")
# A wait that takes longer has failed; Ctrl-D then ends the program.
_SECONDS = 60


class _Screen(pyte.HistoryScreen):
    """A screen that answers when a program asks for the position of the cursor."""

    fd = -1

    def write_process_input(self, data: str) -> None:
        os.write(self.fd, data.encode())


class _Terminal:
    """The other end of the pseudo-terminal: reads all output in a thread."""

    def __init__(self, fd: int, columns: int) -> None:
        self._fd = fd
        self._screen = _Screen(columns, _LINES, history=_SCROLLED)
        self._screen.fd = fd
        self._stream = pyte.ByteStream(self._screen)
        self._raw = b""
        self._seen = 0
        self._changed = Condition()
        self._is_closed = False

    def read_all(self) -> None:
        while True:
            try:
                read = os.read(self._fd, 65_536)
            except OSError:
                read = b""
            with self._changed:
                self._stream.feed(read)
                self._raw += read
                self._is_closed = not read
                self._changed.notify_all()
            if not read:
                return

    def press_when_shown(self, steps: Sequence[tuple[str, str]]) -> None:
        for text, keys in steps:
            if not self._wait_for(text):
                return
            os.write(self._fd, keys.encode())

    def _wait_for(self, text: str) -> bool:
        """Wait for a text, and for the line editor unless the text is a question. If neither comes, end the program."""
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and not self._is_closed:
            with self._changed:
                at = self._find(text)
                if at >= 0 and (text.endswith(QUESTION) or not termios.tcgetattr(self._fd)[3] & termios.ICANON):
                    self._seen = at + len(text)
                    return True
                self._changed.wait(0.02)
        os.write(self._fd, (CTRL_D * 3).encode())
        return False

    def _find(self, text: str) -> int:
        return self.raw_text.find(text, self._seen)

    @property
    def raw_text(self) -> str:
        return _ESCAPES.sub("", self._raw.decode(errors="replace"))

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        columns = range(self._screen.columns)
        scrolled = ["".join(line[column].data for column in columns) for line in self._screen.history.top]
        return [line.rstrip() for line in (*scrolled, *self._screen.display)]


class Shown:
    """What a command at a terminal showed, and how it ended."""

    def __init__(self, *, code: int, screen: str, raw: str) -> None:
        self.code, self.screen, self.raw = code, screen, raw


def run_at_terminal(words: Sequence[str], *steps: tuple[str, str], columns: int = _COLUMNS) -> Shown:
    """Run a command. In each step, wait until a text is shown that was not waited for before, then press keys."""
    fd, other_end = os.openpty()
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, columns, 0, 0))
    terminal = _Terminal(fd, columns)
    reader = Thread(target=terminal.read_all)
    typist = Thread(target=terminal.press_when_shown, args=(steps,))
    with _redirect_standard_streams(other_end), create_app_session():
        reader.start()
        typist.start()
        code = run_command_line(words)
    os.close(other_end)
    reader.join()
    typist.join()
    os.close(fd)
    return Shown(code=code, screen="\n".join(terminal.lines).strip("\n"), raw=terminal.raw)


@contextmanager
def _redirect_standard_streams(fd: int) -> Iterator[None]:
    """Make a terminal the standard input, output and error of this process."""
    before, fds = (sys.stdin, sys.stdout, sys.stderr), [os.dup(number) for number in range(3)]
    for number in range(3):
        os.dup2(fd, number)
    with ExitStack() as stack:
        sys.stdin, sys.stdout, sys.stderr = (
            stack.enter_context(open(number, mode, encoding="utf-8", buffering=1, closefd=False))
            for number, mode in enumerate("rww")
        )
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
    for number, old in enumerate(fds):
        os.dup2(old, number)
        os.close(old)
