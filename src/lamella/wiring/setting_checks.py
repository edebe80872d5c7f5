"""Checks of the settings for a conversation; each error names the file or variable of the value."""

from collections.abc import Callable

from lamella.errors import LamellaError
from lamella.settings.loading import ResolvedSettings
from lamella.settings.rules import iter_setting_errors
from lamella.wiring.server import server_settings
from lamella.wiring.services import ServiceContainer
from lamella.wiring.sources import list_source_setting_errors
from lamella.wiring.trust import find_web_search_url

# Settings that a project file may not set, because it may come from another author. They decide whether
# secrets are reported, whether answers appear in a log, whether DOIs are looked up, whether models write notes and the
# memory without asking, where backups go, how much may be spent, and which memory and workflows are used.
_WRITE_SETTINGS = ("note_writes", "note_backups", "memory_writes")
USER_ONLY_SETTINGS = (
    "secrets",
    "log_preview",
    "doi_lookup",
    *_WRITE_SETTINGS,
    "turn_tokens",
    "max_cost",
    "keep_alive",
    "memory",
    "memory_folder",
    "workflow_folder",
)


def list_setting_errors(services: ServiceContainer) -> list[LamellaError]:
    """Return every error that the settings would cause in a conversation, each with the origin of the value."""
    from lamella.stores.open_store import find_store_path

    checks: dict[str, Callable[[], object]] = {
        "store": lambda: find_store_path(services.settings.store),
        "model_facts": lambda: services.user_models,
        "mcp": lambda: _check_mcp_servers(services),
        "web_search": lambda: find_web_search_url(services),
        "serve": lambda: server_settings(services),
    }
    faults = list(iter_setting_errors(services.settings))
    faults += [((), error) for error in services.resolved.errors_for_project_settings(USER_ONLY_SETTINGS)]
    faults += [((), error) for error in list_source_setting_errors(services.resolved)]
    for name, check in checks.items():
        try:
            check()
        except LamellaError as error:
            faults.append(((name,), error))
    return [add_error_location(error, services.resolved.describe_setting_origins(names)) for names, error in faults]


def _check_mcp_servers(services: ServiceContainer) -> object:
    from lamella.wiring.mcp import list_servers

    return list_servers(services)


def raise_first_setting_error(resolved: ResolvedSettings) -> None:
    """Raise the first error in these settings, with the origin of the value.

    This includes settings that the project file may not set.
    """
    for overreach in resolved.errors_for_project_settings(USER_ONLY_SETTINGS):
        raise overreach
    for names, error in iter_setting_errors(resolved.settings):
        raise add_error_location(error, resolved.describe_setting_origins(names))


def add_error_location(error: LamellaError, location: str) -> LamellaError:
    """Put a location in front of an error's message, unless it is there already, and return the error."""
    if location and not error.message.startswith((f"{location}: ", f"{location}, ")):
        error.message = f"{location}: {error.message}"
        error.args = (error.message,)
    return error
