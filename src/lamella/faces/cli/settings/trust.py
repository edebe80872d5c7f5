"""``lamella trust``: places that may be used although only somebody else's words name them."""

from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.wiring import FIELDS, add_trust, name_place, open_trust

trust_app = typer.Typer(name="trust", help="Say which places may be used, whoever names them.")

_Field = Annotated[str, typer.Argument(metavar="FIELD", help=f"What names it: {' or '.join(FIELDS)}.")]
_Place = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="A model as --model takes it, a provider such as anthropic, a store, or the name of an MCP server.",
    ),
]


@trust_app.command("list")
def list_places(*, as_json: JsonOption = False) -> None:
    """Every place that you said yes to, or named and had an answer from, the oldest first."""
    book = open_trust()
    rows = [{"field": one.field, "place": one.place, "since": one.since} for one in book.read()]
    if as_json:
        tell_json({"file": str(book.path), "trusted": rows})
        return
    for row in rows:
        tell(f"{show_line(row['field']):<8}{show_line(row['since']):<12}{show_line(row['place'])}")
    if not rows:
        tell("Nothing yet. What you name yourself needs no trust.")


@trust_app.command()
def add(*, field: _Field, place: _Place, as_json: JsonOption = False) -> None:
    """Let a place be used, whoever names it."""
    named = name_place(field, place)
    new = add_trust(field, named)
    if as_json:
        tell_json({"field": field, "place": named, "trusted": True, "new": new})
        return
    tell(f"{show_line(named)} is trusted{'' if new else ' already'}.")


@trust_app.command()
def remove(*, field: _Field, place: _Place, as_json: JsonOption = False) -> None:
    """Take it back: it is asked about again when only somebody else names it."""
    named = name_place(field, place)
    if not open_trust().remove(field, named):
        raise UsageError(f"{named} is not trusted.", hint="See `lamella trust list`.")
    if as_json:
        tell_json({"field": field, "place": named, "trusted": False})
        return
    tell(f"{show_line(named)} is not trusted any more.")
