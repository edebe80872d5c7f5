"""Summaries of the oldest turns: which of them one would cover, and whether it may stand in for them."""

from collections.abc import Sequence
from itertools import accumulate

from lamella.core.compaction.asking import Summaries, SummaryNeed, ask_alone, ask_live, key_of, texts_of
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.draft import Draft
from lamella.core.compaction.exact import build_ledger
from lamella.core.compaction.receipt import Cut, Skipped
from lamella.core.compaction.removal import message_ids
from lamella.core.compaction.rules import StepName
from lamella.core.layers.model import StandIn
from lamella.core.layers.opening import render_derived
from lamella.core.layers.strip import Exchange


def propose_summary(draft: Draft, summaries: Summaries | None) -> Cut | SummaryNeed | Skipped | None:
    """The oldest turns as one summary, the need of one, why there is none, or nothing to summarise."""
    oldest = _oldest(draft)
    if len(oldest) < draft.rules.compaction.summary.turns:
        return None
    if summaries is None:
        return Skipped(name=StepName.SUMMARY, why="no summariser is given")
    key = key_of(oldest)
    if key not in summaries:
        return _need(draft, oldest, key)
    answer = summaries[key]
    why = answer.why or _find_fault(draft, oldest, answer.text)
    if why is not None:
        return Skipped(name=StepName.SUMMARY, why=why)
    return Cut(name=StepName.SUMMARY, removed=_ids(oldest), text=_render(draft, oldest, answer.text))


def _oldest(draft: Draft) -> Sequence[Exchange]:
    """As many of the oldest turns as free what is too much, within what a summariser reads."""
    rules = draft.rules.compaction.summary
    needed = draft.excess + rules.writes + rules.exact
    weights = list(accumulate(_weight(exchange) for exchange in draft.free))
    readable = sum(1 for weight in weights if weight <= rules.reads)
    enough = next((index + 1 for index, weight in enumerate(weights) if weight >= needed), len(weights))
    return draft.free[: min(readable, max(enough, rules.turns))]


def _need(draft: Draft, oldest: Sequence[Exchange], key: str) -> SummaryNeed:
    rules = draft.rules.compaction.summary
    messages = ask_live(oldest, state=draft.state, rules=draft.rules) or ask_alone(oldest, rules=draft.rules)
    return SummaryNeed(key=key, messages=messages, max_tokens=rules.writes, turns=len(oldest))


def _find_fault(draft: Draft, oldest: Sequence[Exchange], text: str) -> str | None:
    count = draft.rules.measure.count
    return check_summary(
        text,
        replaced=texts_of(oldest),
        users=[exchange.user.text for exchange in oldest],
        tokens=count(text),
        replaced_tokens=sum(_weight(exchange) for exchange in oldest),
        max_tokens=draft.rules.compaction.summary.writes,
    )


def _render(draft: Draft, oldest: Sequence[Exchange], text: str) -> str:
    cap = draft.rules.compaction.summary.exact
    exact = build_ledger(texts_of(oldest), cap=cap, count=draft.rules.measure.count)
    return render_derived(StandIn.SUMMARY, text, covers=f"{len(oldest)} earlier turns", exact=exact)


def _ids(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    return tuple(name for exchange in exchanges for name in message_ids(exchange))


def _weight(exchange: Exchange) -> int:
    return sum(said.segment.tokens for said in (exchange.user, exchange.reply, *exchange.joined))
