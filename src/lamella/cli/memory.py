"""Format remembered facts as numbered lines with their origin."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.cli.access import ChatArgument, JsonOption, StoreOption, open_conversation
from lamella.cli.output import escape_to_short_line, print_json, print_result, print_text, show_if_slow
from lamella.ports import Fact, FactKind
from lamella.schemas.compaction import added_fact_to_json, fact_to_json, memory_to_json, removed_fact_to_json
from lamella.wiring import open_memory

if TYPE_CHECKING:
    from lamella.conversation.memory import OneLineSummary

_KIND_SUFFIXES = {FactKind.SAVED: "", FactKind.NOTED: " (saved by a model)", FactKind.RECENT: " (a conversation)"}


def format_facts(facts: Sequence[Fact], folder: str) -> Iterator[str]:
    """Yield one numbered line per fact, then the folder that contains them."""
    for number, fact in enumerate(facts, start=1):
        yield f"{number:>3}  {escape_to_short_line(fact.text)}{_KIND_SUFFIXES[fact.kind]}"
    if not facts:
        yield "No facts yet."
    yield f"Folder: {escape_to_short_line(folder)}"


def format_saved_line(line: "OneLineSummary", fact: Fact) -> str:
    """Return the saved line about a conversation, its author, and why the model did not write it if it did not."""
    saved = (
        f"Saved{f' (by {escape_to_short_line(line.author)})' if line.author else ''}: {escape_to_short_line(fact.text)}"
    )
    return (
        f"{saved}\nNot written by a model: {escape_to_short_line(line.rejection_reason)}"
        if line.rejection_reason
        else saved
    )


# ``lamella memory``: read and edit the facts that are remembered beyond one conversation.

memory_app = typer.Typer(name="memory", help="List and edit facts that new conversations know.")

_TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="One fact, on one line.")]
_FactArgument = Annotated[
    str, typer.Argument(metavar="FACT", help="Fact number, id, or words that only this fact contains.")
]


@memory_app.command("list")
def list_facts(*, as_json: JsonOption = False) -> None:
    """List the saved facts and the folder with their files."""
    book = open_memory()
    facts = book.read()
    if as_json:
        print_json(memory_to_json(str(book.folder), facts))
        return
    for line in format_facts(facts, str(book.folder)):
        print_text(line)


@memory_app.command()
def add(*, text: _TextArgument, as_json: JsonOption = False) -> None:
    """Save a fact for the prompts of new conversations."""
    fact, is_new = open_memory().add(text)
    line = f"{'Saved' if is_new else 'Already saved'}: {escape_to_short_line(fact.text)}"
    print_result(line, added_fact_to_json(fact, is_new=is_new), as_json=as_json)


@memory_app.command()
def remove(*, fact: _FactArgument, as_json: JsonOption = False) -> None:
    """Remove a fact."""
    removed = open_memory().remove(fact)
    print_result(f"Removed: {escape_to_short_line(removed.text)}", removed_fact_to_json(removed), as_json=as_json)


@memory_app.command()
def edit(*, fact: _FactArgument, text: _TextArgument, as_json: JsonOption = False) -> None:
    """Change the text of a fact.

    You can also edit its file; `lamella memory list` prints the folder.
    """
    changed = open_memory().edit(fact, text)
    print_result(f"Changed: {escape_to_short_line(changed.text)}", fact_to_json(changed), as_json=as_json)


@memory_app.command("keep")
def save_summary(*, chat: ChatArgument, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Save a one-line summary of a conversation as a fact.

    The model of the setting `summarizer` writes it.
    """
    with open_conversation(store, chat) as conversation_log, show_if_slow(f"Summarizing {chat}"):
        conversation_log.check_summarizer_is_trusted()
        line = conversation_log.summarize_in_one_line_with_author()
        fact, _ = open_memory().add(line.text, kind=FactKind.RECENT, conversation_key=conversation_log.id)
    print_result(format_saved_line(line, fact), fact_to_json(fact), as_json=as_json)
