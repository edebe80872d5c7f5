"""``lamella show``: what is in the library of a conversation, and what each takes in the next turn."""

from datetime import UTC, datetime

from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.chat.options import VaultOption
from lamella.faces.cli.tables.cold import print_cold
from lamella.faces.cli.tables.library import print_library
from lamella.faces.cli.terminal.progress import told_if_slow
from lamella.faces.cli.terminal.telling import tell_json
from lamella.views.library import view_library


def show(*, chat: ChatName, vault: VaultOption = None, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """Show everything attached to a conversation: its form, tokens and age, whether a cache has it, what it costs.

    Where the cache is about to lapse or has, what the next message costs then.

    lamella show garden
    """
    with opened_chat(store, chat, vault=vault) as stored:
        now = datetime.now(UTC)
        with told_if_slow(f"Looking through {chat}"):
            rows, cold = stored.library(at=now), stored.cold(at=now)
        if as_json:
            tell_json(view_library(stored.id, rows, stored.commands, cold=cold))
        else:
            print_library(stored, rows)
            print_cold(cold, now=now)
