"""``lamella store``: migrate, verify, measure and copy the database of conversations."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from lamella.cli.access import JsonOption, StoreOption, format_command, open_cli_repository
from lamella.cli.output import escape_to_short_line, format_count, print_json, print_result, print_text, show_if_slow
from lamella.errors import UsageError
from lamella.schemas.conversations import (
    CopiedConversationJson,
    CopiedStoreJson,
    SchemaVersionJson,
    problems_to_json,
    stats_to_json,
)
from lamella.wiring import copy_conversations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamella.ports import StoreProblem

_DAMAGE_HINT = (
    "Restore the database from a backup. Without one, `lamella store copy --from … --to …` saves the conversations that "
    "are not damaged, and `lamella chats delete` removes a damaged one."
)
_REMAINING_DATA_HINT = "Delete it again: `lamella chats delete` removes what is left."

store_app = typer.Typer(name="store", help="Migrate, verify, measure and copy the database.")


@store_app.command()
def migrate(*, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Update the database schema and print its version.

    Every command that opens the database updates the schema too.
    """
    with open_cli_repository(store, create=True) as conversations:
        schema = conversations.stats().schema
    print_result(f"Schema version: {schema}", SchemaVersionJson(schema=schema), as_json=as_json)


@store_app.command()
def stats(*, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show the size of the database."""
    with open_cli_repository(store) as conversations:
        found = conversations.stats()
    if as_json:
        print_json(stats_to_json(found))
        return
    for name, value in asdict(found).items():
        print_text(f"{name.replace('_', ' '):<14}{value:>16,}")


@store_app.command()
def verify(
    *,
    chat: Annotated[str | None, typer.Argument(help="Conversation name or title.", show_default="all")] = None,
    erased: Annotated[
        str | None,
        typer.Option(
            metavar="CHAT", help="Check that a deleted conversation, or deleted attachments of one, left nothing."
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Rebuild the list of conversations from their events where they differ."),
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> int:
    """Check every hash and id, and print one line per problem.

    Exits with 1 if a problem remains.
    """
    if repair and erased:
        raise UsageError("Use either --repair or --erased, not both.", hint="Leave one of them out.")
    with open_cli_repository(store) as conversations, show_if_slow("Verifying") as waiting:
        key = None if chat is None else conversations.resolve_conversation(chat).conversation
        found = conversations.verify_erased(conversations.resolve_erased_key(erased)) if erased else None
        damages = list(conversations.verify(key) if found is None else found)
        names = {listed.conversation: listed.name for listed in conversations.list_conversations()}
        repaired: list[str] = []
        with waiting.hidden():
            _print_problems(damages, names)
        if repair and damages:
            repaired = conversations.repair(damages)
            with waiting.hidden():
                print_text(f"repaired: {format_count(len(repaired), 'conversation')}.", err=as_json)
            damages = list(conversations.verify(key)) if repaired else damages
            with waiting.hidden():
                _print_problems(damages if repaired else [], names)
    print_result(_format_verdict(damages, erased), problems_to_json(damages, names, repaired=repaired), as_json=as_json)
    if any(damage.is_repairable for damage in damages) and not repair:
        again = format_command("store verify", repair=True, store=store)
        print_text(f"To repair: {again}", err=as_json)
    if any(not damage.is_repairable for damage in damages):
        print_text(f"hint: {_REMAINING_DATA_HINT if erased else _DAMAGE_HINT}", err=True)
    return 1 if damages else 0


def _format_verdict(problems: "Sequence[StoreProblem]", erased: str | None) -> str:
    if problems:
        return f"damaged: {format_count(len(problems), 'problem')}."
    subject = (
        f"nothing is left of the deleted data of {escape_to_short_line(erased)}"
        if erased
        else "every hash and id is correct"
    )
    return f"verified: {subject}."


def _print_problems(problems: "Sequence[StoreProblem]", names: Mapping[str, str]) -> None:
    for damage in problems:
        where = "store" if damage.conversation is None else names.get(damage.conversation, damage.conversation)
        print_text(
            f"{escape_to_short_line(where)}  {damage.location}: {escape_to_short_line(damage.description)}", err=True
        )


@store_app.command()
def copy(
    *,
    source: Annotated[str, typer.Option("--from", help="Database URL to copy from.")],
    target: Annotated[str, typer.Option("--to", help="Database URL to copy to.")],
    as_json: JsonOption = False,
) -> int:
    """Copy all conversations to another database.

    Conversations that exist there are extended. One that has diverged is reported and not changed.
    """
    diverged = False
    copied: list[CopiedConversationJson] = []
    with show_if_slow("Copying") as waiting:
        for name, outcome in copy_conversations(source, target):
            diverged |= outcome in ("diverged", "damaged")
            copied.append(CopiedConversationJson(name=name, outcome=outcome))
            if not as_json:
                with waiting.hidden():
                    print_text(f"{outcome}  {escape_to_short_line(name)}")
    if as_json:
        print_json(CopiedStoreJson(conversations=copied))
    return 1 if diverged else 0
