"""Open and close a store or a conversation for a command, and define the options that name them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.output import escape_to_short_line
from lamella.hints import format_command_line, quote_for_shell
from lamella.wiring import list_conversations, mask_url_secrets, open_backend, open_conversation_repository

if TYPE_CHECKING:
    from lamella.conversation.backend import Backend
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.import_export import ConversationRepository


def complete_chat_names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return names and titles of conversations for shell completion.

    Errors are suppressed, because their text would appear in the user's input line. Names that need quoting are left
    out, because shells do not quote completions.
    """
    with suppress(Exception):
        alive = [one for one in list_conversations(context.params.get("store")) if one.name.startswith(incomplete)]
        return [(one.name, escape_to_short_line(one.title)) for one in alive if quote_for_shell(one.name) == one.name]
    return []


ChatArgument = Annotated[
    str,
    typer.Argument(
        help="Conversation name, the unique start of a name, or a title.",
        autocompletion=complete_chat_names,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="Database URL: sqlite:///FILE or postgresql://…",
        show_default="setting `store`",
    ),
]


def format_command(command: str, *names: str, store: str | None, vault: Path | None = None, **options: object) -> str:
    """Return a command for the user to run next, with the same store and vault; a password in the URL is masked."""
    return format_command_line(
        command, *names, **options, store=None if store is None else mask_url_secrets(store), vault=vault
    )


@contextmanager
def open_cli_repository(url: str | None, *, create: bool = False) -> Iterator["ConversationRepository"]:
    """Open the conversations at a URL, or at the configured one, and close them afterwards.

    Only commands that add conversations may ``create`` a missing store.
    """
    conversations = open_conversation_repository(url, create=create)
    try:
        yield conversations
    finally:
        conversations.close()


@contextmanager
def open_cli_backend(url: str | None, *, vault: Path | None = None, create: bool = False) -> Iterator["Backend"]:
    """Open the backend of the store at a URL, or at the configured one, and close the store afterwards.

    ``vault`` is the folder of notes that conversations may read.
    """
    backend = open_backend(url or None, create=create, vault=vault)
    try:
        yield backend
    finally:
        backend.store.close()


@contextmanager
def open_conversation(
    store_url: str | None, chat: str, *, vault: Path | None = None, create: bool = False
) -> Iterator["Conversation"]:
    """Open a stored conversation and close its store afterwards.

    If no conversation matches, this raises an error, or starts one of that name with ``create``.
    """
    # Imported here: these modules are slow to import, and listing conversations does not need them.
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.import_export import ConversationRepository
    from lamella.conversation.names import find_conversation_by_name

    with open_cli_backend(store_url, vault=vault, create=create) as backend:
        found = (
            find_conversation_by_name(backend.store, chat)
            if create
            else ConversationRepository(backend.store, backend.clock).resolve_conversation(chat)
        )
        yield Conversation.open(backend, chat if found is None else found.name)
