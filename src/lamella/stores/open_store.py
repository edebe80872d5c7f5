"""Opens the store that a URL names and migrates it to the current schema."""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import NotAvailableError, SettingError, install_hint
from lamella.files import (
    make_data_folder,
    make_private_file,
    make_private_folder,
    remove_access_of_other_users,
    resolve_path,
)
from lamella.plugins import PluginGroup, StoreOpener, find_plugin, open_with_plugin
from lamella.stores.sql_store import SqlStore
from lamella.stores.sqlite import IN_MEMORY_PATH, SqliteDatabase

if TYPE_CHECKING:
    from lamella.ports import Store

DEFAULT_STORE_TIMEOUT = 10.0
_BUILT_IN_SCHEMES = ("sqlite", "postgresql", "postgres", "memory")
_LAMELLA_FOLDER = "~/.lamella"
_URL_EXAMPLES = "sqlite:///chats.db (relative), sqlite:////home/me/chats.db (absolute), postgresql://user@host/database"


def open_store(url: str, *, timeout: float = DEFAULT_STORE_TIMEOUT, create: bool = True) -> "Store":
    """Open the store that a URL names, and migrate it if its schema is older.

    It waits at most ``timeout`` seconds for locks and servers. Without ``create``, a missing file raises
    ``SettingError``.
    """
    scheme = url.partition(":")[0]
    opener = _find_opener(scheme)
    if opener is not None:
        return open_with_plugin(
            PluginGroup.STORES, scheme, lambda: opener(url, timeout=timeout), is_right=_has_store_methods
        )
    path = find_store_path(url)
    if path is not None:
        return _open_file(url, path, timeout=timeout, create=create)
    if url.startswith("postgres"):
        return _open_postgresql(url, timeout=timeout)
    if not url.startswith("memory:"):
        return open_sqlite(IN_MEMORY_PATH, timeout=timeout)
    from lamella.stores.memory import InMemoryStore

    return InMemoryStore()


def find_store_path(url: str) -> Path | None:
    """Return the path of the file that a URL names, or None for a server or memory.

    Raises ``SettingError`` for an unknown kind of store.
    """
    scheme, _, rest = url.partition(":")
    if _find_opener(scheme) is not None:
        return None
    if scheme not in _BUILT_IN_SCHEMES:
        raise SettingError(f"There is no kind of store {scheme[:20]!r}.", hint=f"Known: {_URL_EXAMPLES}.")
    path = _sqlite_path(rest) if scheme == "sqlite" else IN_MEMORY_PATH
    if path == IN_MEMORY_PATH:
        return None
    try:
        return Path(path).expanduser() if path.startswith("~") else Path(path)
    except RuntimeError as error:
        raise SettingError(f"{path} names a home folder that does not exist.", hint="Write the whole path.") from error


def get_store_trust_key(url: str) -> str | None:
    """Return the location of a store as the user trusts it, or None for memory.

    It is the absolute path of a file, or the address of a server without its password.
    """
    path = find_store_path(url)
    if path is not None:
        return f"sqlite:///{resolve_path(path)}"
    if _find_opener(url.partition(":")[0]) is not None:
        # Without the password, as for servers that Lamella itself knows.
        return re.sub(r"://[^/@]*@", "://", url)
    if not url.startswith("postgres"):
        return None
    _check_postgresql_driver()
    from lamella.stores.postgresql import canonical_address

    return canonical_address(url)


def _find_opener(scheme: str) -> "StoreOpener | None":
    """Return the plugin that opens stores with this scheme, or None. A built-in scheme has none."""
    if scheme in _BUILT_IN_SCHEMES:
        return None
    opener: StoreOpener | None = find_plugin(PluginGroup.STORES, scheme)
    return opener


def _has_store_methods(opened: object) -> bool:
    from lamella.ports import Store

    return all(hasattr(opened, name) for name in vars(Store) if not name.startswith("_"))


def _open_file(url: str, path: Path, *, timeout: float, create: bool) -> "Store":
    if not create and not path.exists():
        raise SettingError(
            f"Store not found: {url}",
            hint=lambda hints: f"Check the address, or create the store: {hints.create_store_hint()}",
        )
    _create_private_file(path, below_home=url.startswith("sqlite:///~"))
    return open_sqlite(str(path), timeout=timeout)


def _create_private_file(path: Path, *, below_home: bool) -> None:
    """Create a store file that only its owner can read.

    In Lamella's own folder existing files are made private, too. Elsewhere an existing file keeps its permissions.
    """
    if _is_home_lamella_folder(path.parent):
        make_private_folder(path.parent)
        for suffix in ("", "-wal", "-shm"):
            remove_access_of_other_users(path.with_name(path.name + suffix))
    elif below_home:
        make_data_folder(path.parent)
    # SQLite gives the files that it creates beside the store (-wal, -shm) the same mode.
    make_private_file(path)


def _is_home_lamella_folder(folder: Path) -> bool:
    """Return whether a folder is ``~/.lamella``; False if the user has no home folder."""
    with suppress(SettingError):
        return resolve_path(folder) == resolve_path(_LAMELLA_FOLDER)
    return False


def open_sqlite(path: str, *, timeout: float = DEFAULT_STORE_TIMEOUT) -> "Store":
    """Open the store in a SQLite file, which is created if it does not exist."""
    database = SqliteDatabase(path, timeout=timeout)
    try:
        return SqlStore(database, name=path)
    except BaseException:
        database.close()
        raise


def _sqlite_path(rest: str) -> str:
    """Return the path in a ``sqlite:`` URL; raises ``SettingError`` if it names no file."""
    if rest in ("//", "///" + IN_MEMORY_PATH):
        return IN_MEMORY_PATH
    if not rest.startswith("///") or rest == "///":
        raise SettingError(f"'sqlite:{rest}' names no file.", hint=f"Known: {_URL_EXAMPLES}.")
    return rest.removeprefix("///")


def _open_postgresql(url: str, *, timeout: float) -> "Store":
    _check_postgresql_driver()
    from lamella.stores.postgresql import open_postgresql

    return open_postgresql(url, timeout=timeout)


def _check_postgresql_driver() -> None:
    try:
        import psycopg  # noqa: F401 - only to check that it is installed
    except ImportError as error:
        raise NotAvailableError(
            f"PostgreSQL needs a driver that is not installed: {error}.", hint=install_hint("postgres")
        ) from error
