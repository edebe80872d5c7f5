"""The recipe for a store, followed in a copy of the source: it stores and verifies conversations."""

from pathlib import Path

from tests.contracts.recipes import SourceCopy

STORE = '''"""A store in memory that all engines of a process share, by its name."""

from lamella.stores.memory import InMemoryStore

_STORES: dict[str, InMemoryStore] = {}


def open_shared(name: str) -> InMemoryStore:
    """Return the store of this name, which is created when it is first opened."""
    return _STORES.setdefault(name, InMemoryStore())
'''
OPEN = """    if url.startswith("shared:"):
        from lamella.stores.shared import open_shared

        return open_shared(url.removeprefix("shared:"))
"""
KEPT = """
import lamella
from lamella.errors import SettingError

with lamella.open("shared:one") as engine:
    chat = engine.chat("garden")
    chat.ask("Hello?")
    chat.reply("Hi.")
with lamella.open("shared:one") as engine:
    print([one.name for one in engine.chats()], engine.chat("garden").turns()[-1].reply.text, list(engine.verify()))
with lamella.open("shared:two") as engine:
    print(list(engine.chats()))
try:
    lamella.open("castle:one")
except SettingError as error:
    print("shared:NAME" in error.hint)
"""


def test_store_recipe_gives_a_store_that_keeps_conversations(tmp_path: Path) -> None:
    copy = SourceCopy(tmp_path)
    copy.create("stores/shared.py", STORE)
    path = "stores/open_store.py"
    copy.replace(path, '("sqlite", "postgresql", "postgres", "memory")', '("sqlite", "postgresql", "memory", "shared")')
    copy.replace(path, "postgresql://user@host/database", "postgresql://user@host/database, shared:NAME")
    copy.insert(path, OPEN, before='    if not url.startswith("memory:"):')
    assert copy.run(KEPT).splitlines() == ["['garden'] Hi. []", "[]", "True"]
    copy.check("Add a store", name="shared")
