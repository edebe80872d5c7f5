"""The schema: numbered migrations as SQL files, applied in order and all together when a store is opened."""

from collections.abc import Sequence
from importlib.resources import files

from lamella.adapters.stores.database import Database, Transaction
from lamella.errors import SettingError, StoreVersionError

_TABLE = "schema_version"


def load_migrations(dialect: str) -> tuple[str, ...]:
    """The SQL of every migration of a dialect, in order: the first makes an empty database a store."""
    folder = files("lamella.adapters.stores") / "migrations" / dialect
    scripts = sorted((file.name, file.read_text(encoding="utf-8")) for file in folder.iterdir())
    return tuple(script for name, script in scripts if name.endswith(".sql"))


def migrate(database: Database, migrations: Sequence[str], *, name: str) -> int:
    """Bring a database to the newest version, and give that version. It gets all of its migrations or none."""
    newest = len(migrations)
    version = database.read(lambda transaction: _read_version(database, transaction, name=name))
    check_version(version, newest, name=name)
    if version == newest:
        return newest
    return database.migrate(lambda transaction: _apply(database, transaction, migrations=migrations, name=name))


def _read_version(database: Database, transaction: Transaction, *, name: str) -> int:
    tables = database.tables(transaction)
    if _TABLE in tables:
        return int(transaction.rows(f"SELECT coalesce(max(version), 0) FROM {_TABLE}")[0][0])
    if tables:
        raise SettingError(
            f"{name} is a database of something else: it has the table {min(tables)} and no table {_TABLE}.",
            hint="Name a new file or database; Lamella adds nothing to other programs' data.",
        )
    return 0


def _apply(database: Database, transaction: Transaction, *, migrations: Sequence[str], name: str) -> int:
    version, newest = _read_version(database, transaction, name=name), len(migrations)
    check_version(version, newest, name=name)
    for number, script in enumerate(migrations[version:], start=version + 1):
        for statement in _statements(script):
            transaction.run(statement)
        transaction.run(f"INSERT INTO {_TABLE} (version) VALUES (?)", number)
    return newest


def check_version(found: int, known: int, *, name: str) -> None:
    """Refuse a store that a newer version of Lamella has migrated."""
    if found > known:
        raise StoreVersionError(
            f"{name} has schema version {found}; this version of Lamella knows up to {known}.",
            hint="Use the newer version of Lamella that migrated it.",
        )


def _statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [statement for part in "\n".join(lines).split(";\n") if (statement := part.strip().removesuffix(";"))]
