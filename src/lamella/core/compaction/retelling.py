"""Retelling: in history mode ``strip``, a checked summary of the oldest turns that are not shown.

Without a summariser, or where its answer is refused, the outline of those turns stands in.
"""

from collections.abc import Sequence

from lamella.core.budget.counting import Measure
from lamella.core.compaction.asking import Summaries, SummaryNeed, ask_alone, key_of, sign, texts_of, unsign
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.rules import ChainRules
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import Planner, advance
from lamella.core.prompt.folding import STRIP_TOKENS, count_summarised, name_questions
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.state import State
from lamella.core.values import replace

# What a line may weigh that says who wrote a summary.
_SIGNATURE = 100


def retell(
    state: State,
    turn: Turn,
    measure: Measure,
    *,
    place: Planner,
    chain: ChainRules,
    summaries: Summaries,
) -> tuple[Turn, tuple[SummaryNeed, ...]]:
    """The turn with the summary that stands in its strip, and what it needs for one.

    It is as it was, unless it begins an epoch in which a summary of hidden turns could stand.
    """
    now = advance(state, turn, place, measure=measure)
    covered = now.talk.exchanges[: count_summarised(now.talk.hidden)]
    oldest = _readable(covered, chain)
    if not oldest or now.epoch == state.epoch:
        return turn, ()
    stands = _find_retold(state, covered)
    if stands is not None and _find_fault(unsign(stands), oldest, measure, chain=chain, spare=_SIGNATURE) is None:
        return replace(turn, strip=stands), ()
    key = key_of(oldest)
    if key not in summaries:
        messages = ask_alone(oldest, measure=measure, rules=chain.summary, writes=STRIP_TOKENS)
        return turn, (SummaryNeed(key=key, messages=messages, max_tokens=STRIP_TOKENS),)
    answer = summaries[key]
    why = answer.why or _find_fault(answer.text, oldest, measure, chain=chain)
    if why is None:
        return replace(turn, strip=sign(answer)), ()
    said = f"Earlier turns stand as their outline: {why[0].lower()}{why[1:]}"
    return replace(turn, warnings=(*turn.warnings, said)), ()


def _find_retold(state: State, covered: Sequence[Exchange]) -> str | None:
    """The summary of these very turns that an earlier turn was sent with."""
    text, names = state.talk.retold or (None, ())
    return text if names == name_questions(covered) else None


def _find_fault(
    text: str, oldest: Sequence[Exchange], measure: Measure, *, chain: ChainRules, spare: int = 0
) -> str | None:
    return check_summary(
        text,
        replaced=texts_of(oldest),
        users=[exchange.user.text for exchange in oldest],
        tokens=measure.count(text),
        replaced_tokens=sum(measure.count(text) for text in texts_of(oldest)),
        max_tokens=STRIP_TOKENS + spare,
        translated=bool(chain.summary.language),
    )


def _readable(exchanges: Sequence[Exchange], chain: ChainRules) -> Sequence[Exchange]:
    """The newest of these turns that a summariser reads in one go."""
    left = chain.summary.reads
    for index in range(len(exchanges) - 1, -1, -1):
        left -= exchanges[index].said_tokens
        if left < 0:
            return exchanges[index + 1 :]
    return exchanges
