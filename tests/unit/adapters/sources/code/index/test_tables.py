"""An index in memory."""

import pytest

from lamella.adapters.sources.code.index.tables import CODE_TABLES, MemoryTables


def test_what_fails_half_way_is_not_written() -> None:
    tables = MemoryTables()

    def fail() -> None:
        with tables.writing():
            tables.insert("INSERT INTO facts VALUES (?, ?)", ("a", "b"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert tables.run("SELECT * FROM facts") == []
    tables.close()


def test_every_table_that_is_made_can_be_made_anew() -> None:
    tables = MemoryTables()
    made = {name for (name,) in tables.run("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE%TABLE%'")}
    assert set(CODE_TABLES.names) <= made
    assert {name for name in made if not name.startswith(("words_", "subjects_"))} == set(CODE_TABLES.names)
