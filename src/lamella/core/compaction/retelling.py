"""Retelling: in history mode ``strip``, a checked summary of the oldest turns that are not shown.

Without a summariser, or where its answer is refused, the outline of those turns stands in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lamella.core.compaction.asking import Summaries, SummaryNeed, ask_alone, key_of, texts_of
from lamella.core.compaction.checking import check_summary
from lamella.core.log.terms import History
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.folding import STRIP_TOKENS, summarised
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import Rules, State
from lamella.core.prompt.turns import prepare_turn
from lamella.core.values import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """The turn with the summary that stands in its strip, or the summary that it needs."""

    turn: TurnInput
    needs: tuple[SummaryNeed, ...] = ()


def retell(state: State, turn: TurnInput, rules: Rules, *, summaries: Summaries | None) -> Retold:
    """The turn as it is, unless it begins an epoch in which a summary of hidden turns could stand."""
    if summaries is None or (turn.history or rules.history) is not History.STRIP:
        return Retold(turn=turn)
    now = prepare_turn(state, turn, rules).state
    oldest = _readable(now.exchanges[: summarised(now.hidden)], rules)
    if not oldest or now.epoch == state.epoch:
        return Retold(turn=turn)
    key = key_of(oldest)
    if key not in summaries:
        messages = ask_alone(oldest, rules=rules)
        need = SummaryNeed(key=key, messages=messages, max_tokens=STRIP_TOKENS, turns=len(oldest))
        return Retold(turn=turn, needs=(need,))
    answer = summaries[key]
    why = answer.why or check_summary(
        answer.text,
        replaced=texts_of(oldest),
        users=[exchange.user.text for exchange in oldest],
        tokens=rules.measure.count(answer.text),
        replaced_tokens=sum(rules.measure.count(text) for text in texts_of(oldest)),
        max_tokens=STRIP_TOKENS,
    )
    if why is None:
        return Retold(turn=replace(turn, strip=answer.text))
    said = f"Earlier turns stand as their outline: {why[0].lower()}{why[1:]}"
    return Retold(turn=replace(turn, warnings=(*turn.warnings, said)))


def _readable(exchanges: Sequence[Exchange], rules: Rules) -> Sequence[Exchange]:
    """The newest of these turns that a summariser reads in one go."""
    left = rules.compaction.summary.reads
    for index in range(len(exchanges) - 1, -1, -1):
        left -= exchanges[index].said_tokens
        if left < 0:
            return exchanges[index + 1 :]
    return exchanges
