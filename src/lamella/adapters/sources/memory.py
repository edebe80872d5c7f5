"""Memory of files: what was made of one is kept while the file is as it was. Its state is asked, its bytes are not."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from threading import Lock
from time import time_ns
from typing import Generic, TypeVar

Value = TypeVar("Value")

# Some file systems write times in steps of two seconds: a file that was touched just now may change again within one.
_UNSETTLED_NS = 2_000_000_000
_State = tuple[int, int, int, int, int]


class FileMemory(Generic[Value]):
    """What was made of files. Of two states that look alike one is trusted only when the file was left alone for long.

    ``weigh`` says how much of the ``limit`` a value takes; what was not asked for longest is forgotten first.
    """

    def __init__(
        self, *, limit: int, weigh: Callable[[Value], int] = lambda _value: 1, now_ns: Callable[[], int] = time_ns
    ) -> None:
        self._limit, self._weigh, self._now_ns = limit, weigh, now_ns
        self._kept: OrderedDict[Hashable, tuple[_State, Value]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(
        self, key: Hashable, file: Path, make: Callable[[], Value], *, keeps: Callable[[Value], bool] | None = None
    ) -> Value:
        """What was made of a file under a key, or is made now; ``keeps`` says of something new whether it is kept."""
        # Before it is made: whatever changes meanwhile has another state the next time.
        state = _read_state(file)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0] == state:
                self._kept.move_to_end(key)
                return kept[1]
        value = make()
        if state is not None and self._is_settled(state) and (keeps is None or keeps(value)):
            self._keep(key, state, value)
        return value

    def _is_settled(self, state: _State) -> bool:
        return max(state[1], state[2]) < self._now_ns() - _UNSETTLED_NS

    def _keep(self, key: Hashable, state: _State, value: Value) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._weight += self._weigh(value) - (0 if before is None else self._weigh(before[1]))
            self._kept[key] = (state, value)
            while self._weight > self._limit:
                _, (_, forgotten) = self._kept.popitem(last=False)
                self._weight -= self._weigh(forgotten)


def _read_state(file: Path) -> _State | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev
