"""``lamella trust``: places that may be used although only somebody else's words name them, and being asked for one."""

import json
import sys
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from lamella.errors import UntrustedError, UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.terminal.lines import show_command, show_line
from lamella.wiring import FIELDS, add_trust, name_place, open_trust

_Result = TypeVar("_Result")

trust_app = typer.Typer(name="trust", help="Say which places may be used, whoever names them.")

_Field = Annotated[str, typer.Argument(metavar="FIELD", help=f"What names it: {' or '.join(FIELDS)}.")]
_Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="A model as --model takes it, a provider such as anthropic, or a store.")
]


@trust_app.command("list")
def list_places(*, as_json: JsonOption = False) -> None:
    """Every place that you said yes to, or named on the command line, the oldest first."""
    book = open_trust()
    rows = [{"field": one.field, "place": one.place, "since": one.since} for one in book.read()]
    if as_json:
        typer.echo(json.dumps({"file": str(book.path), "trusted": rows}, ensure_ascii=False))
        return
    for row in rows:
        typer.echo(f"{show_line(row['field']):<8}{show_line(row['since']):<12}{show_line(row['place'])}")
    if not rows:
        typer.echo("Nothing yet. What you name yourself needs no trust.")


@trust_app.command()
def add(*, field: _Field, place: _Place) -> None:
    """Let a place be used, whoever names it."""
    named = name_place(field, place)
    new = add_trust(field, named)
    typer.echo(f"{show_line(named)} is trusted{'' if new else ' already'}.")


@trust_app.command()
def remove(*, field: _Field, place: _Place) -> None:
    """Take it back: it is asked about again when only somebody else names it."""
    named = name_place(field, place)
    if not open_trust().remove(field, named):
        raise UsageError(f"{named} is not trusted.", hint="See `lamella trust list`.")
    typer.echo(f"{show_line(named)} is not trusted any more.")


def go_on_trusted(refused: UntrustedError, run: Callable[[], _Result]) -> _Result:
    """Do what a place was refused for, once the person at the terminal says yes to it; else it stays refused.

    Places are looked at before anything is done there, so it is safe to begin anew.
    """
    while True:
        if refused.settled or not _ask(refused):
            refused.settled = True
            raise refused
        try:
            return run()
        except UntrustedError as another:
            refused = another


def _ask(refused: UntrustedError) -> bool:
    """Whether the person says yes, once and for good; through a pipe nobody is asked."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return False
    typer.echo(show_line(refused.message), err=True)
    if not typer.confirm(f"Use {show_line(refused.place)} from now on?", err=True):
        return False
    add_trust(refused.field, refused.place)
    back = show_command("trust", "remove", refused.field, refused.place)
    typer.echo(f"Trusted. Take it back with: {back}", err=True)
    return True
