"""``/rules``: show, add, confirm, dismiss and remove the user rules of this conversation."""

from collections.abc import Mapping

from lamella.cli.chat.input import match_prefix, match_prefix_after_word
from lamella.cli.chat.session import ChatSession
from lamella.cli.library import format_rules
from lamella.cli.output import escape_line, print_text
from lamella.conversation.rules import get_rule
from lamella.errors import UsageError

_RULE_ACTION_DESCRIPTIONS = {
    "add": "add a rule",
    "confirm": "make a candidate a rule",
    "dismiss": "dismiss a candidate",
    "remove": "remove a rule",
}


def run_rules_command(session: ChatSession, rest: str) -> None:
    """Show the rules, or add or remove one."""
    word, _, text = rest.partition(" ")
    if word and word not in _RULE_ACTION_DESCRIPTIONS:
        raise UsageError(
            f"Unknown /rules action: {word}",
            hint="Use add, confirm, dismiss or remove; /rules alone lists rules and candidates.",
        )
    if word and not text.strip():
        raise UsageError("Missing rule.", hint="Example: /rules add Answer in one sentence.")
    if word in ("add", "confirm"):
        if word == "confirm":
            text = get_rule(text.strip(), session.conversation_log.rules()).text
        added = session.conversation_log.add_rule(text)
        print_text(f"Rule from the next message on: {escape_line(added.text)}")
    elif word in ("remove", "dismiss"):
        removed = session.conversation_log.remove_rule(text.strip())
        gone = "Rule removed from the next message on" if removed.origin == "user" else "Candidate dismissed"
        print_text(f"{gone}: {escape_line(removed.text)}")
    else:
        print_text("\n".join(format_rules(session.conversation_log.rules())))


def complete_rules_action(session: ChatSession, prefix: str) -> Mapping[str, str]:
    """Return completions for ``/rules``; after an action on a rule, the rules by id."""
    deed, space, name = prefix.partition(" ")
    if not space:
        return match_prefix(_RULE_ACTION_DESCRIPTIONS, prefix)
    return match_prefix_after_word(
        deed,
        {one.id: one.text for one in session.conversation_log.rules()}
        if deed in ("remove", "confirm", "dismiss")
        else {},
        name,
    )
