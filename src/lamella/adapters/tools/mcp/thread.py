"""A thread with an event loop of its own: servers live in it, whichever loops come and go in the program."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_ENDS_WITHIN = 15.0


class LoopThread:
    """Runs what it is given in its own loop. It is started by the first work, and holds up no end of a program."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def start(self, work: Coroutine[Any, Any, _Result]) -> "Future[_Result]":
        """Begin some work, and give what it will come to."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def runs(self) -> bool:
        """Whether anything was begun."""
        return self._loop is not None

    def close(self) -> None:
        """End the loop and the thread, once what runs there is over; what never is, is left."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ENDS_WITHIN)
        if not thread.is_alive():
            loop.close()
