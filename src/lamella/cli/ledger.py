"""``lamella ledger`` and ``lamella why``: what turns cost, and why something is or is not in the prompt."""

from typing import Annotated

import typer

from lamella.cli.access import (
    ChatArgument,
    JsonOption,
    StoreOption,
    complete_chat_names,
    open_cli_backend,
    open_conversation,
)
from lamella.cli.ledger_tables import print_ledger, print_shared_prefixes
from lamella.cli.output import print_json
from lamella.cli.prompt_tables import print_explanation
from lamella.errors import UsageError
from lamella.schemas.ledger import build_ledger_rows, ledger_to_json, shared_prefixes_to_json
from lamella.schemas.prompts import explanation_to_json

_OptionalChatArgument = Annotated[
    str | None,
    typer.Argument(
        help="Conversation name, the unique start of a name, or a title.", autocompletion=complete_chat_names
    ),
]
_PrefixesOption = Annotated[
    bool,
    typer.Option("--prefixes", help="Show the system prompts that conversations share, and how long they are cached."),
]


def ledger(
    *,
    chat: _OptionalChatArgument = None,
    prefixes: _PrefixesOption = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show cost, cache hits and misses, and timing of each turn.

    lamella ledger garden
    """
    if prefixes:
        _print_prefixes(store, as_json=as_json)
        return
    if chat is None:
        raise UsageError(
            "No conversation is named.",
            hint="Name one, or add --prefixes. `lamella chats list` lists the conversations.",
        )
    with open_conversation(store, chat) as conversation_log:
        rows, doubts = (
            build_ledger_rows(
                conversation_log.turns(),
                conversation_log.ledger(),
                conversation_log.receipts(),
                conversation_log.cache_misses(),
            ),
            conversation_log.profile_mismatches(),
        )
    if as_json:
        print_json(ledger_to_json(conversation_log.id, rows, doubts))
    else:
        print_ledger(conversation_log.name, rows, doubts)


def _print_prefixes(store: str | None, *, as_json: bool) -> None:
    with open_cli_backend(store) as backend:
        shared = backend.shared_prefixes
        found = [] if shared is None else shared.list_prefixes(at=backend.clock.now())
    if as_json:
        print_json(shared_prefixes_to_json(found))
    else:
        print_shared_prefixes(found)


def why(
    *,
    chat: ChatArgument,
    name: Annotated[str, typer.Argument(metavar="ID", help="Attachment id, end of its path, title, or a message id.")],
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Explain why an item is, or is not, in the prompt, and how to include it.

    lamella why garden decisions/one-index.md
    """
    with open_conversation(store, chat) as conversation_log:
        reason = conversation_log.why(name)
    if as_json:
        print_json(explanation_to_json(conversation_log.id, reason))
    else:
        print_explanation(conversation_log.name, reason, store=store)
