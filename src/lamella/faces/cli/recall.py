"""``lamella recall``: find what left the prompt, and read it word for word; or what stands in any conversation."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamella.engine.dialogue.recalling import FOUND_AT_MOST, name_passage
from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption, StoreOption, list_names, opened_backend, opened_chat
from lamella.faces.cli.several import Findings
from lamella.faces.cli.terminal.lines import show_line, tell_time
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json, write_exactly
from lamella.views.recall import view_recall, view_recall_hits

if TYPE_CHECKING:
    from lamella import Found
    from lamella.holdings import ChatListing


def recall(
    *,
    chat: Annotated[
        str,
        typer.Argument(
            help="A conversation: its name, as `lamella chats list` shows it, or how it begins; its title. With --all "
            "there is none.",
            autocompletion=list_names,
        ),
    ],
    query: Annotated[
        str | None, typer.Argument(help='Words, a path, a number or an id; "in quotes" what must be there exactly.')
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Search every conversation, also what prompts hold.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many to show at most.")] = FOUND_AT_MOST,
    excerpts: Annotated[bool, typer.Option("--excerpts", help="Show only the part that was found.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> int:
    """Find messages, attachments and tool results that the prompt no longer holds in full. Exit 1 if there are none.

    lamella recall garden "words of it"

    lamella recall --all "words of it"
    """
    words = _choose_words(chat, query, every=every)
    if every:
        return _recall_everywhere(words, store, limit=limit, excerpts=excerpts, as_json=as_json)
    with opened_chat(store, chat) as stored, told_if_slow(f"Searching {chat}"):
        found = stored.recall(words, limit=limit)
    if as_json:
        tell_json(view_recall(stored.id, words, found))
    else:
        for index, one in enumerate(found):
            place = name_passage(one, tell=tell_time)
            _print(place, one.excerpt if excerpts else one.passage.text, first=not index)
        if not found:
            tell("Nothing that left the prompt has these words.", err=True)
    return 0 if found else 1


def _choose_words(chat: str, query: str | None, *, every: bool) -> str:
    if every and query is not None:
        raise UsageError("--all searches every conversation.", hint="Leave out the name of the conversation, or --all.")
    if not every and query is None:
        hint = 'As in: lamella recall garden "high tide", or lamella recall --all "high tide".'
        raise UsageError("There is no conversation to search, or there are no words to look for.", hint=hint)
    return chat if query is None else query


def _recall_everywhere(words: str, store: str | None, *, limit: int, excerpts: bool, as_json: bool) -> int:
    from lamella.engine.keeping.originals.everywhere import StoreRecaller  # only this needs it

    found: Findings[tuple[ChatListing, Found]] = Findings(store)
    with opened_backend(store) as backend, told_if_slow("Searching") as waiting:
        for listed, one in found.gather(StoreRecaller(backend.store).find(words, limit=limit)):
            if not as_json:
                with waiting.hidden():
                    place = f"{listed.name}, {name_passage(one, tell=tell_time)}"
                    _print(place, one.excerpt if excerpts else one.passage.text, first=not found)
    return found.tell_end(view_recall_hits(words, found), none="No conversation has these words.", as_json=as_json)


def _print(place: str, text: str, *, first: bool) -> None:
    """Its place, then the original: into a file or pipe as it is, on a terminal so that it can do nothing to it."""
    tell(f"{'' if first else chr(10)}─── {show_line(place)}")
    write_exactly(f"{text}\n")
