"""``lamella tools`` and ``lamella restore``: what models may call here, and taking back what one of them wrote."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.notes.search import VaultFolder
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, tell_done, tell_json
from lamella.views.notes import list_arguments, view_tools
from lamella.wiring import find_book, find_part, find_vault, open_workplace, open_writer, read_services


def tools(*, vault: VaultFolder = None, as_json: JsonOption = False) -> None:
    """List the tools that models may call here, by their names.

    lamella tools --vault examples/vault
    """
    services = read_services()
    book = find_book(services, find_part(services, talks=True))
    place = open_workplace(services, vault=_find_vault(vault), book=book)
    made = [tool.definition() for tool in place.make_tools(None)]
    if as_json:
        tell_json(view_tools(made))
        return
    for one in made:
        tell(f"{one.name}({', '.join(list_arguments(one))})")
        tell(f"    {show_line(one.description)}")


def restore(
    *,
    note: Annotated[str | None, typer.Argument(help="A note of the vault by its path; else the last one.")] = None,
    vault: VaultFolder = None,
    as_json: JsonOption = False,
) -> None:
    """Take back the last change that a model wrote to a note of the vault. Once more takes back the one before."""
    path, gone = open_writer(find_vault(vault), read_services()).restore(note)
    did = "was taken away; its text is kept with the backups" if gone else "is as it was before"
    tell_done(f"{show_line(path)} {did}.", {"path": path, "removed": gone}, as_json=as_json)


def _find_vault(named: Path | None) -> Path | None:
    """The vault that is meant, if any: without one there are fewer tools, and that is no mistake."""
    if named is not None:
        return named
    with suppress(UsageError):
        return find_vault(None)
    return None
