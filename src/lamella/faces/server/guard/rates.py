"""Rates: how many requests somebody may send, in this process."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

from lamella.refusals import TooManyRequestsError

_MINUTE = 60.0
# More callers than this are not told apart: the one who was quiet longest begins anew.
_CALLERS = 10_000


class RateLimits:
    """So many per minute for each caller: a bucket that fills again at that rate."""

    def __init__(self, most: int, *, now: Callable[[], float] = monotonic) -> None:
        self._most = float(most)
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """One more request of a caller; refused once there were too many."""
        left = self._look(caller)
        if left < 1:
            raise self._refuse(left)
        self._put(caller, left - 1)

    def _look(self, caller: str) -> float:
        left, at = self._left.get(caller, (self._most, self._now()))
        return min(self._most, left + (self._now() - at) * self._most / _MINUTE)

    def _put(self, caller: str, left: float) -> None:
        self._left[caller] = (left, self._now())
        self._left.move_to_end(caller)
        while len(self._left) > _CALLERS:
            self._left.popitem(last=False)

    def _refuse(self, left: float) -> TooManyRequestsError:
        wait = (1 - left) * _MINUTE / self._most
        return TooManyRequestsError(
            f"More than {self._most:,.0f} requests came within a minute.",
            hint=f"Wait {max(1, round(wait))} s.",
            wait=wait,
        )
