"""Caches of their own: instructions, library and tools kept with the provider, paid by the hour, and surely deleted."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from lamella.adapters.providers.connection.failures import Target
from lamella.adapters.providers.gemini.request import build_stored
from lamella.adapters.providers.gemini.sdk import explain
from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.row import StorageWish
from lamella.adapters.providers.wire.body import system_text
from lamella.adapters.providers.wire.fields import as_json
from lamella.core.messages.request import Request
from lamella.errors import CallError, NotAvailableError, ProviderError, ProviderRefusedError
from lamella.profiles import ModelProfile

if TYPE_CHECKING:
    from google.genai import Client

T = TypeVar("T")
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlan:
    """When a cache of its own is made: ``requests`` are expected in a lifetime, ``price`` plain input per million.

    ``lifetime`` in seconds; a cache that has less than ``margin`` of it left is renewed when it is used.
    """

    price: Decimal
    requests: int
    lifetime: int = 3_600
    margin: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageCosts:
    """Whether storing pays: what the expected requests cost with a cache of its own and without, in dollars."""

    stored: Decimal
    plain: Decimal

    @property
    def pays(self) -> bool:
        return self.stored < self.plain


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKey:
    """What a cache holds: a conversation's instructions and tools, and its library, each by hash."""

    conversation: str
    instructions: str
    library: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCache:
    """A cache that was made, and when it ends by itself."""

    name: str
    ends: datetime


def weigh_storage(tokens: int, profile: ModelProfile, storing: StoragePlan) -> StorageCosts:
    """What storing would cost: its making as plain input, each read, and the hours. Refused without the figures."""
    if profile.storage is None or profile.read is None:
        raise NotAvailableError(
            "No price is known for storing with this model.", hint="Give `storage` and `read` in a profile of your own."
        )
    size = tokens / _MILLION
    hours = Decimal(storing.lifetime) / 3_600
    reads = storing.requests * profile.read * storing.price
    return StorageCosts(
        stored=size * (storing.price + reads + profile.storage * hours), plain=size * storing.price * storing.requests
    )


def check_storable(model: str, profile: ModelProfile) -> None:
    """Refuses a model that offers no caches of their own."""
    if not profile.cached_content:
        raise NotAvailableError(
            f"{model} offers no caches of their own.",
            hint="Leave storing off: this model keeps prefixes by itself, for nothing.",
        )


def name_stored(request: Request) -> StoreKey:
    """The key of a request's cache."""
    if not request.conversation:
        raise CallError("A cache belongs to a conversation, and the request names none.", hint="Give it a name.")
    text = system_text(request.messages)
    fixed = request.settled.fixed or len(text)
    tools = as_json([[tool.name, tool.description, tool.parameters] for tool in request.tools])
    return StoreKey(
        conversation=request.conversation,
        instructions=_hash(bare_model(request.model), tools, text[:fixed]),
        library=_hash(text[fixed:]),
    )


def _hash(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()


class ContentStore:
    """The caches of one provider: one per conversation, renewed while used, deleted when replaced and on closing."""

    def __init__(self, storing: StoragePlan, *, now: Callable[[], datetime], tokens: Callable[[Request], int]) -> None:
        self._storing = storing
        self._now = now
        self._tokens = tokens
        self._kept: dict[StoreKey, StoredCache] = {}
        self._doomed: list[StoredCache] = []
        self._making: set[asyncio.Task[str]] = set()
        self._turn = asyncio.Lock()

    async def find(self, client: "Client", request: Request, *, profile: ModelProfile, target: Target) -> str | None:
        """The name of the cache to send a request with; none where storing does not pay or the text is too short."""
        check_storable(bare_model(request.model), profile)
        key = name_stored(request)
        async with self._turn:
            found = self._kept.get(key)
            if found is not None and found.ends > self._now():
                return await self._renew(client, key, target=target)
            await self._drop_others(client, key, target=target)
            tokens = self._tokens(request)
            if tokens < profile.cache.minimum or not weigh_storage(tokens, profile, self._storing).pays:
                return None
            # Being cancelled here must not leave a cache whose name nobody knows.
            making = asyncio.ensure_future(self._make(client, request, key=key, target=target))
            self._making.add(making)
            making.add_done_callback(self._making.discard)
            return await asyncio.shield(making)

    @property
    def pending(self) -> bool:
        """Whether there are caches to delete."""
        return bool(self._kept or self._doomed)

    def forget(self, request: Request) -> None:
        """Drop a cache that the provider no longer has."""
        self._kept.pop(name_stored(request), None)

    async def clear(self, client: "Client", target: Target) -> None:
        """Delete every cache, even while being cancelled; what could not be deleted is named with when it ends."""
        await asyncio.shield(self._clear(client, target))

    async def _clear(self, client: "Client", target: Target) -> None:
        await asyncio.gather(*self._making, return_exceptions=True)
        async with self._turn:
            self._doomed += self._kept.values()
            self._kept.clear()
            await self._delete_doomed(client, target)
            if self._doomed:
                left = ", ".join(f"{one.name} until {one.ends:%Y-%m-%d %H:%M} UTC" for one in self._doomed)
                raise ProviderError(
                    f"{len(self._doomed)} caches could not be deleted: {left}.",
                    hint="They end by themselves at that time, and are paid until then. Close again to try once more.",
                )

    async def _make(self, client: "Client", request: Request, *, key: StoreKey, target: Target) -> str:
        ends = self._now() + timedelta(seconds=self._storing.lifetime)
        config = {**build_stored(request), "ttl": f"{self._storing.lifetime}s", "display_name": "lamella"}
        made = await _call(client.aio.caches.create(model=bare_model(request.model), config=config), target)  # type: ignore[arg-type]
        self._kept[key] = StoredCache(name=made.name or "", ends=ends)
        return self._kept[key].name

    async def _renew(self, client: "Client", key: StoreKey, *, target: Target) -> str:
        found = self._kept[key]
        if found.ends - self._now() < timedelta(seconds=self._storing.margin):
            ends = self._now() + timedelta(seconds=self._storing.lifetime)
            config = {"ttl": f"{self._storing.lifetime}s"}
            await _call(client.aio.caches.update(name=found.name, config=config), target)  # type: ignore[arg-type]
            self._kept[key] = StoredCache(name=found.name, ends=ends)
        return found.name

    async def _drop_others(self, client: "Client", key: StoreKey, *, target: Target) -> None:
        for other in [other for other in self._kept if other.conversation == key.conversation]:
            self._doomed.append(self._kept.pop(other))
        await self._delete_doomed(client, target)

    async def _delete_doomed(self, client: "Client", target: Target) -> None:
        # What cannot be deleted now stays on the list and is tried again, at the latest on closing.
        for doomed in list(self._doomed):
            try:
                await _call(client.aio.caches.delete(name=doomed.name), target)
            except (ProviderRefusedError, ProviderError) as error:
                if "not found" not in str(error).lower():
                    continue
            self._doomed.remove(doomed)


def wish_store(wish: StorageWish | None, profile: ModelProfile) -> ContentStore | None:
    """The store that somebody wishes for; none for a model that offers no caches, or of which no price is known."""
    if wish is None or not profile.cached_content or profile.storage is None or profile.read is None:
        return None

    def count(request: Request) -> int:
        tools = as_json([[tool.name, tool.description, tool.parameters] for tool in request.tools])
        return wish.count(system_text(request.messages)) + (wish.count(tools) if request.tools else 0)

    return ContentStore(StoragePlan(price=wish.price, requests=wish.requests), now=wish.clock.now, tokens=count)


async def _call(sending: Awaitable[T], target: Target) -> T:
    from google.genai.errors import APIError
    from httpx2 import HTTPError

    try:
        async with asyncio.timeout(target.patience):
            return await sending
    except (APIError, HTTPError, TimeoutError, ValueError) as error:
        raise explain(error, target, begun=False) from error
