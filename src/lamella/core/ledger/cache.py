"""The cache model: what a provider that keeps prefixes would have served, by its documented rules."""

from dataclasses import dataclass
from datetime import datetime

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget.counting import Measure, count_tools
from lamella.core.ledger.common import Fork, common_tokens, find_fork
from lamella.core.log.call import CacheUse
from lamella.core.messages.model import Message

# A request that shares less than its whole with every later one can still be hit; past this many it is forgotten.
_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheProfile:
    """What a provider's prefix cache does. ``lifetime`` in seconds, none for no expiry."""

    name: str
    minimum: int = 0
    granularity: int = 1
    lifetime: int | None = None
    bills_writes: bool = False


GENERIC_PROFILE = CacheProfile(name="generic")


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRequest:
    """One request as a cache sees it."""

    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    total: int
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheModel:
    """The requests of one conversation that can still be hit. Answering gives a new model."""

    requests: tuple[CachedRequest, ...] = ()

    def answer(
        self, request: CachedRequest, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "CacheModel"]:
        """What the cache serves of a request, and the cache afterwards."""
        alive = [earlier for earlier in self.requests if not _expired(earlier, request, profile)]
        forks = [(_fork(earlier, request), earlier) for earlier in alive]
        _, nearest = max(forks, key=lambda pair: pair[0], default=(None, None))
        shared = shared_tokens(nearest, request, measure) if nearest else 0
        # A request that the newer one starts with can serve nothing that the newer one cannot.
        kept = [earlier for fork, earlier in forks if fork.messages < len(earlier.messages)]
        return split_use(shared, request.total, profile), CacheModel(requests=(*kept[-_REMEMBERED + 1 :], request))


def shared_tokens(before: CachedRequest, now: CachedRequest, measure: Measure) -> int:
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


def _expired(earlier: CachedRequest, now: CachedRequest, profile: CacheProfile) -> bool:
    if profile.lifetime is None or earlier.at is None or now.at is None:
        return False
    return (now.at - earlier.at).total_seconds() > profile.lifetime


def _fork(earlier: CachedRequest, now: CachedRequest) -> Fork:
    same = earlier.model == now.model and earlier.tools == now.tools
    return find_fork(earlier.messages, now.messages) if same else Fork(messages=0, pieces=0, characters=0)
