"""Trust: somebody else's words choose no place. A project's file and a conversation may be theirs.

What the person names, in their own settings, the environment, on the command line or in a program, is used as it is.
What only a project's file or a conversation names is used after the person has said yes to it, once, by name.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from lamella.errors import LamellaError, SettingError, UntrustedError
from lamella.settings.configuration import Origin
from lamella.settings.files import place_user_folder
from lamella.settings.trust import FILE, TrustBook
from lamella.wiring.services import Services, read_services

# The settings that name a place.
FIELDS = ("model", "store", "web_search", "mcp")
# What PostgreSQL's own library sends to whichever server it is led to.
_PASSWORD = "PGPASSWORD"


def open_trust() -> TrustBook:
    """The places that this user has said yes to."""
    return TrustBook(place_user_folder() / FILE)


def add_trust(field: str, place: str) -> bool:
    """Say yes to a place; false if that was said before."""
    from lamella.adapters.clocks.system import SystemClock

    return open_trust().add(field, place, since=f"{SystemClock().now():%Y-%m-%d}")


def name_place(field: str, given: str) -> str:
    """A place as it stands among those that are trusted; a provider's name stands for all of its models."""
    from lamella.adapters.providers.places import name_provider

    if field not in FIELDS:
        raise SettingError(f"{field} names no place.", hint=f"Settings that do: {', '.join(FIELDS)}.")
    if field == "mcp":
        from lamella.wiring.running.mcp import find_place

        return find_place(given, read_services())
    place = (name_provider(given) if field == "model" else None) or _name(field, given, read_services())
    if place is None:
        raise SettingError(f"{given} needs no trust.", hint="Whoever names it, nothing leaves this process.")
    return place


def find_store(url: str | None, services: Services) -> str:
    """The store at a URL, or the configured one, unless only a project's file names that."""
    if url is not None:
        return url
    store = services.settings.store
    if services.found.origins["store"] is Origin.PROJECT:
        _check("store", store, own=(), services=services)
    return store


def find_search(services: Services) -> str | None:
    """Where the web is searched, if anywhere, unless only a project's file names that."""
    address = services.settings.web_search
    if not address:
        return None
    if services.found.origins["web_search"] is Origin.PROJECT:
        _check("web_search", address, own=(), services=services)
    return _name("web_search", address, services)


def check_model(model: str, *, named: bool, services: Services) -> None:
    """Refuses a model that only a project's file or a conversation names, and that nobody said yes to.

    ``named`` says that whoever runs this named it.
    """
    _check("model", model, own=(model,) if named else (), services=services)


def needs_name(model: str, services: Services) -> bool:
    """Whether a model is refused, or asked about, as long as a conversation alone names it."""
    try:
        check_model(model, named=False, services=services)
    except UntrustedError:
        return True
    return False


def remember_model(model: str, *, named: bool, services: Services) -> None:
    """A model that was named and has answered is a yes for later, when a conversation alone names it.

    One that was named and never answered may have been a slip.
    """
    # It was used whether or not that can be written down.
    with suppress(LamellaError):
        place = _name("model", model, services)
        if place is not None and place in _list_own("model", (model,) if named else (), services):
            add_trust("model", place)


def check_server(name: str, place: str, *, services: Services) -> None:
    """Refuses an MCP server that only a project's file names, and that nobody said yes to."""
    if open_trust().covers("mcp", place):
        return
    raise UntrustedError(
        f"{services.found.files[Origin.PROJECT]} names the MCP server {place}, and you have not.",
        hint=lambda door: f"If you trust it, {door.trust('mcp', name, place)}.",
        field="mcp",
        place=place,
    )


def _check(field: str, given: str, *, own: Sequence[str], services: Services) -> None:
    """Refuses a place that nobody named or said yes to."""
    place = _name(field, given, services)
    if place is None or place in _list_own(field, own, services) or open_trust().covers(field, place):
        return
    raise UntrustedError(
        f"{_find_author(field, given, services)} names the {field} {place}, and you have not{_tell_key(field, given)}.",
        hint=lambda door: f"If you trust it, {door.trust(field, given, place)}.",
        field=field,
        place=place,
    )


def _list_own(field: str, own: Sequence[str], services: Services) -> Iterator[str | None]:
    """The places that whoever runs this has named. Facts in a project cannot turn a name into another place."""
    theirs = services.found.origins["model_facts"] is Origin.PROJECT
    # A model that somebody named to write summaries is a place of theirs as well.
    named = services.surroundings.list_own("summarizer") if field == "model" else []
    for value in (*own, *services.surroundings.list_own(field), *named):
        with suppress(LamellaError):
            yield _name(field, value, services, shipped=theirs) if isinstance(value, str) else None


def _name(field: str, given: str, services: Services, *, shipped: bool = False) -> str | None:
    if field == "store":
        from lamella.adapters.stores.opening import name_store

        return name_store(given)
    if field == "web_search":
        from lamella.adapters.tools.web import place_search

        return place_search(given)
    from lamella.adapters.providers.facts.models import BuiltInModels
    from lamella.adapters.providers.places import name_model

    return name_model(given, BuiltInModels() if shipped else services.models)


def _find_author(field: str, given: str, services: Services) -> str:
    found = services.found
    names = ("model", "summarizer") if field == "model" else (field,)
    chosen = any(getattr(found.settings, name) == given and found.origins[name] is Origin.PROJECT for name in names)
    # A name without a provider leads where facts say.
    chosen |= field == "model" and ":" not in given and found.origins["model_facts"] is Origin.PROJECT
    return str(found.files[Origin.PROJECT]) if chosen else "The conversation"


def _tell_key(field: str, given: str) -> str:
    from lamella.adapters.providers.places import find_server_key

    key = find_server_key(given) if field == "model" else _PASSWORD if given.startswith("postgres") else None
    return f"; {key} would be sent to it" if key and os.environ.get(key) else ""
