"""``lamella rules``: the user's standing wishes of a conversation, with where each was said; added and removed."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from lamella.engine.dialogue.reading.rules import find_rule
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import UsageError
from lamella.faces.cli.access import ChatName, JsonOption, StoreOption, opened_chat
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell, tell_json
from lamella.holdings import Rule
from lamella.views.recall import view_rules

NONE_YET = "No rules: nothing was said about how to behave from now on, and none was added."


def rules(
    *,
    chat: ChatName,
    add: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="A rule that holds from the next turn on.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="A rule that no longer does: its id, number or words.")
    ] = None,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """List the rules of a conversation: what its user wants done from now on. They stay, whatever is compacted.

    lamella rules garden

    lamella rules garden --add "Answer in one sentence."
    """
    if any(not one.strip() for one in (*(add or ()), *(remove or ()))):
        raise UsageError("A rule has no words.", hint='As in: lamella rules garden --add "Answer in one sentence."')
    with opened_chat(store, chat) as stored:
        _change(stored, add or [], remove or [])
        found = stored.rules()
    if as_json:
        tell_json(view_rules(stored.id, found))
    else:
        tell("\n".join(tell_rules(found)))


def _change(stored: StoredChat, add: Sequence[str], remove: Sequence[str]) -> None:
    # Numbers mean the list as it was shown: what is removed first is named before it is.
    gone = [find_rule(one, stored.rules()).text for one in remove]
    for text in gone:
        stored.remove_rule(text)
    for text in add:
        stored.add_rule(text)


def tell_rules(rules: Sequence[Rule]) -> Iterator[str]:
    """A line for each, with its number and its source."""
    if not rules:
        yield NONE_YET
    for number, one in enumerate(rules, start=1):
        place = f"turn {one.turn}" if one.message else "from the next turn on"
        added = ", added by hand" if one.by == "user" else ""
        yield f"{number:>3}  {one.id}  {show_line(one.text)}  ({place}{added})"
