"""A memory with an end: what was asked for last stays, and what nobody asked for any more goes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Kept = TypeVar("_Kept")


class BoundedMemory(Generic[_Key, _Kept]):
    """Values by key, at most so many. Threads may share it: what two make at once is made twice and kept once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[_Key, _Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key, make: Callable[[], _Kept], *, keeps: bool = True) -> _Kept:
        """The value of a key, made if it is not there; unless ``keeps`` it is not looked for and not kept."""
        if not keeps:
            return make()
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made
