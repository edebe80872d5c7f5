"""``lamella ledger``: what each turn of a conversation was predicted to cost, what it did cost, and why."""

from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.tables.ledger import print_ledger
from lamella.faces.cli.terminal.telling import tell_json
from lamella.views.ledger import make_rows, view_ledger


def ledger(*, chat: ChatName, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Show, turn by turn, what was predicted, what the provider reported, whose doing a miss was, money and time.

    lamella ledger garden
    """
    with opened_chat(store, chat) as stored:
        rows = make_rows(stored.turns(), stored.ledger())
    if as_json:
        tell_json(view_ledger(stored.id, rows))
    else:
        print_ledger(stored.name, rows)
