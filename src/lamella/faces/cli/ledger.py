"""``lamella ledger`` and ``lamella why``: what each turn was predicted to cost and did cost, and why it was so."""

from typing import Annotated

import typer

from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.tables.ledger import print_ledger
from lamella.faces.cli.tables.reasons import print_reason
from lamella.faces.cli.terminal.telling import tell_json
from lamella.views.ledger import make_rows, view_ledger
from lamella.views.reasons import view_reason


def ledger(*, chat: ChatName, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Show, turn by turn, what was predicted, what the provider reported, whose doing a miss was, money and time.

    lamella ledger garden
    """
    with opened_chat(store, chat) as stored:
        rows, doubts = make_rows(stored.turns(), stored.ledger()), stored.doubts()
    if as_json:
        tell_json(view_ledger(stored.id, rows, doubts))
    else:
        print_ledger(stored.name, rows, doubts)


def why(
    *,
    chat: ChatName,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="An artifact's id, the end of its path, its title, or a message's id.")
    ],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Say why an artifact or a message is in the next prompt or is not, and what would bring it in.

    lamella why garden decisions/one-index.md
    """
    with opened_chat(store, chat) as stored:
        reason = stored.why(name)
    if as_json:
        tell_json(view_reason(stored.id, reason))
    else:
        print_reason(stored.name, reason, store=store)
