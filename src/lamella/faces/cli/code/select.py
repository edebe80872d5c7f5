"""``lamella code select``: files of a repository, chosen for a question to fit a budget of tokens."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.engine.checks import check_text
from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption, StoreOption
from lamella.faces.cli.code.touched import find_touched
from lamella.faces.cli.tables.selection import print_left_out, print_selection
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json, write_exactly
from lamella.views.code.selections import view_selection
from lamella.wiring import BUDGET, MOST_TOKENS, attach_code, read_sent, select_code, select_files

if TYPE_CHECKING:
    from lamella.holdings import CodeSelection


def select(
    *,
    path: Annotated[
        Path | None, typer.Argument(help="The folder to choose from; else what --files gives.", show_default=False)
    ] = None,
    question: Annotated[str, typer.Option("--question", metavar="TEXT", help="What the files are for.")],
    budget: Annotated[
        int, typer.Option(min=1, max=MOST_TOKENS, help="How many tokens the selection may have as it is rendered.")
    ] = BUDGET,
    touched: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="A file that the talk is about already; may be repeated."),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Files with their contents as JSON; - is standard input.", show_default=False
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(help="Count as this model does.", show_default=False)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each score is made of, and why files are left out.")
    ] = False,
    text: Annotated[bool, typer.Option("--text", help="Print the selection as a model would read it.")] = False,
    chat: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Attach it to the next turn of this conversation.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Choose files for a question: in full, as skeletons or by name, never more tokens than the budget.

    lamella code select . --question "Where are retries decided?" --explain
    """
    asked = check_text(question, "question")
    if not asked.strip():
        raise UsageError("There is no question to choose for.", hint='Give words, as in --question "Where is it?".')
    if (path is None) == (files is None):
        raise UsageError("Name a folder, or files with --files.", hint="As in lamella code select . --question TEXT.")
    known = (*(touched or ()), *find_touched(chat, path, store=store))
    if files is not None:
        selection = select_files(read_sent(files), asked, budget=budget, touched=known, model=model)
    elif path is not None:
        with told_if_slow(f"Reading {path}") as waiting:
            selection = select_code(path, asked, budget=budget, touched=known, model=model, tell=waiting.count)
    if chat is not None:
        _attach(selection, chat, store=store, as_json=as_json)
        return
    _show(selection, as_json=as_json, text=text, explain=explain)


def _show(selection: "CodeSelection", *, as_json: bool, text: bool, explain: bool) -> None:
    if as_json:
        tell_json(view_selection(selection, explain=explain))
        return
    if text:
        write_exactly(selection.text)
    else:
        print_selection(selection, explain=explain)
        if explain:
            print_left_out(selection)
    _tell(selection)


def _tell(selection: "CodeSelection") -> None:
    for one in selection.told:
        tell(show_line(one), err=True)


def _attach(selection: "CodeSelection", chat: str, *, store: str | None, as_json: bool) -> None:
    # Only those who attach need conversations, which take long to import.
    from lamella.engine.dialogue.ask import Ask
    from lamella.faces.cli.library.doing import do

    _tell(selection)
    attached = tuple(one.attachment() for one in attach_code(selection))
    do(chat, Ask(text="", attach=attached), store=store, as_json=as_json, create=True)
