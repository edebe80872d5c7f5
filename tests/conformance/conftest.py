"""Every store, under the same suite: in memory, in a SQLite file, on a real PostgreSQL server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import servers

from lamella.ports import Store
from lamella.stores.open_store import open_store

OpenStore = Callable[[str], Store]


def make_url(kind: str, folder: Path) -> str:
    """The address of a store of a kind that nobody has used."""
    match kind:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:///{folder / 'chats.db'}"
    return servers.shared().make_store_url()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, opened: OpenStore) -> Store:
    """A new store of every kind."""
    return opened(make_url(request.param, tmp_path))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new store of every kind that lasts."""
    return make_url(request.param, tmp_path)


@pytest.fixture
def opened() -> Iterator[OpenStore]:
    """Opens stores that are closed when the test is over."""
    stores: list[Store] = []

    def opening(url: str) -> Store:
        stores.append(open_store(url, timeout=30.0))
        return stores[-1]

    yield opening
    for store in stores:
        store.close()
