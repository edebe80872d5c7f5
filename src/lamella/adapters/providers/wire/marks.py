"""Breakpoints: after which blocks of a request a cache should keep an entry."""

from collections.abc import Sequence
from dataclasses import dataclass

from lamella.errors import CallError


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a request, in the order caches read them. ``weight`` is its size in bytes of UTF-8."""

    weight: int
    markable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The last block of each stable stretch, by position; none where there is no such stretch.

    ``tail`` is the last block the next request will begin with, ``previous`` the tail of the request before.
    """

    tools: int | None = None
    fixed: int | None = None
    library: int | None = None
    tail: int | None = None
    previous: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRules:
    """What a provider allows: marks in a request, blocks it looks back from a mark, tokens below which none count."""

    limit: int
    lookback: int | None
    minimum: int


def plan_marks(blocks: Sequence[Block], ends: Ends, *, rules: MarkRules, chosen: Sequence[int] = ()) -> tuple[int, ...]:
    """The positions to mark, in order. Those the caller chose come first; the rest by what losing them would cost."""
    if len(set(chosen)) > rules.limit:
        raise CallError(
            f"{len(set(chosen))} breakpoints were asked for; a request may carry {rules.limit}.",
            hint="Leave some out: Lamella places its own where prefixes end.",
        )
    wanted = [*chosen, *_by_worth(ends, rules.lookback)]
    markable = (_markable(blocks, position) for position in wanted)
    worthwhile = (position for position in markable if position is not None and _reaches(blocks, position, rules))
    return tuple(sorted(list(dict.fromkeys(worthwhile))[: rules.limit]))


def _by_worth(ends: Ends, lookback: int | None) -> list[int]:
    # The tail carries the most tokens. The previous tail needs a mark of its own only where looking back from the new
    # one would not reach it: the mark itself is the first of the positions looked at.
    previous = ends.previous
    if lookback is None or ends.tail is None or previous is None or ends.tail - previous < lookback:
        previous = None
    order = (ends.tail, previous, ends.library, ends.fixed, ends.tools)
    return [position for position in order if position is not None]


def _markable(blocks: Sequence[Block], position: int) -> int | None:
    return next((at for at in range(position, -1, -1) if blocks[at].markable), None)


def _reaches(blocks: Sequence[Block], position: int, rules: MarkRules) -> bool:
    # A token has at least one byte, so a prefix of fewer bytes than the minimum surely is too short to be kept.
    return sum(block.weight for block in blocks[: position + 1]) >= rules.minimum
