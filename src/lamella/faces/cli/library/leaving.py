"""``lamella detach`` and ``lamella drop``: what the next turn of a conversation does without."""

from typing import Annotated

import typer

from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.reading.commands import EVERYTHING
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption
from lamella.faces.cli.library.doing import check_names, do


def detach(
    *,
    chat: ChatName,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="What to detach: its id, or the folder or tag it came with; else all."),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Take something out of the working set from the next turn on, or have what waits for that not attached at all.

    lamella detach garden decisions/one-index.md
    """
    do(chat, Ask(text="", detach=check_names(names) if names else (EVERYTHING,)), store=store, as_json=as_json)


def drop(
    *,
    chat: ChatName,
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", help="What to drop: its id, or the folder or tag it came with.")
    ],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Take something out of the prompt from the next turn on; recall still finds it.

    lamella drop garden decisions/one-index.md
    """
    do(chat, Ask(text="", drop=check_names(names)), store=store, as_json=as_json)
