"""Access: stores, conversations and transcripts by the names that were typed, and the options that name them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lamella.engine.keeping import Keeper
from lamella.engine.stored import Desk, StoredChat
from lamella.errors import UsageError
from lamella.wiring import Transcript, load_settings, load_transcript, open_desk, open_keeper, read_transcript

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
def opened(url: str | None, *, create: bool = False) -> Iterator[Keeper]:
    """The conversations at a URL, or at the configured one. Only what brings some in may ``create`` a store."""
    keeper = open_keeper(url, create=create)
    try:
        yield keeper
    finally:
        keeper.close()


@contextmanager
def opened_desk(url: str | None) -> Iterator[Desk]:
    """What conversations at a URL, or at the configured one, work with."""
    desk = open_desk(url or load_settings().store, create=False)
    try:
        yield desk
    finally:
        desk.store.close()


@contextmanager
def opened_chat(url: str | None, chat: str) -> Iterator[StoredChat]:
    """One conversation as it was left; an error if there is none."""
    with opened_desk(url) as desk:
        stored = StoredChat(desk, chat)
        if not stored.version:
            Keeper(desk.store, desk.clock).load_log(chat)
        yield stored


def load_named(file: str) -> Transcript:
    """The transcript that was named on the command line: a file, or ``-`` for stdin."""
    if file != "-":
        return load_transcript(Path(file))
    if sys.stdin is None:
        raise UsageError("There is no stdin to read the transcript from.", hint="Pipe it in, or name a file.")
    return read_transcript(sys.stdin.buffer, name="stdin")


def find_folder(file: str) -> Path:
    """The folder that its vault is relative to."""
    return Path.cwd() if file == "-" else Path(file).parent
