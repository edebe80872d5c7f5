"""Rules inside a chat: what is to be done from now on, shown, added and removed."""

from collections.abc import Mapping

from lamella.errors import UsageError
from lamella.faces.cli.chat.input import choose_begun, choose_further
from lamella.faces.cli.chat.talk import TerminalChat
from lamella.faces.cli.library.rules import tell_rules
from lamella.faces.cli.terminal.lines import show_line
from lamella.faces.cli.terminal.telling import tell

_DEEDS = {"add": "have something done from now on", "remove": "have a rule hold no more"}


def rule(talk: TerminalChat, rest: str) -> None:
    """Show the rules, or add or remove one."""
    word, _, text = rest.partition(" ")
    if word and word not in _DEEDS:
        raise UsageError(f"/rules does not know {word}.", hint="It knows add and remove; or nothing, to show them.")
    if word and not text.strip():
        raise UsageError(f"/rules {word} names no rule.", hint="As in /rules add Answer in one sentence.")
    if word == "add":
        added = talk.stored.add_rule(text)
        tell(f"From the next message on: {show_line(added.text)}")
    elif word == "remove":
        gone = talk.stored.remove_rule(text.strip())
        tell(f"No rule any more, from the next message on: {show_line(gone.text)}")
    else:
        tell("\n".join(tell_rules(talk.stored.rules())))


def list_deeds(talk: TerminalChat, begun: str) -> Mapping[str, str]:
    """What may come after it; after `remove` the rules there are."""
    deed, space, name = begun.partition(" ")
    if not space:
        return choose_begun(_DEEDS, begun)
    return choose_further(deed, {one.id: one.text for one in talk.stored.rules()} if deed == "remove" else {}, name)
