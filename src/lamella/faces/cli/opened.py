"""Opening a store for a command, and closing it again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from lamella.runners.keeping import Keeper
from lamella.wiring import open_keeper

StoreOption = Annotated[
    str | None,
    typer.Option("--store", help="sqlite:///FILE or postgresql://…; else the setting `store`.", show_default=False),
]


@contextmanager
def opened(url: str | None) -> Iterator[Keeper]:
    """The conversations at a URL, or at the configured one."""
    keeper = open_keeper(url)
    try:
        yield keeper
    finally:
        keeper.close()
