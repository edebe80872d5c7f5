"""``lamella memory``: what is remembered beyond one conversation, to be read and edited."""

from typing import Annotated

import typer

from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.memory.lines import tell_facts, tell_kept
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_done, tell_json
from lamella.holdings import FactKind
from lamella.views.recall import view_fact, view_memory
from lamella.wiring import open_memory

memory_app = typer.Typer(name="memory", help="See and edit what is remembered beyond one conversation.")

_Text = Annotated[str, typer.Argument(metavar="TEXT", help="One fact, on one line.")]
_Which = Annotated[str, typer.Argument(metavar="FACT", help="A fact: its number, its id, or words that only it has.")]


@memory_app.command("list")
def list_facts(*, as_json: JsonOption = False) -> None:
    """Every fact and every line about a conversation, numbered, and the folder that they are in."""
    book = open_memory()
    facts = book.read()
    if as_json:
        tell_json(view_memory(str(book.folder), facts))
        return
    for line in tell_facts(facts, str(book.folder)):
        tell(line)


@memory_app.command()
def add(*, text: _Text, as_json: JsonOption = False) -> None:
    """Remember a fact. Conversations that are opened from now on have it in their prompts."""
    fact, is_new = open_memory().add(text)
    line = f"Remembered{'' if is_new else ' already'}: {show_line(fact.text)}"
    tell_done(line, view_fact(fact, new=is_new), as_json=as_json)


@memory_app.command()
def remove(*, fact: _Which, as_json: JsonOption = False) -> None:
    """Take a fact out."""
    gone = open_memory().remove(fact)
    tell_done(f"No longer remembered: {show_line(gone.text)}", view_fact(gone, removed=True), as_json=as_json)


@memory_app.command()
def edit(*, fact: _Which, text: _Text, as_json: JsonOption = False) -> None:
    """Put another text in place of a fact. Its file can be edited as well: `lamella memory list` says where it is."""
    changed = open_memory().edit(fact, text)
    tell_done(f"Remembered instead: {show_line(changed.text)}", view_fact(changed), as_json=as_json)


@memory_app.command()
def keep(*, chat: ChatName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Remember what a conversation was about, on one line: in words of whoever the setting summarizer names."""
    with opened_chat(store, chat) as stored, told_if_slow(f"Putting {chat} on a line"):
        stored.check_summarizer()
        line = stored.tell_talk()
        fact, _ = open_memory().add(line.text, kind=FactKind.RECENT, chat=stored.id)
    tell_done(tell_kept(line, fact), view_fact(fact), as_json=as_json)
