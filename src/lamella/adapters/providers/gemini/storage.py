"""Caches of their own: instructions, library and tools kept with the provider, paid by the hour, and surely deleted."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from msgspec import DecodeError, Struct, json

from lamella.adapters.providers.connection.failures import Target
from lamella.adapters.providers.gemini.request import build_stored
from lamella.adapters.providers.gemini.sdk import explain
from lamella.adapters.providers.registry import bare_model
from lamella.adapters.providers.row import StorageWish
from lamella.adapters.providers.wire.body import system_text
from lamella.adapters.providers.wire.fields import as_json
from lamella.core.messages.request import Request
from lamella.core.values import replace
from lamella.errors import CallError, NotAvailableError, ProviderError, ProviderRefusedError
from lamella.ports import Shelf
from lamella.profiles import ModelProfile

if TYPE_CHECKING:
    from google.genai import Client

T = TypeVar("T")
_MILLION = Decimal(1_000_000)
_HOLDER_BYTES = 8


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


class StoredCache(Struct, frozen=True, kw_only=True):
    """A cache that was made: what it holds, by hash, and when it ends by itself."""

    name: str
    instructions: str
    library: str
    ends: datetime


class ConversationCaches(Struct, frozen=True, kw_only=True):
    """The caches of a conversation: the one in use, and those that could not be deleted yet.

    ``holder`` is the process that used them last, and deletes them on closing.
    """

    holder: str
    caches: tuple[StoredCache, ...]


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
    """The caches of one provider: one per conversation, renewed while used, deleted when replaced and on closing.

    With a ``shelf`` every process of a store knows of them: what one made, another goes on with, and replaces.
    """

    def __init__(
        self,
        storing: StoragePlan,
        *,
        now: Callable[[], datetime],
        tokens: Callable[[Request], int],
        shelf: Shelf | None = None,
    ) -> None:
        self._storing = storing
        self._now = now
        self._tokens = tokens
        self._shelf = shelf
        self._holder = token_hex(_HOLDER_BYTES)
        self._used: dict[str, tuple[StoredCache, ...]] = {}
        self._making: set[asyncio.Task[str]] = set()
        self._turn = asyncio.Lock()

    async def find(self, client: "Client", request: Request, *, profile: ModelProfile, target: Target) -> str | None:
        """The name of the cache to send a request with; none where storing does not pay or the text is too short."""
        check_storable(bare_model(request.model), profile)
        key = name_stored(request)
        async with self._turn:
            known = await self._read(key.conversation)
            found = next((one for one in known if _holds(one, key) and one.ends > self._now()), None)
            if found is not None:
                return await self._renew(client, found, key=key, target=target)
            left = await self._delete(client, known, target)
            if left != known:
                await self._write(key.conversation, left)
            tokens = self._tokens(request)
            if tokens < profile.cache.minimum or not weigh_storage(tokens, profile, self._storing).pays:
                return None
            # Being cancelled here must not leave a cache whose name nobody knows.
            making = asyncio.ensure_future(self._make(client, request, left, key=key, target=target))
            self._making.add(making)
            making.add_done_callback(self._making.discard)
            return await asyncio.shield(making)

    @property
    def pending(self) -> bool:
        """Whether there are caches to delete."""
        return bool(self._used)

    async def forget(self, request: Request) -> None:
        """Drop a cache that the provider no longer has."""
        key = name_stored(request)
        async with self._turn:
            known = await self._read(key.conversation)
            await self._write(key.conversation, tuple(one for one in known if not _holds(one, key)))

    async def clear(self, client: "Client", target: Target) -> None:
        """Delete every cache that this process used last, even while being cancelled.

        What could not be deleted is named with when it ends.
        """
        await asyncio.shield(self._clear(client, target))

    async def _clear(self, client: "Client", target: Target) -> None:
        await asyncio.gather(*self._making, return_exceptions=True)
        async with self._turn:
            for conversation in list(self._used):
                known = await self._read(conversation, take=False)
                await self._write(conversation, await self._delete(client, known, target), own=bool(known))
            doomed = [one for caches in self._used.values() for one in caches]
            if doomed:
                left = ", ".join(f"{one.name} until {one.ends:%Y-%m-%d %H:%M} UTC" for one in doomed)
                raise ProviderError(
                    f"{len(doomed)} caches could not be deleted: {left}.",
                    hint="They end by themselves at that time, and are paid until then. Close again to try once more.",
                )

    async def _make(
        self, client: "Client", request: Request, left: Sequence[StoredCache], *, key: StoreKey, target: Target
    ) -> str:
        ends = self._now() + timedelta(seconds=self._storing.lifetime)
        config = {**build_stored(request), "ttl": f"{self._storing.lifetime}s", "display_name": "lamella"}
        made = await _call(client.aio.caches.create(model=bare_model(request.model), config=config), target)  # type: ignore[arg-type]
        cache = StoredCache(name=made.name or "", instructions=key.instructions, library=key.library, ends=ends)
        await self._write(key.conversation, (cache, *left))
        return cache.name

    async def _renew(self, client: "Client", found: StoredCache, *, key: StoreKey, target: Target) -> str:
        if found.ends - self._now() < timedelta(seconds=self._storing.margin):
            ends = self._now() + timedelta(seconds=self._storing.lifetime)
            config = {"ttl": f"{self._storing.lifetime}s"}
            await _call(client.aio.caches.update(name=found.name, config=config), target)  # type: ignore[arg-type]
            known = self._used[key.conversation]
            renewed = tuple(replace(one, ends=ends) if one == found else one for one in known)
            await self._write(key.conversation, renewed)
        return found.name

    async def _delete(self, client: "Client", caches: Sequence[StoredCache], target: Target) -> tuple[StoredCache, ...]:
        """What could not be deleted now: it is tried again, at the latest on closing."""
        left: list[StoredCache] = []
        for doomed in caches:
            try:
                await _call(client.aio.caches.delete(name=doomed.name), target)
            except (ProviderRefusedError, ProviderError) as error:
                if "not found" not in str(error).lower():
                    left.append(doomed)
        return tuple(left)

    async def _read(self, conversation: str, *, take: bool = True) -> tuple[StoredCache, ...]:
        """The caches of a conversation, whoever made them; they are this process's from then on.

        Unless it may ``take`` them, those of another are none.
        """
        shelf = self._shelf
        if shelf is None:
            return self._used.get(conversation, ())
        name = _name_line(conversation)
        found = await asyncio.to_thread(lambda: shelf.find(name, at=self._now()))
        kept = _read_line(found.get(name, ""))
        if kept.holder == self._holder or (take and not kept.caches):
            return kept.caches
        if not take:
            return ()
        await self._write(conversation, kept.caches)
        return kept.caches

    async def _write(self, conversation: str, caches: tuple[StoredCache, ...], *, own: bool = True) -> None:
        """Note down what a conversation has; what is another's by now is only forgotten here."""
        self._used.pop(conversation, None)
        if caches:
            self._used[conversation] = caches
        shelf, name, at = self._shelf, _name_line(conversation), self._now()
        if shelf is None or not own:
            return
        if not caches:
            await asyncio.to_thread(shelf.remove, name)
            return
        line = json.encode(ConversationCaches(holder=self._holder, caches=caches)).decode()
        ends = max(one.ends for one in caches)
        await asyncio.to_thread(lambda: shelf.put(name, line, at=at, ends=ends))


def _holds(cache: StoredCache, key: StoreKey) -> bool:
    return (cache.instructions, cache.library) == (key.instructions, key.library)


def _read_line(line: str) -> ConversationCaches:
    """What a line says; one that another version of Lamella wrote says nothing, and what it named ends by itself."""
    try:
        return json.decode(line, type=ConversationCaches)
    except DecodeError:
        return ConversationCaches(holder="", caches=())


def _name_line(conversation: str) -> str:
    return f"gemini-caches:{conversation}"


def wish_store(wish: StorageWish | None, profile: ModelProfile) -> ContentStore | None:
    """The store that somebody wishes for; none for a model that offers no caches, or of which no price is known."""
    if wish is None or not profile.cached_content or profile.storage is None or profile.read is None:
        return None

    def count(request: Request) -> int:
        tools = as_json([[tool.name, tool.description, tool.parameters] for tool in request.tools])
        return wish.count(system_text(request.messages)) + (wish.count(tools) if request.tools else 0)

    plan = StoragePlan(price=wish.price, requests=wish.requests)
    return ContentStore(plan, now=wish.clock.now, tokens=count, shelf=wish.shelf)


async def _call(sending: Awaitable[T], target: Target) -> T:
    from google.genai.errors import APIError
    from httpx2 import HTTPError

    try:
        async with asyncio.timeout(target.patience):
            return await sending
    except (APIError, HTTPError, TimeoutError, ValueError) as error:
        raise explain(error, target, begun=False) from error
