"""Stopping: where a question is that somebody stopped, with what was said by then, told with what stopped it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lamella.errors import LamellaError
from lamella.faces.cli.access import name_command
from lamella.faces.cli.terminal.signals import ignore_keys

if TYPE_CHECKING:
    from lamella.faces.cli.chat.opening import ChatOptions, OpenChat


@contextmanager
def told_where_it_waits(opened: "OpenChat", options: "ChatOptions") -> Iterator[None]:
    """Ctrl-C says how to go on with a question that is kept and has no answer yet, and how to read half of one."""
    stored, store = opened.stored, options.store
    before = stored.head
    try:
        yield
    except KeyboardInterrupt as stopped:
        # Whoever is impatient presses it again, until the program is gone; what is said on the way out is said.
        ignore_keys()
        told = () if opened.kept is None else stored.turns()
        if not told or (told[-1].reply is not None and stored.head == before):
            raise
        if told[-1].reply is None:
            model = opened.name_again()
            again = name_command("chats resume", stored.name, model=model, store=store, vault=options.vault)
            hint = f"The question is kept. Go on with: {again}"
        else:
            hint = f"What was said is kept. Read it with: {name_command('chats show', stored.name, store=store)}"
        raise LamellaError("Stopped.", hint=hint) from stopped
