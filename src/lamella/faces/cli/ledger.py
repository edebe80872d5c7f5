"""``lamella ledger``: what each turn of a conversation was predicted to cost, what it did cost, and why."""

import json

import typer

from lamella.faces.cli.ledger_json import ledger_body
from lamella.faces.cli.ledger_pages import read_pages
from lamella.faces.cli.ledger_table import print_ledger
from lamella.faces.cli.opened import ChatName, JsonOption, StoreOption, opened_chat


def ledger(*, chat: ChatName, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Show, turn by turn, what was predicted, what the provider reported, whose doing a miss was, money and time.

    lamella ledger garden
    """
    with opened_chat(store, chat) as stored:
        pages = read_pages(stored)
    if as_json:
        typer.echo(json.dumps(ledger_body(chat, pages), ensure_ascii=False))
    else:
        print_ledger(chat, pages)
