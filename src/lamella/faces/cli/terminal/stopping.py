"""Stopping: where a question is that somebody stopped, with what was said by then, told with what stopped it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.errors import LamellaError
from lamella.faces.cli.access import name_command
from lamella.faces.cli.terminal.signals import ignore_keys

if TYPE_CHECKING:
    from lamella.engine.keeping.stored import StoredChat


@contextmanager
def told_where_it_waits(stored: "StoredChat", *, store: str | None, vault: Path | None, kept: bool) -> Iterator[None]:
    """Ctrl-C says how to go on with a question that is ``kept`` and has no answer yet, and how to read half of one."""
    before = stored.head
    try:
        yield
    except KeyboardInterrupt as stopped:
        # Whoever is impatient presses it again, until the program is gone; what is said on the way out is said.
        ignore_keys()
        told = stored.turns() if kept else ()
        if not told or (told[-1].reply is not None and stored.head == before):
            raise
        if told[-1].reply is None:
            again = name_command("chats resume", stored.name, store=store, vault=vault)
            hint = f"The question is kept. Go on with: {again}"
        else:
            hint = f"What was said is kept. Read it with: {name_command('chats show', stored.name, store=store)}"
        raise LamellaError("Stopped.", hint=hint) from stopped
