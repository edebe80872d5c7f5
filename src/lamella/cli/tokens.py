"""``lamella tokens``: create, list and remove access tokens for the server."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lamella.cli.access import JsonOption
from lamella.cli.output import print_json, print_result, print_text
from lamella.errors import UsageError
from lamella.schemas.catalog import CreatedTokenJson, RemovedTokenJson, TokenJson, TokenListJson
from lamella.wiring import AccessScope, open_token_file

tokens_app = typer.Typer(name="tokens", help="Create, list and revoke access tokens for the server.")
_NameArgument = Annotated[str, typer.Argument(help="Name of the token in lists and logs.")]


@tokens_app.command("list")
def list_access_tokens(*, as_json: JsonOption = False) -> None:
    """List tokens by name; only their hashes are stored."""
    kept = open_token_file().read()
    if as_json:
        shown = [
            TokenJson(name=one.name, scope=one.scope.value, owner=one.owner or None, since=one.since) for one in kept
        ]
        print_json(TokenListJson(tokens=shown))
        return
    if not kept:
        print_text("No tokens yet. Create one with `lamella tokens add NAME`.")
    for one in kept:
        print_text(f"{one.name}  {one.scope}  {one.owner or 'all conversations'}  since {one.since}")


@tokens_app.command("add")
def add_token(
    *,
    name: _NameArgument,
    scope: Annotated[
        AccessScope, typer.Option(help="What the token may do; each scope includes the ones before it.")
    ] = AccessScope.CHAT,
    owner: Annotated[
        str | None,
        typer.Option(help="Owner whose conversations the token can read.", show_default="everyone's"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create an access token. It is shown once; only its hash is stored.

    lamella tokens add laptop --owner ana
    """
    book = open_token_file()
    since = f"{datetime.now(UTC):%Y-%m-%d}"
    token = book.add(name, owner=owner or "", scope=scope, since=since)
    body = CreatedTokenJson(name=name, scope=scope.value, owner=owner or None, since=since, token=token)
    print_result(token, body, as_json=as_json)


@tokens_app.command("remove")
def remove_token(*, name: _NameArgument, as_json: JsonOption = False) -> None:
    """Revoke a token, also on a running server."""
    if not open_token_file().remove(name):
        raise UsageError(f"Token not found: {name}", hint="See: lamella tokens list")
    print_result(f"Token revoked: {name}", RemovedTokenJson(removed=name), as_json=as_json)
