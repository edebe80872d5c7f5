"""``lamella recall``: find text that left the prompt, in one conversation or in all."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.access import JsonOption, StoreOption, complete_chat_names, open_cli_backend, open_conversation
from lamella.cli.batch import SearchHitCollector
from lamella.cli.output import escape_to_short_line, format_time, print_json, print_text, show_if_slow, write_unwrapped
from lamella.conversation.recall import DEFAULT_RECALL_TOKENS, describe_passage
from lamella.errors import UsageError
from lamella.schemas.compaction import recall_everywhere_to_json, recall_to_json

if TYPE_CHECKING:
    from lamella import RecallHit
    from lamella.ports import ConversationListItem


class HitForm(StrEnum):
    """How much is printed of a hit."""

    RECALLED = "recalled"
    WHOLE = "whole"
    EXCERPT = "excerpt"


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
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of results.")] = None,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum number of tokens of all results.")
    ] = DEFAULT_RECALL_TOKENS,
    whole: Annotated[bool, typer.Option("--whole", help="Show the whole text of each result.")] = False,
    excerpts: Annotated[bool, typer.Option("--excerpts", help="Show only the matching part.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> int:
    """Find text that is no longer in the prompt.

    Searches messages, attachments and tool results. Long texts are shown by their best sentences, each result with the
    messages before and after it. Exits with 1 if nothing is found.

    lamella recall garden "words of it"

    lamella recall --all "words of it"
    """
    words = _get_query(chat, query, searches_all=every)
    form = HitForm.WHOLE if whole else HitForm.EXCERPT if excerpts else HitForm.RECALLED
    if every:
        return _recall_everywhere(words, store, limit=limit, max_tokens=max_tokens, form=form, as_json=as_json)
    with open_conversation(store, chat) as conversation_log, show_if_slow(f"Searching {chat}"):
        found = conversation_log.recall(words, limit=limit, max_tokens=max_tokens)
    if as_json:
        print_json(recall_to_json(conversation_log.id, words, found, whole=whole))
    else:
        for index, one in enumerate(found):
            print_hit(describe_passage(one, format_time=format_time), one, form, is_first=not index)
        if not found:
            print_text("Nothing found outside the prompt.", err=True)
    return 0 if found else 1


def _get_query(chat: str, query: str | None, *, searches_all: bool) -> str:
    if searches_all and query is not None:
        raise UsageError("Use either --all or a conversation name, not both.", hint="Leave one of them out.")
    if not searches_all and query is None:
        hint = 'Example: lamella recall garden "high tide", or lamella recall --all "high tide"'
        raise UsageError("Missing conversation or search words.", hint=hint)
    return chat if query is None else query


def _recall_everywhere(
    words: str, store: str | None, *, limit: int | None, max_tokens: int, form: "HitForm", as_json: bool
) -> int:
    from lamella.conversation.engine import StoreSearch  # only --all needs it

    found: SearchHitCollector[tuple[ConversationListItem, RecallHit]] = SearchHitCollector(store)
    with open_cli_backend(store) as backend, show_if_slow("Searching") as waiting:
        search = StoreSearch(backend.store, count=backend.adapters.counter.get_tokenizer(None).count)
        for listed, one in found.collect(search.search(words, limit=limit, max_tokens=max_tokens)):
            if not as_json:
                with waiting.hidden():
                    location = f"{listed.name}, {describe_passage(one, format_time=format_time)}"
                    print_hit(location, one, form, is_first=not found)
    return found.print_results(
        recall_everywhere_to_json(words, found, whole=form is HitForm.WHOLE),
        empty_message="Nothing found in any conversation.",
        as_json=as_json,
    )


def print_hit(position: str, hit: "RecallHit", form: HitForm = HitForm.RECALLED, *, is_first: bool) -> None:
    """Print where a hit is, then its text and the messages next to it.

    The text is unchanged in a file or pipe, and escaped on a terminal.
    """
    texts = {HitForm.RECALLED: hit.text, HitForm.WHOLE: hit.passage.text, HitForm.EXCERPT: hit.excerpt}
    part = f", part of {len(hit.passage.text):,} characters" if texts[form] != hit.passage.text else ""
    print_text(f"{'' if is_first else chr(10)}─── {escape_to_short_line(position)}{part}")
    write_unwrapped(f"{texts[form]}\n")
    for where, message in (("before", hit.before), ("after", hit.after)):
        if message is not None and form is not HitForm.EXCERPT:
            print_text(f"  ─ {where}: {escape_to_short_line(f'{message.passage.place}, {message.passage.role}')}")
            write_unwrapped(f"{message.text}\n")
