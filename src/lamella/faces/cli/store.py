"""``lamella store``: the database behind the conversations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from lamella.errors import UsageError
from lamella.faces.cli.access import JsonOption, StoreOption, name_command, opened
from lamella.faces.cli.terminal.lines import show_line, tell_count
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell, tell_done, tell_json
from lamella.views.outcomes import view_copied, view_verified
from lamella.views.stores import view_stats
from lamella.wiring import copy_conversations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lamella.engine.keeping.conversations import Conversations
    from lamella.holdings import Damage

store_app = typer.Typer(name="store", help="Migrate, verify, measure and copy the store of conversations.")


@store_app.command()
def migrate(*, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Bring the store to this version's schema. Opening does this by itself; this says what version it has."""
    with opened(store, create=True) as conversations:
        schema = conversations.stats().schema
    tell_done(f"The store has schema {schema}.", {"schema": schema}, as_json=as_json)


@store_app.command()
def stats(*, store: StoreOption = None, as_json: JsonOption = False) -> None:
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
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Derive again what lists show of conversations, where their events say otherwise."
        ),
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Derive every hash and id again. Exit 1 and one line for each damage, if there is any that is not repaired."""
    if repair and erased:
        raise UsageError("--repair excludes --erased.", hint="Leave one of them out.")
    with opened(store) as conversations, told_if_slow("Verifying") as waiting:
        key = None if chat is None else conversations.find(chat).conversation
        damages = list(_verify_erased(conversations, erased) if erased else conversations.verify(key))
        names = {listed.conversation: listed.name for listed in conversations.list_alive()}
        repaired: list[str] = []
        with waiting.hidden():
            _tell_damages(damages, names)
        if repair and damages:
            repaired = conversations.repair(damages)
            with waiting.hidden():
                tell(f"repaired: {tell_count(len(repaired), 'conversation')}.", err=as_json)
            damages = list(conversations.verify(key)) if repaired else damages
            with waiting.hidden():
                _tell_damages(damages if repaired else [], names)
    tell_done(_tell_verdict(damages, erased), view_verified(damages, names, repaired=repaired), as_json=as_json)
    if any(damage.derived for damage in damages) and not repair:
        again = name_command("store verify", repair=True, store=store)
        tell(f"What its events tell can be repaired: {again}", err=as_json)
    return 1 if damages else 0


def _tell_verdict(damages: "Sequence[Damage]", erased: str | None) -> str:
    if damages:
        return f"damaged: {tell_count(len(damages), 'finding')}."
    subject = f"nothing is left of what was erased in {show_line(erased)}" if erased else "every hash and id is true"
    return f"verified: {subject}."


def _verify_erased(conversations: "Conversations", words: str) -> "Iterator[Damage]":
    return conversations.verify_erased(conversations.find_erased(words))


def _tell_damages(damages: "Sequence[Damage]", names: Mapping[str, str]) -> None:
    for damage in damages:
        where = "store" if damage.conversation is None else names.get(damage.conversation, damage.conversation)
        tell(f"{show_line(where)}  {damage.place}: {show_line(damage.what)}", err=True)


@store_app.command()
def copy(
    *,
    source: Annotated[str, typer.Option("--from", help="The store to copy.")],
    target: Annotated[str, typer.Option("--to", help="The store to copy into.")],
    as_json: JsonOption = False,
) -> int:
    """Copy every conversation. Those already there are extended; a diverged one is reported and left alone."""
    diverged = False
    outcomes: list[tuple[str, str]] = []
    with told_if_slow("Copying") as waiting:
        for name, outcome in copy_conversations(source, target):
            diverged |= outcome in ("diverged", "damaged")
            outcomes.append((name, outcome))
            if not as_json:
                with waiting.hidden():
                    tell(f"{outcome}  {show_line(name)}")
    if as_json:
        tell_json(view_copied(outcomes))
    return 1 if diverged else 0
