"""``lamella recall``: find text that left the prompt, in one conversation or in all."""

from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.access import JsonOption, StoreOption, complete_chat_names, open_cli_backend, open_conversation
from lamella.cli.batch import BatchResults
from lamella.cli.output import escape_line, format_time, print_json, print_text, show_if_slow, write_exactly
from lamella.conversation.recall import DEFAULT_HITS, describe_passage
from lamella.errors import UsageError
from lamella.schemas.compaction import recall_everywhere_to_json, recall_to_json

if TYPE_CHECKING:
    from lamella import RecallHit
    from lamella.ports import ConversationSummary


def recall(
    *,
    chat: Annotated[
        str,
        typer.Argument(
            help="Conversation name, the unique start of a name, or a title. Leave it out with --all.",
            autocompletion=complete_chat_names,
        ),
    ],
    query: Annotated[str | None, typer.Argument(help='Words, "exact phrase", a path, a number or an id.')] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Search all conversations, including messages still in the prompt.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = DEFAULT_HITS,
    excerpts: Annotated[bool, typer.Option("--excerpts", help="Show only the matching part.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> int:
    """Find text that is no longer in the prompt.

    Searches messages, attachments and tool results. Exits with 1 if nothing is found.

    lamella recall garden "words of it"

    lamella recall --all "words of it"
    """
    words = _get_query(chat, query, searches_all=every)
    if every:
        return _recall_everywhere(words, store, limit=limit, excerpts=excerpts, as_json=as_json)
    with open_conversation(store, chat) as conversation_log, show_if_slow(f"Searching {chat}"):
        found = conversation_log.recall(words, limit=limit)
    if as_json:
        print_json(recall_to_json(conversation_log.id, words, found))
    else:
        for index, one in enumerate(found):
            location = describe_passage(one, format_time=format_time)
            _print_passage(location, one.excerpt if excerpts else one.passage.text, is_first=not index)
        if not found:
            print_text("No matches outside the prompt.", err=True)
    return 0 if found else 1


def _get_query(chat: str, query: str | None, *, searches_all: bool) -> str:
    if searches_all and query is not None:
        raise UsageError("Use either --all or a conversation name, not both.", hint="Leave one of them out.")
    if not searches_all and query is None:
        hint = 'Example: lamella recall garden "high tide", or lamella recall --all "high tide"'
        raise UsageError("Missing conversation or search words.", hint=hint)
    return chat if query is None else query


def _recall_everywhere(words: str, store: str | None, *, limit: int, excerpts: bool, as_json: bool) -> int:
    from lamella.conversation.engine import StoreSearch  # only --all needs it

    found: BatchResults[tuple[ConversationSummary, RecallHit]] = BatchResults(store)
    with open_cli_backend(store) as backend, show_if_slow("Searching") as waiting:
        for listed, one in found.collect(StoreSearch(backend.store).search(words, limit=limit)):
            if not as_json:
                with waiting.hidden():
                    location = f"{listed.name}, {describe_passage(one, format_time=format_time)}"
                    _print_passage(location, one.excerpt if excerpts else one.passage.text, is_first=not found)
    return found.print_results(
        recall_everywhere_to_json(words, found), empty_message="No conversation contains these words.", as_json=as_json
    )


def _print_passage(position: str, text: str, *, is_first: bool) -> None:
    """Print where a passage is, then its original text: unchanged into a file or pipe, escaped on a terminal."""
    print_text(f"{'' if is_first else chr(10)}─── {escape_line(position)}")
    write_exactly(f"{text}\n")
