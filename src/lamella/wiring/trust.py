"""Trust checks: only the user decides which models, stores and servers are used.

A location that the user names in their own settings, the environment, a command or a program is used without a check.
A location that only a project file or a conversation names is used once the user has allowed it by name, because the
file or the conversation may come from another author.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lamella.errors import LamellaError, SettingError, UntrustedError
from lamella.settings.loading import SettingOrigin, get_user_folder_path
from lamella.settings.trust import TRUST_FILE_NAME, TrustFile
from lamella.wiring.services import ServiceContainer, read_services

# The settings that name a location.
TRUST_FIELDS = ("model", "store", "web_search", "mcp")
# PostgreSQL's client library sends this password to any server that it connects to.
_PASSWORD_VARIABLE = "PGPASSWORD"


def open_trust_file() -> TrustFile:
    """Return the locations that this user has allowed."""
    return TrustFile(get_user_folder_path() / TRUST_FILE_NAME)


def add_trust(field: str, location: str) -> bool:
    """Allow a location; return False if it was allowed before."""
    from lamella.clocks import SystemClock

    return open_trust_file().add(field, location, since=f"{SystemClock().now():%Y-%m-%d}")


def get_trust_key(field: str, name: str) -> str:
    """Return the normalised form of a location in the trust file; the name of a provider means all of its models.

    Raises ``SettingError`` for a field that names no location, and for a location that needs no trust.
    """
    from lamella.providers.open_provider import provider_trust_key

    if field not in TRUST_FIELDS:
        raise SettingError(f"{field} names no place.", hint=f"Settings that do: {', '.join(TRUST_FIELDS)}.")
    if field == "mcp":
        from lamella.wiring.mcp import get_server_trust_key

        return get_server_trust_key(name, read_services())
    location = (provider_trust_key(name) if field == "model" else None) or _normalize_location(
        field, name, read_services()
    )
    if location is None:
        raise SettingError(f"{name} needs no trust.", hint="Whoever names it, nothing leaves this process.")
    return location


def resolve_store_url(url: str | None, services: ServiceContainer) -> str:
    """Return the URL, or that of the configured store; raises ``UntrustedError`` if only a project file names it."""
    if url is not None:
        return url
    store = services.settings.store
    if services.resolved.origins["store"] is SettingOrigin.PROJECT:
        _check_trusted("store", store, user_names=(), services=services)
    return store


def find_web_search_url(services: ServiceContainer) -> str | None:
    """Return the address of the search engine, or None; raises ``UntrustedError`` if only a project file names it."""
    address = services.settings.web_search
    if not address:
        return None
    if services.resolved.origins["web_search"] is SettingOrigin.PROJECT:
        _check_trusted("web_search", address, user_names=(), services=services)
    return _normalize_location("web_search", address, services)


def check_model_is_trusted(model: str, *, is_named: bool, services: ServiceContainer) -> None:
    """Raise ``UntrustedError`` for a model that the user has neither named nor allowed.

    ``is_named`` says that the user named the model.
    """
    _check_trusted("model", model, user_names=(model,) if is_named else (), services=services)


def requires_named_model(model: str, services: ServiceContainer) -> bool:
    """Return whether a model is refused as long as only a conversation names it."""
    try:
        check_model_is_trusted(model, is_named=False, services=services)
    except UntrustedError:
        return True
    return False


def trust_answered_model(model: str, *, is_named: bool, services: ServiceContainer) -> None:
    """Allow a model that the user named and that has answered, so that a conversation alone may name it later.

    A model that never answered is not remembered: its name may be a typing error.
    """
    # The model was used already, so a failure to record that is not an error.
    with suppress(LamellaError):
        location = _normalize_location("model", model, services)
        if location is not None and location in _iter_user_locations("model", (model,) if is_named else (), services):
            add_trust("model", location)


def check_mcp_server_is_trusted(name: str, location: str, *, services: ServiceContainer) -> None:
    """Raise ``UntrustedError`` for an MCP server that only a project file names and the user has not allowed."""
    if open_trust_file().is_trusted("mcp", location):
        return
    raise UntrustedError(
        f"{services.resolved.files[SettingOrigin.PROJECT]} names the MCP server {location}, and you have not.",
        hint=lambda hints: f"If you trust it, {hints.trust_hint('mcp', name, location)}.",
        field="mcp",
        location=location,
    )


def _check_trusted(field: str, name: str, *, user_names: Sequence[str], services: ServiceContainer) -> None:
    """Raise ``UntrustedError`` for a location that the user has neither named nor allowed."""
    location = _normalize_location(field, name, services)
    if (
        location is None
        or location in _iter_user_locations(field, user_names, services)
        or open_trust_file().is_trusted(field, location)
    ):
        return
    raise UntrustedError(
        f"{_setting_author(field, name, services)} names the {field} {location}, "
        f"and you have not{_key_exposure_note(field, name)}.",
        hint=lambda hints: f"If you trust it, {hints.trust_hint(field, name, location)}.",
        field=field,
        location=location,
    )


def _iter_user_locations(field: str, user_names: Sequence[str], services: ServiceContainer) -> Iterator[str | None]:
    """Yield the locations that the user has named.

    Model facts of a project are ignored here, so that they cannot turn a name into another location.
    """
    theirs = services.resolved.origins["model_facts"] is SettingOrigin.PROJECT
    # A model that the user named as summarizer is named as well.
    named = services.settings_sources.list_trusted_values("summarizer") if field == "model" else []
    for value in (*user_names, *services.settings_sources.list_trusted_values(field), *named):
        # A name that is no valid location allows nothing.
        with suppress(LamellaError):
            yield (
                _normalize_location(field, value, services, built_in_models_only=theirs)
                if isinstance(value, str)
                else None
            )


def _normalize_location(
    field: str, name: str, services: ServiceContainer, *, built_in_models_only: bool = False
) -> str | None:
    if field == "store":
        from lamella.stores.open_store import get_store_trust_key

        return get_store_trust_key(name)
    if field == "web_search":
        from lamella.tools.builtin import search_endpoint

        return search_endpoint(name)
    from lamella.providers.models import BuiltInModelProfiles
    from lamella.providers.open_provider import model_trust_key

    return model_trust_key(name, BuiltInModelProfiles() if built_in_models_only else services.models)


def _setting_author(field: str, setting_value: str, services: ServiceContainer) -> str:
    resolved = services.resolved
    names = ("model", "summarizer") if field == "model" else (field,)
    chosen = any(
        getattr(resolved.settings, name) == setting_value and resolved.origins[name] is SettingOrigin.PROJECT
        for name in names
    )
    # Model facts decide the provider of a name without one.
    chosen |= field == "model" and ":" not in setting_value and resolved.origins["model_facts"] is SettingOrigin.PROJECT
    return str(resolved.files[SettingOrigin.PROJECT]) if chosen else "The conversation"


def _key_exposure_note(field: str, name: str) -> str:
    from lamella.providers.open_provider import server_key_variable

    key = server_key_variable(name) if field == "model" else _PASSWORD_VARIABLE if name.startswith("postgres") else None
    return f"; {key} would be sent to it" if key and os.environ.get(key) else ""
