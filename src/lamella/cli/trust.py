"""``lamella trust``: locations that may be used although the user did not name them in this command.

A project file or an imported conversation may name a model or a store; it is used only if it is trusted.
"""

from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.output import escape_to_short_line, print_json, print_result, print_text
from lamella.errors import UsageError
from lamella.schemas.catalog import TrustedPlaceJson, TrustListJson, TrustStateJson
from lamella.wiring import TRUST_FIELDS, add_trust, get_trust_key, open_trust_file

trust_app = typer.Typer(name="trust", help="Manage trusted models, servers and databases.")

_FieldArgument = Annotated[str, typer.Argument(metavar="FIELD", help=f"Kind of entry: {' or '.join(TRUST_FIELDS)}.")]
_LocationArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLACE",
        help="Model (as for --model), provider such as anthropic, database URL, or MCP server name.",
    ),
]


@trust_app.command("list")
def list_trusted(*, as_json: JsonOption = False) -> None:
    """List trusted entries, the oldest first."""
    book = open_trust_file()
    listed = book.read()
    if as_json:
        rows = [TrustedPlaceJson(field=one.field, place=one.place, since=one.since) for one in listed]
        print_json(TrustListJson(file=str(book.path), trusted=rows))
        return
    for one in listed:
        print_text(
            f"{escape_to_short_line(one.field):<8}{escape_to_short_line(one.since):<12}{escape_to_short_line(one.place)}"
        )
    if not listed:
        print_text("No entries. Models and stores that you name yourself are always allowed.")


@trust_app.command()
def add(*, field: _FieldArgument, place: _LocationArgument, as_json: JsonOption = False) -> None:
    """Trust a model, server or database, even if a project file names it."""
    named = get_trust_key(field, place)
    new = add_trust(field, named)
    body = TrustStateJson(field=field, place=named, trusted=True, new=new)
    print_result(f"{'Trusted' if new else 'Already trusted'}: {escape_to_short_line(named)}", body, as_json=as_json)


@trust_app.command()
def remove(*, field: _FieldArgument, place: _LocationArgument, as_json: JsonOption = False) -> None:
    """Remove an entry; Lamella asks again before it uses it."""
    named = get_trust_key(field, place)
    if not open_trust_file().remove(field, named):
        raise UsageError(f"Trusted entry not found: {named}", hint="See: lamella trust list")
    body = TrustStateJson(field=field, place=named, trusted=False)
    print_result(f"No longer trusted: {escape_to_short_line(named)}", body, as_json=as_json)
