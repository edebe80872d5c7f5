"""``lamella tokens``: who may come in over a network."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.serving.tokens import view_token, view_tokens
from lamella.wiring import TokenScope, open_tokens

tokens_app = typer.Typer(name="tokens", help="Give out tokens for the server, list them and take them back.")
_Name = Annotated[str, typer.Argument(help="What the token is called, to be known by in lists and logs.")]


@tokens_app.command("list")
def list_tokens(*, as_json: JsonOption = False) -> None:
    """Every token by its name; the tokens themselves are kept nowhere."""
    kept = open_tokens().read()
    if as_json:
        tell_json(view_tokens(kept))
        return
    if not kept:
        tell("No tokens yet. Give one out with `lamella tokens add NAME`.")
    for one in kept:
        tell(f"{one.name}  {one.scope}  {one.owner or 'sees every conversation'}  since {one.since}")


@tokens_app.command("add")
def add_token(
    *,
    name: _Name,
    scope: Annotated[TokenScope, typer.Option(help="What it may do; each includes those before it.")] = TokenScope.CHAT,
    owner: Annotated[
        str | None,
        typer.Option(help="Whose conversations it sees; else as many see as have none: all.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Give out a token. It is shown once; what is kept of it does not tell it.

    lamella tokens add laptop --owner ana
    """
    book = open_tokens()
    token = book.add(name, owner=owner or "", scope=scope, since=f"{datetime.now(UTC):%Y-%m-%d}")
    if as_json:
        tell_json({**view_token(next(one for one in book.read() if one.name == name)), "token": token})
        return
    tell(token)


@tokens_app.command("remove")
def remove_token(*, name: _Name, as_json: JsonOption = False) -> None:
    """Take a token back; it counts at once, also for a server that runs."""
    if not open_tokens().remove(name):
        raise UsageError(f"There is no token {name}.", hint="See: lamella tokens list.")
    if as_json:
        tell_json({"removed": name})
    else:
        tell(f"{name} lets nobody in any more.")
