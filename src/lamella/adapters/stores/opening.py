"""Opening: from a URL to a store that is migrated and ready."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.adapters.files.naming import find_real
from lamella.adapters.files.privacy import close_file, make_file, make_own_folder
from lamella.adapters.files.writing import make_folder
from lamella.adapters.stores.sqlite import MEMORY, SqliteDatabase
from lamella.adapters.stores.store import SqlStore
from lamella.errors import NotAvailableError, SettingError

if TYPE_CHECKING:
    from lamella.ports import Store

PATIENCE = 10.0
_OWN_FOLDER = "~/.lamella"
_FORMS = "sqlite:///chats.db (relative), sqlite:////home/me/chats.db (absolute), postgresql://user@host/database"


def open_store(url: str, *, patience: float = PATIENCE, create: bool = True) -> "Store":
    """The store a URL names, migrated if it is older. Waits at most ``patience`` seconds for locks and servers.

    Unless ``create``, a file that is not there is an error.
    """
    place = locate_store(url)
    if place is not None:
        return _open_file(url, place, patience=patience, create=create)
    if url.startswith("postgres"):
        return _open_postgresql(url, patience=patience)
    if not url.startswith("memory:"):
        return open_sqlite(MEMORY, patience=patience)
    from lamella.adapters.stores.memory import MemoryStore

    return MemoryStore()


def locate_store(url: str) -> Path | None:
    """The file that a URL names, none for a server or memory; an error if it names no kind of store."""
    scheme, _, rest = url.partition(":")
    if scheme not in ("sqlite", "postgresql", "postgres", "memory"):
        raise SettingError(f"There is no kind of store {scheme[:20]!r}.", hint=f"Known: {_FORMS}.")
    path = _sqlite_path(rest) if scheme == "sqlite" else MEMORY
    if path == MEMORY:
        return None
    try:
        return Path(path).expanduser() if path.startswith("~") else Path(path)
    except RuntimeError as error:
        raise SettingError(f"{path} names a home folder that does not exist.", hint="Write the whole path.") from error


def name_store(url: str) -> str | None:
    """Where a store is, as people say yes to it: a whole path, or a server without its password; none for memory."""
    place = locate_store(url)
    if place is not None:
        return f"sqlite:///{find_real(place)}"
    if not url.startswith("postgres"):
        return None
    _check_driver()
    from lamella.adapters.stores.postgresql import name_server

    return name_server(url)


def _open_file(url: str, place: Path, *, patience: float, create: bool) -> "Store":
    if not create and not place.exists():
        raise SettingError(
            f"There is no store at {url}.",
            hint=lambda door: f"Check the address. A new store begins with {door.begin_store()}.",
        )
    _keep_private(place, below_home=url.startswith("sqlite:///~"))
    return open_sqlite(str(place), patience=patience)


def _keep_private(place: Path, *, below_home: bool) -> None:
    """A new store is its owner's alone, and so is all in Lamella's own folder; another that is there is as it was."""
    if _is_own(place.parent):
        make_own_folder(place.parent)
        for suffix in ("", "-wal", "-shm"):
            close_file(place.with_name(place.name + suffix))
    elif below_home:
        make_folder(place.parent)
    # What SQLite keeps beside a file has the file's mode.
    make_file(place)


def _is_own(folder: Path) -> bool:
    """Whether a folder is Lamella's own, below the user's home; some users have none."""
    with suppress(SettingError):
        return find_real(folder) == find_real(_OWN_FOLDER)
    return False


def open_sqlite(path: str, *, patience: float = PATIENCE) -> "Store":
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


def _open_postgresql(url: str, *, patience: float) -> "Store":
    _check_driver()
    from lamella.adapters.stores.postgresql import open_postgresql

    return open_postgresql(url, patience=patience)


def _check_driver() -> None:
    try:
        import psycopg  # noqa: F401 - only to see whether it is there
    except ImportError as error:
        raise NotAvailableError(
            f"PostgreSQL needs a driver that is not installed: {error}.", hint="pip install 'lamella[postgres]'"
        ) from error
