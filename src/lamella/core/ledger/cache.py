"""The cache model: what a provider that keeps prefixes would have served, by its documented rules."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget.counting import Measure, count_tools
from lamella.core.ledger.common import NO_FORK, Fork, common_tokens, find_fork
from lamella.core.log.call import CacheUse
from lamella.core.messages.model import Message

# A request that shares less than its whole with every later one can still be hit; past this many it is forgotten.
_REMEMBERED = 64


class CacheProfile(Struct, frozen=True, kw_only=True):
    """What a provider's prefix cache does. ``lifetime`` in seconds, none for no expiry."""

    name: str
    minimum: int = 0
    granularity: int = 1
    lifetime: int | None = None
    bills_writes: bool = False


GENERIC_PROFILE = CacheProfile(name="generic")


class CacheRequest(Struct, frozen=True, kw_only=True):
    """One request as a cache sees it."""

    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    total: int
    at: datetime | None


class CacheModel(Struct, frozen=True, kw_only=True):
    """The requests of one conversation that can still be hit, each with where it parts from the newest of them.

    Answering gives a new model.
    """

    requests: tuple[tuple[CacheRequest, Fork], ...] = ()

    def answer(
        self, request: CacheRequest, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "CacheModel"]:
        """What the cache serves of a request, and the cache afterwards."""
        # Compared before they are forgotten: what is kept of the others is where they part from the newest of all.
        forks = [pair for pair in _part(self.requests, request) if not _expired(pair[1], request, profile)]
        _, nearest = max(forks, key=lambda pair: pair[0], default=(NO_FORK, None))
        shared = shared_tokens(nearest, request, measure) if nearest else 0
        # A request that the newer one starts with can serve nothing that the newer one cannot.
        kept = [(one, fork) for fork, one in forks if fork[0] < len(one.messages)]
        remembered = (*kept[-_REMEMBERED + 1 :], (request, NO_FORK))
        return split_use(shared, request.total, profile), CacheModel(requests=remembered)


def _part(held: Sequence[tuple[CacheRequest, Fork]], now: CacheRequest) -> list[tuple[Fork, CacheRequest]]:
    """Where each request parts from this one, oldest first.

    Where two of three texts part earlier than the other two do, the third parts there as well. So only the newest is
    compared byte for byte; the others were compared with it before.
    """
    if not held:
        return []
    newest, _ = held[-1]
    latest = _fork(newest, now)
    forks: list[tuple[Fork, CacheRequest]] = []
    for one, fork in held[:-1]:
        forks.append((min(fork, latest) if fork != latest else _fork(one, now), one))
    return [*forks, (latest, newest)]


def shared_tokens(before: CacheRequest, now: CacheRequest, measure: Measure) -> int:
    """The common prefix of two requests; another model or other tools share nothing."""
    if before.model != now.model or before.tools != now.tools:
        return 0
    shared = common_tokens(before.messages, now.messages, measure)
    return min(shared + count_tools(now.tools, measure.count) if shared else 0, now.total)


def split_use(shared: int, total: int, profile: CacheProfile) -> CacheUse:
    """Tokens by price class, given how many of them a live entry shares."""
    read = shared - shared % profile.granularity
    if read < max(profile.minimum, 1):
        read = 0
    rest = total - read
    if profile.bills_writes and total >= profile.minimum:
        return CacheUse(read=read, write=rest, uncached=0)
    return CacheUse(read=read, write=0, uncached=rest)


def _expired(earlier: CacheRequest, now: CacheRequest, profile: CacheProfile) -> bool:
    if profile.lifetime is None or earlier.at is None or now.at is None:
        return False
    return (now.at - earlier.at).total_seconds() > profile.lifetime


def _fork(earlier: CacheRequest, now: CacheRequest) -> Fork:
    same = earlier.model == now.model and earlier.tools == now.tools
    return find_fork(earlier.messages, now.messages) if same else NO_FORK
