"""Access: opening a store or a conversation for a command, closing it again, and the options that name them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.commands import quote_word, write_command
from lamella.faces.cli.terminal.lines import show_line
from lamella.wiring import list_conversations, mask, open_backend, open_conversations

if TYPE_CHECKING:
    from lamella.engine.keeping.backend import Backend
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.keeping.stored import StoredChat

# The variable by which a shell asks what a word may become.
COMPLETING = "_LAMELLA_COMPLETE"


def list_names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Names of conversations for a shell, with their titles; a shell is told of no error, and quotes no names."""
    with suppress(Exception):
        alive = [one for one in list_conversations(context.params.get("store")) if one.name.startswith(incomplete)]
        return [(one.name, show_line(one.title)) for one in alive if quote_word(one.name) == one.name]
    return []


ChatName = Annotated[
    str,
    typer.Argument(
        help="A conversation: its name, as `lamella chats list` shows it, or how it begins; its title.",
        autocompletion=list_names,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="sqlite:///FILE or postgresql://…; else the setting `store`.",
        show_default=False,
    ),
]


def name_command(command: str, *names: str, store: str | None, vault: Path | None = None, **options: object) -> str:
    """A command to go on with, in the store and over the notes that this one was given; a password is not repeated."""
    return write_command(command, *names, **options, store=None if store is None else mask(store), vault=vault)


@contextmanager
def opened(url: str | None, *, create: bool = False) -> Iterator["Conversations"]:
    """The conversations at a URL, or at the configured one. Only what brings some in may ``create`` a store."""
    conversations = open_conversations(url, create=create)
    try:
        yield conversations
    finally:
        conversations.close()


@contextmanager
def opened_backend(url: str | None, *, vault: Path | None = None, create: bool = False) -> Iterator["Backend"]:
    """What conversations at a URL, or at the configured one, work with, over the notes of a vault if one is named."""
    backend = open_backend(url or None, create=create, vault=vault)
    try:
        yield backend
    finally:
        backend.store.close()


@contextmanager
def opened_chat(
    url: str | None, chat: str, *, vault: Path | None = None, create: bool = False
) -> Iterator["StoredChat"]:
    """The conversation that is meant as it was left; if there is none, an error, or a new one of that name."""
    # Lists do without, and both take long to import.
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.keeping.names import find_chat
    from lamella.engine.keeping.stored import StoredChat

    with opened_backend(url, vault=vault, create=create) as backend:
        found = find_chat(backend.store, chat) if create else Conversations(backend.store, backend.clock).find(chat)
        yield StoredChat(backend, chat if found is None else found.name)
