"""Caches as their providers document them, over the real bytes of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Tokens of a request by what became of them."""

    plain: int
    read: int = 0
    short: int = 0
    long: int = 0

    @property
    def total(self) -> int:
        return self.plain + self.read + self.short + self.long


def count_block_tokens(block: bytes) -> int:
    """A simple tokenizer: every four bytes are a token."""
    return max(len(block) // 4, 1)


def _prefixes(model: str, blocks: Sequence[bytes]) -> list[str]:
    running = sha256(model.encode())
    found = []
    for block in blocks:
        running.update(len(block).to_bytes(8, "big") + block)
        found.append(running.hexdigest())
    return found


def _sums(blocks: Sequence[bytes]) -> list[int]:
    total = 0
    return [total := total + count_block_tokens(block) for block in blocks]


@dataclass(slots=True, kw_only=True)
class MarkedCache:
    """Entries only at marks; a read looks back a number of blocks from each mark. Hits refresh an entry.

    ``lookback`` none looks at every block before a mark. Time is set by the test.
    """

    minimum: int
    lookback: int | None = 20
    now: float = 0.0
    entries: dict[str, tuple[float, float]] = field(default_factory=dict)

    def serve(
        self,
        model: str,
        blocks: Sequence[bytes],
        marks: Mapping[int, float],
        *,
        also: Sequence[int] = (),
        long: float = 3_600,
    ) -> Served:
        """What is read and written of a request; ``marks`` gives each marked block's lifetime in seconds.

        ``also`` are blocks at which an entry is looked for without a mark.
        """
        prefixes, sums = _prefixes(model, blocks), _sums(blocks)
        hit = max((at for mark in (*marks, *also) for at in self._found(prefixes, mark)), default=-1)
        if hit >= 0:
            lifetime = self.entries[prefixes[hit]][1]
            self.entries[prefixes[hit]] = (self.now + lifetime, lifetime)
        counted = {mark: life for mark, life in marks.items() if sums[mark] >= self.minimum}
        for mark, life in counted.items():
            self.entries[prefixes[mark]] = (self.now + life, life)
        read = sums[hit] if hit >= 0 else 0
        last_long = max((sums[mark] for mark, life in counted.items() if life >= long), default=0)
        last = max((sums[mark] for mark in counted), default=0)
        written_long = max(last_long - read, 0)
        written_short = max(last - max(read, last_long), 0)
        total = sums[-1] if sums else 0
        return Served(
            plain=total - read - written_long - written_short, read=read, short=written_short, long=written_long
        )

    def _found(self, prefixes: Sequence[str], mark: int) -> list[int]:
        reach = mark + 1 if self.lookback is None else min(self.lookback, mark + 1)
        alive = [
            at for at in range(mark, mark - reach, -1) if self.entries.get(prefixes[at], (-1.0, 0.0))[0] > self.now
        ]
        return alive[:1]


@dataclass(slots=True, kw_only=True)
class ImplicitCache:
    """Any earlier request's beginning, in steps; nothing is billed for writing."""

    minimum: int
    step: int = 1
    lifetime: float | None = None
    now: float = 0.0
    seen: list[tuple[float, bytes]] = field(default_factory=list)

    def serve(self, model: str, blocks: Sequence[bytes]) -> Served:
        whole = model.encode() + b"\0" + b"".join(blocks)
        alive = [text for at, text in self.seen if self.lifetime is None or self.now - at < self.lifetime]
        shared = max((_common(whole, text) for text in alive), default=0) - len(model) - 1
        total = max(sum(map(len, blocks)) // 4, 1)
        read = min(max(shared, 0) // 4, total)
        read = read - read % self.step if read >= self.minimum else 0
        self.seen.append((self.now, whole))
        return Served(plain=total - read, read=read)


def _common(one: bytes, other: bytes) -> int:
    shortest = min(len(one), len(other))
    if one[:shortest] == other[:shortest]:
        return shortest
    return next(at for at in range(shortest) if one[at] != other[at])
