"""Engines for a server: one for whoever runs it, and one for each owner, who sees nothing of the others."""

from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lamella.adapters.providers.places import DEMO_MODEL
from lamella.adapters.stores.opening import open_store
from lamella.adapters.stores.sharing.owned import OwnedStore
from lamella.adapters.stores.sharing.reservations import OpenReservations, ServerReservations, open_reservations
from lamella.core.values import replace
from lamella.engine.engine import Engine
from lamella.engine.keeping.backend import Backend
from lamella.engine.sending.pool import GuestPool, ProviderPool
from lamella.errors import NotAvailableError
from lamella.ports import ChatProvider, Store
from lamella.runners.registry import RUNNERS
from lamella.wiring.archives import open_archive
from lamella.wiring.providers import begin_settings, open_pool
from lamella.wiring.running.memory import find_book, find_part, open_memory
from lamella.wiring.running.workplaces import open_workplace
from lamella.wiring.services import Services, read_services
from lamella.wiring.stores import open_backend
from lamella.wiring.summaries import make_fetchers
from lamella.wiring.trust import find_store

if TYPE_CHECKING:
    from lamella.adapters.sources.naming import NamedFiles

_MEMORY = "~/.lamella/memory"
# Below the folder of a memory, those of owners.
_OWNERS = "owners"
_NOWHERE = "memory:"


class EngineSuite:
    """Engines over one store and one vault. The operator, who has no name, sees everything and may name models.

    Whoever is not trusted names models as somebody else would: only those are asked that the operator named.
    """

    def __init__(
        self,
        services: Services,
        backend: Backend,
        pools: tuple[ProviderPool, GuestPool],
        *,
        vault: Path | None,
        model: str,
        reservations: OpenReservations | ServerReservations,
    ) -> None:
        self.services = services
        self.model = model
        self.vault = vault
        self.reservations = reservations
        self.backend = backend
        self._pool, self._guests = pools
        self._known: dict[tuple[str, bool], Engine] = {}
        self._lock = Lock()

    @property
    def pool(self) -> ProviderPool:
        """What the operator's turns are sent from; its threads do the work of all."""
        return self._pool

    def find(self, owner: str = "", *, trusted: bool = True) -> Engine:
        """The engine of an owner; it is made once and closed with all of them."""
        with self._lock:
            engine = self._known.get((owner, trusted))
            if engine is None:
                engine = self._known[owner, trusted] = self._make(owner, trusted=trusted)
            return engine

    def open_files(self) -> "NamedFiles | None":
        """Notes as people name them; none without a vault, where a name might lead anywhere on the disk."""
        if self.vault is None:
            return None
        from lamella.wiring.reading import open_files

        return open_files(self.vault, self.services)

    def fit(self, model: str) -> dict[str, object]:
        """What suits a conversation that begins with a model, where nobody set it."""
        return begin_settings(model, services=self.services)

    def list_named(self) -> list[str]:
        """The models that whoever runs this named, and so anybody who is let in may ask: the usual one first."""
        settings = self.services.settings
        others = (settings.model, None if settings.summarizer in ("same", "off") else settings.summarizer)
        return list(dict.fromkeys((self.model, *(name for name in others if name))))

    async def close(self) -> None:
        """Close what was opened for all of them."""
        await self._guests.close()
        async with self.find():
            pass
        self.reservations.close()

    def _make(self, owner: str, *, trusted: bool) -> Engine:
        services = self._settle(owner)
        pool = self._pool if trusted else self._guests
        part = find_part(services)
        fetchers = make_fetchers(services, pool, shelf=self.backend.store.shelf)
        backend = replace(self.backend, memory=part, find_fetcher=fetchers, reopens=True)
        if owner:
            backend = replace(backend, store=OwnedStore(self.backend.store, owner))
        return Engine(
            backend,
            pool,
            runners=RUNNERS,
            archive=open_archive(),
            open_store=open_store if trusted and not owner else _open_passing,
            fit=partial(begin_settings, services=services),
            place=open_workplace(services, vault=self.vault, book=find_book(services, part)),
            memory=partial(open_memory, services=services),
        )

    def _settle(self, owner: str) -> Services:
        """The settings under which an owner's conversations are: a memory of their own, and no notes are written."""
        if not owner:
            return self.services
        folder = Path(self.services.settings.memory_folder or _MEMORY).expanduser() / _OWNERS / owner
        return self.services.under({**self.services.given, "memory_folder": str(folder), "note_writes": "off"})


def _open_passing(url: str) -> Store:
    """A store that keeps nothing, which is all that guests may have opened: any other is a place of the operator's."""
    if url != _NOWHERE:
        raise NotAvailableError("Other stores are not opened from here.", hint="Whoever runs the server opens them.")
    return open_store(url)


def open_engines(
    url: str | None,
    *,
    vault: Path | None = None,
    model: str | None = None,
    provider: ChatProvider | None = None,
    services: Services | None = None,
) -> EngineSuite:
    """Everything a server works with, over the store at a URL or the configured one.

    ``model`` is what conversations begin with that name none; ``provider`` sends in place of those that models name.
    """
    services = services or read_services()
    place = find_store(url or None, services)
    # What is known of a process alone nobody could go on with if it ended.
    pool, guests = (
        open_pool(provider, services=services, pool=kind, shelf=lambda: backend.store.shelf)
        for kind in (ProviderPool, GuestPool)
    )
    assert isinstance(guests, GuestPool)
    guests.workers = pool.workers
    usual = model or services.settings.model or DEMO_MODEL
    pool.name(usual)
    guests.admit(usual)
    backend = open_backend(place, services=services, vault=vault, pool=pool)
    return EngineSuite(
        services, backend, (pool, guests), vault=vault, model=usual, reservations=open_reservations(place)
    )
