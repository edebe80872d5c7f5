"""An index in memory."""

import pytest

from lamella.codebase.index import CODE_TABLES, InMemoryTables


def test_failed_transaction_writes_nothing() -> None:
    tables = InMemoryTables()

    def fail() -> None:
        with tables.write_transaction():
            tables.insert("INSERT INTO facts VALUES (?, ?)", ("a", "b"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert tables.execute("SELECT * FROM facts") == []
    tables.close()


def test_every_table_can_be_recreated() -> None:
    tables = InMemoryTables()
    made = {name for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE%TABLE%'")}
    assert set(CODE_TABLES.table_names) <= made
    assert {name for name in made if not name.startswith(("words_", "subjects_"))} == set(CODE_TABLES.table_names)
