"""Parts of a server: engines per owner, server settings and access tokens.

``open_engine_pool`` opens an ``EnginePool``: one engine for the operator, and one for each owner, who sees no
conversation of the others. ``server_settings`` returns the settings of the HTTP server, and ``needs_token`` whether
every request needs a token.
"""

from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from lamella.conversation.backend import Backend
from lamella.conversation.engine import Engine
from lamella.conversation.provider_pool import ProviderPool, RestrictedProviderPool
from lamella.core.values import replace
from lamella.errors import NotAvailableError, SettingError
from lamella.ports import AllowWrite, ConversationListItem, ModelProvider, Store
from lamella.providers.open_provider import DEMO_MODEL
from lamella.runners.registry import RUNNERS
from lamella.settings.loading import get_user_folder_path
from lamella.settings.model import HttpServerSettings
from lamella.settings.tokens import TOKENS_FILE_NAME, AccessTokenFile
from lamella.stores.open_store import open_store
from lamella.stores.sharing import NoReservations, OwnedStore, PostgresReservations, open_conversation_locks
from lamella.wiring.archives import open_archive
from lamella.wiring.memory import choose_memory_renderer, make_memory_opener, open_memory
from lamella.wiring.providers import default_settings_for, make_summary_fetcher_factory, open_pool
from lamella.wiring.runner_context import open_runner_context
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.stores import open_backend
from lamella.wiring.trust import resolve_store_url

if TYPE_CHECKING:
    from lamella.sources.mentions import AttachmentResolver

_DEFAULT_MEMORY_FOLDER = "~/.lamella/memory"
# The folder inside the memory folder that contains those of the owners.
_OWNERS_FOLDER = "owners"
_IN_MEMORY_URL = "memory:"


class EnginePool:
    """Engines over one store and one vault.

    The operator has the empty owner name, sees everything and may name any model. Callers that are not trusted can use
    only the models that the operator named.
    """

    def __init__(
        self,
        services: ServiceContainer,
        backend: Backend,
        pools: tuple[ProviderPool, RestrictedProviderPool],
        *,
        vault: Path | None,
        model: str,
        reservations: NoReservations | PostgresReservations,
    ) -> None:
        self.services = services
        self.model = model
        self.vault = vault
        self.reservations = reservations
        self.backend = backend
        self._pool, self._restricted_pool = pools
        # Returns the function that asks the user of a conversation before a note is written. Set once runs exist.
        self.find_permission_function: Callable[[str], AllowWrite | None] = lambda _conversation_key: None
        # Called with files done and files in total while notes are indexed, in a worker thread.
        self.on_index_progress: Callable[[int, int], None] = lambda _done, _total: None
        self._engines: dict[tuple[str, bool], Engine] = {}
        self._lock = Lock()

    @property
    def pool(self) -> ProviderPool:
        """Return the provider pool of the operator; its threads do the work of all engines."""
        return self._pool

    def get_engine(self, owner: str = "", *, trusted: bool = True) -> Engine:
        """Return the engine of an owner, which is created once.

        ``trusted`` callers may name any model.
        """
        # Requests come from several threads, and two engines of one owner must not exist.
        with self._lock:
            engine = self._engines.get((owner, trusted))
            if engine is None:
                engine = self._engines[owner, trusted] = self._make_engine(owner, trusted=trusted)
            return engine

    def get_or_open_provider(self, model: str, *, trusted: bool) -> ModelProvider:
        """Return the provider of a model, which is opened once; callers that are not trusted need an allowed model."""
        pool = self._pool if trusted else self._restricted_pool
        return pool.send_context_for(model, max_answer_tokens=1).provider

    def to_owner_view(self, owner: str, listed: ConversationListItem) -> ConversationListItem | None:
        """Return a conversation as its owner sees it, or None if it is not theirs; the operator sees every one."""
        return OwnedStore(self.backend.store, owner).to_owner_view(listed) if owner else listed

    def open_attachment_resolver(self) -> "AttachmentResolver | None":
        """Return the resolver for notes as users name them, or None without a vault.

        Without a vault a name could lead to any file on the disk.
        """
        if self.vault is None:
            return None
        from lamella.wiring.sources import open_attachment_resolver

        return open_attachment_resolver(self.vault, self.services)

    def default_settings_for(self, model: str) -> dict[str, object]:
        """Return default settings for a new conversation with a model."""
        return default_settings_for(model, services=self.services)

    def list_allowed_models(self) -> list[str]:
        """Return the models that the operator named, which every caller may use; the default model comes first."""
        settings = self.services.settings
        others = (settings.model, None if settings.summarizer in ("same", "off") else settings.summarizer)
        return list(dict.fromkeys((self.model, *(name for name in others if name))))

    async def close(self) -> None:
        """Close the provider pools, the shared store, the operator's engine and the reservations."""
        await self._restricted_pool.close()
        # Leaving the operator's engine closes its pool and the store, which all engines share.
        async with self.get_engine():
            pass
        self.reservations.close()

    def _make_engine(self, owner: str, *, trusted: bool) -> Engine:
        services = self._owner_services(owner)
        pool = self._pool if trusted else self._restricted_pool
        part = choose_memory_renderer(services)
        fetchers = make_summary_fetcher_factory(services, pool, shared_table=self.backend.store.shared_table)
        backend = replace(self.backend, render_memory=part, make_summary_fetcher=fetchers, opens_per_question=True)
        if owner:
            backend = replace(backend, store=OwnedStore(self.backend.store, owner))
        return Engine(
            backend,
            pool,
            runners=RUNNERS,
            archive=open_archive(),
            open_store=open_store if trusted and not owner else _open_in_memory_store,
            default_settings=partial(default_settings_for, services=services),
            runner_context=open_runner_context(
                services,
                vault=self.vault,
                find_allow=lambda chat: self.find_permission_function(chat.id),
                open_memory=make_memory_opener(services, part),
                on_index_progress=lambda done, total: self.on_index_progress(done, total),
            ),
            open_memory=partial(open_memory, services=services),
        )

    def _owner_services(self, owner: str) -> ServiceContainer:
        """Return the services of an owner: with a memory folder of their own, and without permission to write notes."""
        if not owner:
            return self.services
        folder = (
            Path(self.services.settings.memory_folder or _DEFAULT_MEMORY_FOLDER).expanduser() / _OWNERS_FOLDER / owner
        )
        return self.services.with_only_overrides(
            {**self.services.overrides, "memory_folder": str(folder), "note_writes": "off"}
        )


def _open_in_memory_store(url: str) -> Store:
    """Open a store in memory; raises for any other store, because those belong to the operator."""
    if url != _IN_MEMORY_URL:
        raise NotAvailableError("Other stores are not opened from here.", hint="Whoever runs the server opens them.")
    return open_store(url)


def open_engine_pool(
    url: str | None,
    *,
    vault: Path | None = None,
    model: str | None = None,
    provider: ModelProvider | None = None,
    services: ServiceContainer | None = None,
) -> EnginePool:
    """Open everything a server needs, over the store at a URL or the configured one.

    ``model`` is the default model of conversations. ``provider`` sends requests instead of the providers of the
    models.
    """
    services = services or read_services()
    store_url = resolve_store_url(url or None, services)
    # Caches at a provider are recorded in the store, because a record in one process is lost when the process ends.
    # The table is looked up late: the backend is opened below.
    pool, callers = (
        open_pool(provider, services=services, pool_class=kind, open_shared_table=lambda: backend.store.shared_table)
        for kind in (ProviderPool, RestrictedProviderPool)
    )
    assert isinstance(callers, RestrictedProviderPool)
    callers.workers = pool.workers
    usual = model or services.settings.model or DEMO_MODEL
    pool.trust_model(usual)
    callers.allow_model(usual)
    backend = open_backend(store_url, services=services, vault=vault, pool=pool)
    return EnginePool(
        services, backend, (pool, callers), vault=vault, model=usual, reservations=open_conversation_locks(store_url)
    )


# Server settings, and access tokens.

# A project file may not decide who has access and under which host name, because it may come from another author.
USER_ONLY_SETTINGS = ("serve",)
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
_POSITIVE_SETTINGS = ("body_bytes", "body_seconds", "unread_seconds", "rate", "guesses", "runs")
_MAX_PORT = 65_535


def server_settings(
    services: ServiceContainer, *, host: str | None = None, port: int | None = None
) -> HttpServerSettings:
    """Return the server settings, with host and port from a command on top.

    Raises ``SettingError`` for invalid values, and for settings that come from the project file.
    """
    for overreach in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach
    settings = services.settings.serve
    given = {"host": settings.host if host is None else host, "port": settings.port if port is None else port}
    values = {name: getattr(settings, name) for name in HttpServerSettings.__struct_fields__}
    rules = HttpServerSettings(**{**values, **given})
    if not 0 <= rules.port <= _MAX_PORT:
        raise SettingError(f"Invalid serve.port: {rules.port}", hint=f"Give a number from 0 to {_MAX_PORT}.")
    for name in _POSITIVE_SETTINGS:
        if getattr(rules, name) <= 0:
            raise SettingError(f"Invalid serve.{name}: {getattr(rules, name)}", hint="Give a number above 0.")
    for name in ("grace", "stop_seconds"):
        if getattr(rules, name) < 0:
            raise SettingError(f"Invalid serve.{name}: {getattr(rules, name)}", hint="Give a number of seconds, or 0.")
    return rules


def needs_token(settings: HttpServerSettings) -> bool:
    """Return whether every request needs a token.

    It does if other machines can reach the server, directly or by a host name given to them.
    """
    return not is_loopback(settings.host) or bool(settings.hosts)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def list_allowed_hosts(settings: HttpServerSettings) -> Sequence[str]:
    """Return the host names that requests may use, in lower case.

    A request for another name may come from a web page that points its own domain at this server (DNS rebinding).
    """
    bound = () if settings.host in ("0.0.0.0", "::") else (settings.host,)
    return [name.lower() for name in dict.fromkeys((*_LOOPBACK_NAMES, *bound, *settings.hosts))]


def open_token_file(services: ServiceContainer | None = None) -> AccessTokenFile:
    """Return the access tokens in the configured file, or in the folder of the user's settings."""
    services = services or read_services()
    for overreach in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach
    named = services.settings.serve.tokens
    return AccessTokenFile(Path(named).expanduser() if named else get_user_folder_path() / TOKENS_FILE_NAME)
