"""Access: opening a store or a conversation for a command, closing it again, and the options that name them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.wiring import open_desk, open_keeper

if TYPE_CHECKING:
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.keeping.stored import Backend, StoredChat

ChatName = Annotated[str, typer.Argument(help="The conversation's id, as `lamella chats list` shows it.")]
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


@contextmanager
def opened(url: str | None, *, create: bool = False) -> Iterator["Conversations"]:
    """The conversations at a URL, or at the configured one. Only what brings some in may ``create`` a store."""
    keeper = open_keeper(url, create=create)
    try:
        yield keeper
    finally:
        keeper.close()


@contextmanager
def opened_desk(url: str | None) -> Iterator["Backend"]:
    """What conversations at a URL, or at the configured one, work with."""
    desk = open_desk(url or None, create=False)
    try:
        yield desk
    finally:
        desk.store.close()


@contextmanager
def opened_chat(url: str | None, chat: str) -> Iterator["StoredChat"]:
    """One conversation as it was left; an error if there is none."""
    # Lists do without, and both take long to import.
    from lamella.engine.keeping.conversations import Conversations
    from lamella.engine.keeping.stored import StoredChat

    with opened_desk(url) as desk:
        stored = StoredChat(desk, chat)
        if not stored.version:
            Conversations(desk.store, desk.clock).load_log(chat)
        yield stored
