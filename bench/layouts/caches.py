"""Provider caches, simulated on the blocks of requests: with marks and a lookback, or in steps of tokens."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from lamella.tokenizers.counter import OfflineTokenCounter

_HOUR = 3_600.0


class Block(NamedTuple):
    """One block of a request in the order caches read them; its ``mark`` is the lifetime that is asked for there."""

    text: str
    mark: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a provider does and asks, as factors of plain input. Without a lookback it has steps and no marks."""

    name: str
    read: float
    write: float
    lifetime: float
    minimum: int = 1_024
    step: int = 1
    lookback: int | None = None
    write_long: float = 2.0


MARKS = Rates(name="A, marks", read=0.1, write=1.25, lifetime=300, lookback=20)
STEPS = Rates(name="A, steps", read=0.1, write=1.25, lifetime=300, step=128)
DEAR = Rates(name="O, steps", read=0.5, write=1.0, lifetime=600, step=128)


@lru_cache(maxsize=1)
def _counter() -> Callable[[str], int]:
    return OfflineTokenCounter().get_tokenizer(None).count


def count(text: str) -> int:
    """The tokens of a text."""
    return _counter()(text)


@dataclass(slots=True)
class Bill:
    """What requests came to: tokens by class, and the cost in tokens of plain input."""

    read: int = 0
    write: int = 0
    plain: int = 0
    cost: float = 0.0
    largest: int = 0

    def add(self, rates: Rates, *, read: int, long: int, write: int, plain: int) -> None:
        self.read, self.write, self.plain = self.read + read, self.write + write + long, self.plain + plain
        self.cost += read * rates.read + write * rates.write + long * rates.write_long + plain
        self.largest = max(self.largest, read + long + write + plain)


@dataclass(slots=True)
class MarkedCache:
    """Entries stand where a request had a mark, and are found at marks or some blocks before them."""

    rates: Rates
    bill: Bill = field(default_factory=Bill)
    _entries: dict[int, tuple[float, float]] = field(default_factory=dict)

    def take(self, blocks: Sequence[Block], at: float) -> None:
        """Serve a request that is sent at this second."""
        rates, sizes = self.rates, list(accumulate(count(block.text) for block in blocks))
        chain = _chain(blocks)
        marks = [i for i, block in enumerate(blocks) if block.mark is not None and sizes[i] >= rates.minimum]
        alive = {key for key, (until, _) in self._entries.items() if at <= until}
        found = max((i for mark in marks for i in _back(mark, rates) if chain[i] in alive), default=None)
        read = 0 if found is None else sizes[found]
        lasting = [mark for mark in marks if blocks[mark].mark == "1h"]
        until_long = max(read, sizes[lasting[-1]]) if lasting else read
        until_short = max(until_long, sizes[marks[-1]]) if marks else until_long
        self.bill.add(
            rates, read=read, long=until_long - read, write=until_short - until_long, plain=sizes[-1] - until_short
        )
        for i in [*marks, *([] if found is None else [found])]:
            lasts = _HOUR if i in lasting else rates.lifetime
            # What was written for longer stays so, however it is asked for later.
            lasts = max(lasts, self._entries[chain[i]][1]) if chain[i] in alive else lasts
            self._entries[chain[i]] = (at + lasts, lasts)


def _back(mark: int, rates: Rates) -> range:
    return range(mark, max(-1, mark - (rates.lookback or 1)), -1)


@dataclass(slots=True)
class SteppedCache:
    """Every prefix of a request is kept, in whole steps of tokens."""

    rates: Rates
    bill: Bill = field(default_factory=Bill)
    _sent: list[tuple[float, list[int], list[str]]] = field(default_factory=list)

    def take(self, blocks: Sequence[Block], at: float) -> None:
        """Serve a request that is sent at this second."""
        rates, chain, texts = self.rates, _chain(blocks), [block.text for block in blocks]
        sizes = [0, *accumulate(map(count, texts))]
        self._sent = [one for one in self._sent if at <= one[0]]
        shared = 0
        for _, other, said in self._sent:
            same = bisect_left(range(min(len(chain), len(other))), 1, key=lambda i: int(chain[i] != other[i]))
            within = _common(said[same], texts[same]) if same < min(len(chain), len(other)) else 0
            shared = max(shared, sizes[same] + (count(texts[same][:within]) if within > 20 else 0))
        read = shared - shared % rates.step
        read = read if read >= rates.minimum else 0
        self.bill.add(rates, read=read, long=0, write=sizes[-1] - read, plain=0)
        # A request that this one begins with serves nothing that this one does not.
        self._sent = [one for one in self._sent if len(one[1]) > len(chain) or chain[len(one[1]) - 1] != one[1][-1]]
        self._sent.append((at + rates.lifetime, chain, texts))


def _chain(blocks: Sequence[Block]) -> list[int]:
    """A number for each prefix."""
    return list(accumulate((hash(block.text) for block in blocks), lambda one, other: hash((one, other))))


def _common(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


Cache = MarkedCache | SteppedCache


def open_cache(rates: Rates) -> Cache:
    """The cache of a provider, empty."""
    return SteppedCache(rates) if rates.lookback is None else MarkedCache(rates)
