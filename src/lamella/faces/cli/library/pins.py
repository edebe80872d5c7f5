"""``lamella pin`` and ``lamella unpin``: what stays whole in the prompt, and what may be shortened again."""

from typing import Annotated

import typer

from lamella.engine.dialogue.ask import Ask
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption
from lamella.faces.cli.library.doing import check_names, do

_Names = Annotated[
    list[str], typer.Argument(metavar="ID", help="An artifact's id, or a message: its id, turn:3 or reply:3.")
]


def pin(*, chat: ChatName, names: _Names, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Keep artifacts or messages whole in the prompt, from the next turn on.

    lamella pin garden decisions/one-index.md
    """
    do(chat, Ask(text="", pin=check_names(names)), store=store, as_json=as_json)


def unpin(*, chat: ChatName, names: _Names, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Let what is pinned be shortened or taken out again, from the next turn on.

    lamella unpin garden decisions/one-index.md
    """
    do(chat, Ask(text="", unpin=check_names(names)), store=store, as_json=as_json)
