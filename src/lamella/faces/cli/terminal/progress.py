"""Progress: what takes longer than people expect says at a terminal what it does and how far it is."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import TypeVar

from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import can_redraw, clear_status, draw_status

_SECONDS = 1.0
_Item = TypeVar("_Item")


class ProgressLine:
    """One line on stderr that is drawn anew each second; nothing where that is no terminal."""

    def __init__(self, what: str, *, after: float) -> None:
        self._what = show_line(what)
        self._after = after
        self._counted = ""
        self._shown = False
        self._begun = monotonic()
        self._over = Event()
        self._lock = Lock()
        self._thread = Thread(target=self._run, daemon=True) if can_redraw(sys.stderr) else None

    def begin(self) -> None:
        if self._thread is not None:
            self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._clear()

    def count(self, done: int, total: int) -> None:
        """How far it is."""
        self._counted = f" {done:,} of {total:,}"

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """The line is away while something else is written."""
        with self._lock:
            self._clear()
            yield

    def _run(self) -> None:
        pause = self._after
        while not self._over.wait(pause):
            with self._lock, suppress(OSError, ValueError):
                self._draw()
            pause = _SECONDS

    def _draw(self) -> None:
        self._shown = draw_status(f"{self._what} …{self._counted} ({monotonic() - self._begun:,.0f} s)")

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            clear_status()


@contextmanager
def told_if_slow(what: str, *, after: float = _SECONDS) -> Iterator[ProgressLine]:
    """Say what is being done if it is not done soon."""
    waiting = ProgressLine(what, after=after)
    waiting.begin()
    try:
        yield waiting
    finally:
        waiting.end()


def counted(items: Iterable[_Item], what: str, *, total: int) -> Iterator[_Item]:
    """The same items; at a terminal it is told how many went by, if nothing else is written there meanwhile."""
    with told_if_slow(what) as waiting:
        for done, item in enumerate(items, start=1):
            waiting.count(done, total)
            yield item
