"""Waiting: what takes longer than people expect says so on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer

import typer

_SECONDS = 1.0


@contextmanager
def told_if_slow(what: str, *, after: float = _SECONDS) -> Iterator[None]:
    """Say what is being done if it is not done soon."""
    timer = Timer(after, _tell, args=(what,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _tell(what: str) -> None:
    with suppress(OSError, ValueError):
        typer.echo(f"{what} …", err=True)
