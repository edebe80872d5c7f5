"""Provider caches simulated from what providers document, on the bodies of requests; no code of the ledger is used.

A cache with breakpoints keeps a prefix of blocks where a request has a breakpoint. A later request finds it if one of
its own breakpoints is at that block or fewer than ``lookback`` blocks after it. A cache without breakpoints keeps every
prefix of a request, in whole steps of tokens. In both an entry lives for some seconds after it was last used.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Count = Callable[[str], int]


@dataclass(frozen=True, kw_only=True)
class ProviderRules:
    """What a provider documents: prices are factors of plain input; without ``lookback`` there are no breakpoints."""

    read: float
    write: float
    lifetime: float
    minimum: int
    step: int = 1
    lookback: int | None = None


@dataclass(frozen=True)
class Block:
    """A block of a request in the order in which caches read them."""

    text: str
    has_breakpoint: bool


@dataclass
class SimulatedProvider:
    """Serves requests one after the other and adds up what they cost, in tokens of plain input."""

    rules: ProviderRules
    count: Count
    cost: float = 0.0
    read: int = 0
    _entries: dict[tuple[str, ...], float] = field(default_factory=dict)
    _sent: list[tuple[str, float]] = field(default_factory=list)

    def send(self, body: Mapping[str, Any], at: float) -> None:
        """Serve the request with this body at this second."""
        blocks = list_blocks(body)
        total = sum(self.count(block.text) for block in blocks)
        read, written = (self._find_entry if self.rules.lookback else self._find_prefix)(blocks, total, at)
        self.read += read
        self.cost += read * self.rules.read + written * self.rules.write + (total - read - written)

    def _find_entry(self, blocks: Sequence[Block], total: int, at: float) -> tuple[int, int]:
        ends = {
            end
            for end, block in enumerate(blocks, start=1)
            if block.has_breakpoint and self._tokens(blocks[:end]) >= self.rules.minimum
        }
        reachable = {found for end in ends for found in range(end, max(0, end - (self.rules.lookback or 0)), -1)}
        texts = tuple(block.text for block in blocks)
        found = max((end for end in reachable if self._entries.get(texts[:end], -1.0) >= at), default=0)
        for end in {*ends, *({found} if found else ())}:
            self._entries[texts[:end]] = at + self.rules.lifetime
        read = self._tokens(blocks[:found])
        return read, max(0, self._tokens(blocks[: max(ends, default=0)]) - read)

    def _find_prefix(self, blocks: Sequence[Block], total: int, at: float) -> tuple[int, int]:
        text = "\0".join(block.text for block in blocks)
        alive = [before for before, until in self._sent if until >= at]
        length = max((_common_length(text, before) for before in alive), default=0)
        shared = self.count(text[:length].replace("\0", "\n"))
        self._sent.append((text, at + self.rules.lifetime))
        read = min(shared, total) // self.rules.step * self.rules.step
        read = read if read >= self.rules.minimum else 0
        return read, total - read if total >= self.rules.minimum else 0

    def _tokens(self, blocks: Sequence[Block]) -> int:
        return sum(self.count(block.text) for block in blocks)


def _common_length(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def list_blocks(body: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a request in Anthropic's format: tools, system, messages."""
    found = [*body.get("tools", ()), *body.get("system", ())]
    found += [block for message in body["messages"] for block in message["content"]]
    return [Block(_text_of(block), "cache_control" in block) for block in found]


def _text_of(block: Mapping[str, Any]) -> str:
    return str(block["text"]) if block.get("type") == "text" else str(sorted(block.items()))
