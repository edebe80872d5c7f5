"""Opening: from a URL to a store that is migrated and ready."""

from lamella.adapters.stores.memory import MemoryStore
from lamella.adapters.stores.sqlite import MEMORY, SqliteDatabase
from lamella.adapters.stores.store import SqlStore
from lamella.errors import NotAvailableError, SettingError
from lamella.ports import Store

PATIENCE = 10.0
_FORMS = "sqlite:///chats.db (relative), sqlite:////home/me/chats.db (absolute), postgresql://user@host/database"


def open_store(url: str, *, patience: float = PATIENCE) -> Store:
    """The store a URL names, migrated if it is older. Waits at most ``patience`` seconds for locks and servers."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "sqlite":
            return open_sqlite(_sqlite_path(rest), patience=patience)
        case "postgresql" | "postgres":
            return _open_postgresql(url, patience=patience)
        case "memory":
            return MemoryStore()
    raise SettingError(f"There is no kind of store {scheme[:20]!r}.", hint=f"Known: {_FORMS}.")


def open_sqlite(path: str, *, patience: float = PATIENCE) -> Store:
    """The store in one file, made if it is not there."""
    database = SqliteDatabase(path, patience=patience)
    try:
        return SqlStore(database, name=path)
    except BaseException:
        database.close()
        raise


def _sqlite_path(rest: str) -> str:
    if rest in ("//", "///" + MEMORY):
        return MEMORY
    if not rest.startswith("///") or rest == "///":
        raise SettingError(f"'sqlite:{rest}' names no file.", hint=f"Known: {_FORMS}.")
    return rest.removeprefix("///")


def _open_postgresql(url: str, *, patience: float) -> Store:
    try:
        from lamella.adapters.stores.postgresql import open_postgresql
    except ImportError as error:
        raise NotAvailableError(
            f"PostgreSQL needs a driver that is not installed: {error}.", hint="pip install 'lamella[postgres]'"
        ) from error
    return open_postgresql(url, patience=patience)
