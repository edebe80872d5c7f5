"""User rules that the prompt must show because their messages are not shown.

These are rules that the user added by hand, and rules found in turns that the history mode hides.
"""

from collections.abc import Collection, Iterable, Sequence

from lamella.core.artifacts.blocks import escape_block_text
from lamella.core.budget import Tokenizer
from lamella.core.log.turn import RuleChanges, SystemParts
from lamella.core.prompt.layers.history import (
    NO_RULE_SEARCH,
    ConversationHistory,
    NumberedRules,
    make_rules_block,
    parse_rules_in_preamble,
    with_rules_block,
)
from lamella.core.prompt.layers.model import TokenCounter
from lamella.core.prompt.state import PromptState
from lamella.core.text.rule_detection import RULE_CUES, detect_rules
from lamella.core.values import replace

# Token limit for the rules of hidden turns. The placeholder for those turns has the same limit.
_MAX_HIDDEN_RULES_TOKENS = 300
_TAG = "user_rules"


def apply_rule_changes(state: PromptState, changes: RuleChanges, tokenizer: Tokenizer) -> PromptState:
    """Return the state after rules were added or removed by hand, with an updated rules block."""
    rules, more = _apply_changes_to_rules(state, changes, system=state.system)
    placeholder = make_rules_block(rules, omitted=more, count=tokenizer.count) if rules else None
    history = replace(state.history, preamble=with_rules_block(state.history.preamble, placeholder))
    return replace(state, history=history, rules=changes)


def render_user_rules(changes: RuleChanges) -> str:
    """Render the rules that the user added as a part of the system prompt; empty if there are none."""
    if not changes.added:
        return ""
    lines = [f"- {escape_block_text(' '.join(text.split()))}" for _, text in changes.added]
    return "\n".join([f"<{_TAG}>", "Rules that the user set for this conversation:", *lines, f"</{_TAG}>"])


def list_rules_in_system(system: SystemParts) -> tuple[str, ...]:
    """Return the lines of the rules in the system prompt."""
    return tuple([line.removeprefix("- ") for line in system.rules.split("\n") if line.startswith("- ")])


def _apply_changes_to_rules(
    state: PromptState, changes: RuleChanges, *, system: SystemParts
) -> tuple[NumberedRules, int]:
    """Return the rules of the block once these changes apply, and how many more it only counts.

    Since added rules are in the system prompt, the block keeps only what older receipts put there.
    """
    current_rules, more = parse_rules_in_preamble(state.history.preamble)
    added = () if system.rules else changes.added
    withdrawn = {text for _, text in (*state.rules.added, *changes.added)} - {text for _, text in added}
    left = [one for one in current_rules if one[1] not in withdrawn]
    return merge_rules(left, added, ended=changes.ended), more


def rules_change_prompt(state: PromptState, changes: RuleChanges, *, system: SystemParts | None) -> bool:
    """Return whether these rule changes change the bytes of the history preamble.

    ``system`` is the system prompt that the same turn sets, if it sets one.
    """
    if (
        _apply_changes_to_rules(state, changes, system=system or state.system)[0]
        != parse_rules_in_preamble(state.history.preamble)[0]
    ):
        return True
    hidden = state.history.rule_search[2] if state.history.hidden_turns else ()
    return merge_rules(hidden, ended=changes.ended) != merge_rules(hidden, ended=state.rules.ended)


def merge_rules(*rule_lists: Iterable[tuple[int, str]], ended: Iterable[tuple[int, str]] = ()) -> NumberedRules:
    """Merge rules in the order in which they were stated, each once, at its last statement.

    A rule in ``ended`` is left out, unless the user stated it again in or after the turn that ended it.
    """
    turn_by_text: dict[str, int] = {}
    over = {text: turn for turn, text in ended}
    for turn, text in (one for rules in rule_lists for one in rules):
        turn_by_text[text] = max(turn, turn_by_text.get(text, 0))
    left = [(turn, text) for text, turn in turn_by_text.items() if turn >= over.get(text, 0)]
    return tuple(sorted(left, key=lambda one: one[0]))


def select_rules_that_fit(
    rules: NumberedRules, protected: Collection[str], *, max_tokens: int, count: TokenCounter, already_omitted: int = 0
) -> tuple[NumberedRules, int]:
    """Return the rules that fit into ``max_tokens`` tokens and how many were left out; the oldest leave first.

    Rules in ``protected`` always stay, even if the result is then over the limit.
    """
    free = [one for one in rules if one[1] not in protected]
    left = list(rules)
    while free and make_rules_block(tuple(left), omitted=already_omitted, count=count).tokens > max_tokens:
        left.remove(free.pop(0))
        already_omitted += 1
    return tuple(left), already_omitted


def with_hidden_rules(state: PromptState, tokenizer: Tokenizer, *, cues: Sequence[str] = ()) -> PromptState:
    """Return the state whose prompt shows the rules of hidden turns, beside the rules that it already shows.

    ``cues`` are words that mark a rule, in addition to the built-in ones.
    """
    history = state.history
    if not history.hidden_turns:
        return replace(state, history=replace(history, rules=None))
    wished = _rules_in_hidden_turns(history, tuple(cues))
    current_rules, more = parse_rules_in_preamble(history.preamble)
    current_texts = {text for _, text in current_rules}
    found = tuple(one for one in merge_rules(wished[2], ended=state.rules.ended) if one[1] not in current_texts)
    found, hidden = (
        select_rules_that_fit(found, (), max_tokens=_MAX_HIDDEN_RULES_TOKENS, count=tokenizer.count)
        if found
        else ((), 0)
    )
    if not found:
        return replace(state, history=replace(history, rule_search=wished, rules=None))
    placeholder = make_rules_block(merge_rules(current_rules, found), omitted=more + hidden, count=tokenizer.count)
    same = history.rules is not None and history.rules.hash == placeholder.hash
    return replace(state, history=replace(history, rule_search=wished, rules=history.rules if same else placeholder))


def _rules_in_hidden_turns(
    history: ConversationHistory, cues: tuple[str, ...]
) -> tuple[int, str, NumberedRules, tuple[str, ...]]:
    """Return the rules of the hidden turns; only turns that became hidden since the last call are searched.

    If the cues changed, or the turns searched before are not a prefix of the hidden ones, all turns are searched
    again.
    """
    seen, last, found, by = history.rule_search
    if seen > history.hidden_turns or by != cues or (seen and history.turns[seen - 1].question.id != last):
        seen, last, found, _ = NO_RULE_SEARCH
    known = RULE_CUES.union(cues)
    fresh: Sequence[tuple[int, str]] = [
        (turn.turn_index + 1, rule)
        for turn in history.turns[seen : history.hidden_turns]
        for rule in detect_rules(turn.question.original, cues=known)
    ]
    return history.hidden_turns, history.turns[history.hidden_turns - 1].question.id, (*found, *fresh), cues
