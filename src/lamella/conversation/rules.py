"""User rules: lasting instructions, detected in typed text or added by hand, and the changes made to them."""

from collections.abc import Iterable, Sequence

from lamella.conversation.turn import TurnRequest
from lamella.core.log.turn import RuleChanges
from lamella.core.prompt.rules import merge_rules
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import normalize_line_ends, short_hash
from lamella.core.text.directives import find_directives
from lamella.core.text.word_lists import WordLists
from lamella.errors import InvalidOperationError
from lamella.ports import Rule

# The maximum length of a rule in characters, the same as for a sentence that is detected as a rule.
_MAX_RULE_CHARS = 400
_ID_DIGITS = 8

# The number of a turn, the id of its question, and the typed text.
NumberedQuestion = tuple[int, str, str]


def merge_rule_changes(turn_request: TurnRequest, state: PromptState) -> RuleChanges | None:
    """Return all rule changes made by hand, including those of this request; None if nothing changes."""
    before, turn = state.rules if turn_request.rule_changes is None else turn_request.rule_changes, state.turn_count + 1
    added = [one for one in before.added if one[1] not in turn_request.removed_rules]
    ended = [one for one in before.ended if one[1] not in (*turn_request.rules, *turn_request.removed_rules)]
    there = {text for _, text in added}
    changes = RuleChanges(
        added=(*added, *((turn, text) for text in turn_request.rules if text not in there)),
        ended=(*ended, *((turn, text) for text in turn_request.removed_rules)),
    )
    return None if changes == state.rules else changes


def rule_changes_to_json(changes: RuleChanges, previous: RuleChanges) -> dict[str, list[str]]:
    """Return the rule changes of a turn as a transcript stores them: texts added and texts removed."""
    known = {text for _, text in previous.added}
    added = [text for _, text in changes.added if text not in known]
    ended = [one[1] for one in changes.ended if one not in previous.ended]
    return {name: texts for name, texts in (("rules", added), ("ended_rules", ended)) if texts}


def list_rules(
    questions: Iterable[NumberedQuestion], changes: RuleChanges, pending: TurnRequest, *, words: WordLists
) -> tuple[Rule, ...]:
    """Return every rule and every candidate with its source, newest last; pending changes count as asked.

    A rule has the origin ``user``: the user added or confirmed it. A candidate has the origin ``found``.
    """
    asked = list(questions)
    messages = {turn: message for turn, message, _ in asked}
    coming = 1 + max(messages, default=0)
    directives = find_directives({str(turn): text for turn, _, text in asked}, words)
    found = [(turn, sentence) for turn, _, _ in asked for sentence in directives.get(str(turn), ())]
    own = {text: turn for turn, text in changes.added if text not in pending.removed_rules}
    own |= dict.fromkeys([text for text in pending.rules if text not in own], coming)
    over = {text: turn for turn, text in changes.ended} | dict.fromkeys(pending.removed_rules, coming)
    ended = [(turn, text) for text, turn in over.items() if text not in pending.rules]
    merged = merge_rules(found, [(turn, text) for text, turn in own.items()], ended=ended)
    return tuple(
        Rule(
            id=rule_id(text),
            text=text,
            message=messages.get(turn, ""),
            turn=turn,
            origin="user" if own.get(text) == turn else "found",
        )
        for turn, text in merged
    )


def rule_id(text: str) -> str:
    """Return the id of a rule: the first digits of a hash of its text."""
    return short_hash(text)[:_ID_DIGITS]


def validate_rule(text: str) -> str:
    """Return a rule as it is stored, on one line; raises ``InvalidOperationError`` if it is empty or too long."""
    line = " ".join(normalize_line_ends(text).split())
    if not line or len(line) > _MAX_RULE_CHARS:
        raise InvalidOperationError(
            f"A rule has {len(line):,} characters; it may have 1 to {_MAX_RULE_CHARS}.",
            hint="Say in one sentence what is to be done from now on; longer instructions go into the system prompt.",
        )
    return line


def get_rule(name: str, rules: Sequence[Rule]) -> Rule:
    """Return the rule with this id, number in the list or text; raises ``InvalidOperationError`` if there is none."""
    numbers = {str(number): one for number, one in enumerate(rules, start=1)}
    # Ids and texts come before numbers: an id may consist of digits only.
    for one in rules:
        if name in (one.id, one.text):
            return one
    if name in numbers:
        return numbers[name]
    there = ", ".join(one.id for one in rules)
    raise InvalidOperationError(
        f"There is no rule {name!r} here.", hint=f"Rules: {there}." if there else "This conversation has no rules."
    )
