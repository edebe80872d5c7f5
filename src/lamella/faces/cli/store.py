"""``lamella store``: the database behind the conversations."""

from typing import Annotated

import typer

from lamella.faces.cli.access import StoreOption, opened
from lamella.faces.cli.terminal.lines import tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.views.stores import view_stats
from lamella.wiring import copy_conversations

store_app = typer.Typer(name="store", help="Migrate, verify, measure and copy the store of conversations.")


@store_app.command()
def migrate(*, store: StoreOption = None) -> None:
    """Bring the store to this version's schema. Opening does this by itself; this says what version it has."""
    with opened(store, create=True) as conversations:
        tell(f"The store has schema {conversations.stats().schema}.")


@store_app.command()
def stats(
    *, store: StoreOption = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """How much the store holds."""
    with opened(store) as conversations:
        found = view_stats(conversations.stats())
    if as_json:
        tell_json(found)
        return
    for name, value in found.items():
        tell(f"{name.replace('_', ' '):<14}{value:>16,}")


@store_app.command()
def verify(
    *,
    chat: Annotated[str | None, typer.Argument(help="One conversation; without it, all.")] = None,
    erased: Annotated[
        str | None,
        typer.Option(help="Prove that nothing is left of an erased conversation, or of what was erased in one."),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Derive every hash and id again. Exit 1 and one line for each damage, if there is any."""
    with opened(store) as conversations, told_if_slow("Verifying"):
        damages = list(conversations.verify_erased(erased) if erased else conversations.verify(chat))
    for damage in damages:
        tell(f"{damage.conversation or 'store'}  {damage.place}: {damage.what}", err=True)
    subject = f"nothing is left of what was erased in {erased}" if erased else "every hash and id is true"
    tell(f"verified: {subject}." if not damages else f"damaged: {tell_count(len(damages), 'finding')}.")
    return 1 if damages else 0


@store_app.command()
def copy(
    *,
    source: Annotated[str, typer.Option("--from", help="The store to copy.")],
    target: Annotated[str, typer.Option("--to", help="The store to copy into.")],
) -> int:
    """Copy every conversation. Those already there are extended; a diverged one is reported and left alone."""
    diverged = False
    with told_if_slow("Copying") as waiting:
        for name, outcome in copy_conversations(source, target):
            diverged |= outcome in ("diverged", "damaged")
            with waiting.hidden():
                tell(f"{outcome}  {name}")
    return 1 if diverged else 0
