"""Faults: what a conversation would refuse of its settings, each told with where it was found."""

from collections.abc import Callable

from lamella.errors import LamellaError
from lamella.settings.configuration import Configuration
from lamella.settings.meaning import find_faults
from lamella.wiring.reading import find_reading_faults
from lamella.wiring.services import Services
from lamella.wiring.serving.rules import find_serve_rules
from lamella.wiring.trust import find_search

# What a project's file may not say of a conversation, since it may be somebody else's: that a secret may leave unseen,
# that answers stand in a log, that notes or the memory are written without a yes, where copies go, how much may be
# spent, which memory and which workflows go along.
_WRITING = ("note_writes", "note_backups", "memory_writes")
OWN = (
    "secrets",
    "log_preview",
    *_WRITING,
    "turn_tokens",
    "max_cost",
    "keep_alive",
    "memory",
    "memory_folder",
    "workflow_folder",
)


def find_bad_settings(services: Services) -> list[LamellaError]:
    """Whatever a conversation would refuse; each says where the value was found."""
    from lamella.adapters.stores.opening import locate_store

    checks: dict[str, Callable[[], object]] = {
        "store": lambda: locate_store(services.settings.store),
        "model_facts": lambda: services.own_models,
        "mcp": lambda: _list_servers(services),
        "web_search": lambda: find_search(services),
        "serve": lambda: find_serve_rules(services),
    }
    faults = list(find_faults(services.settings))
    faults += [((), error) for error in services.found.find_overreach(OWN)]
    faults += [((), error) for error in find_reading_faults(services.found)]
    for name, check in checks.items():
        try:
            check()
        except LamellaError as error:
            faults.append(((name,), error))
    return [tell_place(error, services.found.tell_places(names)) for names, error in faults]


def _list_servers(services: Services) -> object:
    from lamella.wiring.running.mcp import list_servers

    return list_servers(services)


def check_meaning(found: Configuration) -> None:
    """Refuses settings that mean nothing or are not for their file to say, with where the first was found."""
    for overreach in found.find_overreach(OWN):
        raise overreach
    for names, error in find_faults(found.settings):
        raise tell_place(error, found.tell_places(names))


def tell_place(error: LamellaError, place: str) -> LamellaError:
    """The same error; its message says where it happened, once."""
    if place and not error.message.startswith((f"{place}: ", f"{place}, ")):
        error.message = f"{place}: {error.message}"
        error.args = (error.message,)
    return error
