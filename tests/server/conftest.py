"""Fixtures of the server tests: files and trust of their own."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where a server that is started here keeps what it is told to remember, and the places it may ask."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as own:
        own.setenv("LAMELLA_MEMORY_FOLDER", str(folder / "memory"))
        own.setenv("XDG_CONFIG_HOME", str(folder))
        yield
