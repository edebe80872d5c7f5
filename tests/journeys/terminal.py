"""A terminal of our own: a command on a pseudo-terminal, what is typed into it, and what it shows."""

import fcntl
import os
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from tests import preloaded
from tests.journeys.running import PROGRAM, SECONDS

CTRL_C, CTRL_D, ALT_ENTER, ENTER = "\x03", "\x04", "\x1b\r", "\r"
_LINES, _COLUMNS, _SCROLLED = 30, 160, 20_000
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])")


class _Screen(pyte.HistoryScreen):
    """A screen that answers, as terminals do when they are asked where the cursor is."""

    terminal = -1

    def write_process_input(self, data: str) -> None:
        os.write(self.terminal, data.encode())

    def draw(self, data: str) -> None:
        # Of several characters pyte draws none after one without a width, such as half of an emoji (0.8.2).
        for letter in [data] if data.isascii() else data:
            super().draw(letter)


class Terminal:
    """Runs a command until its block ends. ``shown`` is all that was there, without colours and cursor movements."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        columns: int = _COLUMNS,
        kind: str = "xterm",
        folder: Path | None = None,
    ) -> None:
        self._screen = _Screen(columns, _LINES, history=_SCROLLED)
        self._stream = pyte.ByteStream(self._screen)
        self._fd, its = os.openpty()
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, columns, 0, 0))
        whole = {**os.environ, **environment, "TERM": kind}
        place = str(folder or Path.cwd())
        assert preloaded.is_warm(whole), "a terminal is never one of an old locale"
        order = preloaded.Order(program=PROGRAM, words=words, environment=whole, folder=place, at_terminal=True)
        self._process = preloaded.start(order, (its, its, its))
        self._screen.terminal = self._fd
        self._raw = b""
        self._shown: str | None = None
        self._seen = 0
        self._is_dumb = kind == "dumb"
        self.exit: int | None = None

    def press(self, *keys: str) -> None:
        """Press keys once the line editor listens: before that, the terminal itself would take Ctrl-D, Ctrl-C and others."""
        self._wait_until(self._is_listening, "the line editor to listen")
        self.press_now(*keys)

    def press_now(self, *keys: str) -> None:
        """Press keys whoever listens: to answer a question, or to interrupt what runs."""
        os.write(self._fd, "".join(keys).encode())

    def end_chat(self) -> int:
        """Press Ctrl-D until the chat ends; its exit code. One that comes before the next prompt is lost."""
        deadline = time.monotonic() + SECONDS
        while self.exit is None:
            assert time.monotonic() < deadline, f"the chat does not end:\n{self.shown[self._seen :]}"
            if self._is_listening():
                with suppress(OSError):
                    self.press_now(CTRL_D)
            pressed = time.monotonic()
            while time.monotonic() < pressed + 1:
                if not self._read():
                    self.exit = self._process.wait()
                    break
        return self.exit

    def _is_listening(self) -> bool:
        """Whether keys go to the program one by one; a dumb terminal hands over whole lines and keeps what comes early."""
        return self._is_dumb or not termios.tcgetattr(self._fd)[3] & termios.ICANON

    def _wait_until(self, has_happened: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not has_happened():
            assert time.monotonic() < deadline, f"waited in vain for {what}:\n{self.shown[self._seen :]}"
            assert self._read(), f"it ended before {what}:\n{self.shown[self._seen :]}"

    def wait_for(self, text: str) -> str:
        """Read until a text is shown that was not waited for before; what was shown up to it."""
        self._wait_until(lambda: self.shown.find(text, self._seen) >= 0, repr(text))
        at = self.shown.find(text, self._seen)
        before, self._seen = self.shown[self._seen : at], at + len(text)
        return before

    def wait_for_end(self) -> int:
        deadline = time.monotonic() + SECONDS
        while self._read():
            assert time.monotonic() < deadline, f"it does not end:\n{self.shown[self._seen :]}"
        self.exit = self._process.wait()
        return self.exit

    def hang_up(self) -> None:
        """Go away, as a window that is closed does; the command ends by that, or by itself."""
        os.close(self._fd)
        self.exit = self._process.wait()
        self._fd = -1

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace")

    @property
    def shown(self) -> str:
        if self._shown is None:
            self._shown = _ESCAPES.sub("", self.raw).replace("\r\n", "\n")
        return self._shown

    @property
    def cursor_line(self) -> int:
        """The index in ``screen`` of the line with the cursor."""
        return len(self._screen.history.top) + self._screen.cursor.y

    @property
    def screen(self) -> list[str]:
        """What is there for a person: the lines that scrolled off, then those on the screen."""
        columns = range(self._screen.columns)
        scrolled = ["".join(line[column].data for column in columns) for line in self._screen.history.top]
        return [line.rstrip() for line in (*scrolled, *self._screen.display)]

    def _read(self) -> bool:
        """Take what came; false once nothing more can come."""
        if not select.select([self._fd], [], [], 0.1)[0]:
            return True
        try:
            read = os.read(self._fd, 65_536)
        except OSError:
            return False
        self._raw += read
        self._shown = None
        self._stream.feed(read)
        return bool(read)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.exit is None:
            self._process.kill()
            self._process.wait()
        if self._fd >= 0:
            os.close(self._fd)
