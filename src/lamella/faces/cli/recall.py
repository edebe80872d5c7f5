"""``lamella recall`` and ``lamella why``: read what left the prompt word for word, and learn why it did."""

from typing import Annotated

import typer

from lamella.engine.dialogue.recalling import FOUND_AT_MOST, name_passage
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.tables.reasons import print_reason
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json, write_exactly
from lamella.views.reasons import view_reason
from lamella.views.recall import view_recall


def recall(
    *,
    chat: ChatName,
    query: Annotated[
        str, typer.Argument(help='Words, a path, a number or an id; "in quotes" what must be there exactly.')
    ],
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = FOUND_AT_MOST,
    excerpts: Annotated[bool, typer.Option("--excerpts", help="Show only the part that was found.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> int:
    """Find messages, attachments and tool results that the prompt no longer holds in full. Exit 1 if there are none.

    lamella recall garden "words of it"
    """
    with opened_chat(store, chat) as stored, told_if_slow(f"Searching {chat}"):
        found = stored.recall(query, limit=limit)
    if as_json:
        tell_json(view_recall(stored.id, query, found))
    else:
        for index, one in enumerate(found):
            _print(name_passage(one), one.excerpt if excerpts else one.passage.text, first=not index)
        if not found:
            tell("Nothing that left the prompt has these words.", err=True)
    return 0 if found else 1


def why(
    *,
    chat: ChatName,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An artifact's id, the end of its path, its title, or a message's id.")
    ],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Say why an artifact or a message is in the next prompt or is not, and what would bring it in.

    lamella why garden decisions/one-index.md
    """
    with opened_chat(store, chat) as stored:
        reason = stored.why(name)
    if as_json:
        tell_json(view_reason(chat, reason))
    else:
        print_reason(chat, reason, store=store)


def _print(place: str, text: str, *, first: bool) -> None:
    """Its place, then the original: into a file or pipe as it is, on a terminal so that it can do nothing to it."""
    tell(f"{'' if first else chr(10)}─── {show_line(place)}")
    write_exactly(f"{text}\n")
