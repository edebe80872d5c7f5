"""Summaries of the oldest turns: which of them one would cover, and whether it may stand in for them."""

from collections.abc import Sequence
from itertools import accumulate

from lamella.core.compaction.asking import Summaries, SummaryNeed, ask_alone, ask_live, key_of, texts_of
from lamella.core.compaction.checking import check_summary
from lamella.core.compaction.draft import Draft
from lamella.core.log.receipt import Cut, Skipped, StepName
from lamella.core.prompt.layers.model import StandIn
from lamella.core.prompt.layers.opening import Derived, read_derived, render_derived
from lamella.core.prompt.layers.strip import Exchange
from lamella.core.prompt.removal import message_ids
from lamella.core.text.exact import build_ledger


def propose_summary(draft: Draft, summaries: Summaries | None) -> Cut | SummaryNeed | Skipped | None:
    """The oldest turns as one summary, the need of one, why there is none, or nothing to summarise.

    A summary that stands already is told anew in it: otherwise they would add up until nothing else fits.
    """
    oldest = _oldest(draft)
    if len(oldest) < draft.rules.compaction.summary.turns:
        return None
    if summaries is None:
        return Skipped(name=StepName.SUMMARY, why="no summariser is given")
    told = _told(draft)
    key = key_of(oldest, [read_derived(block) for block in told])
    if key not in summaries:
        return _need(draft, oldest, told, key=key)
    answer = summaries[key]
    why = answer.why or _find_fault(draft, oldest, told, text=answer.text)
    if why is not None:
        return Skipped(name=StepName.SUMMARY, why=why)
    return Cut(name=StepName.SUMMARY, removed=_ids(oldest), text=_render(draft, oldest, told, text=answer.text))


def _told(draft: Draft) -> Sequence[Derived]:
    return [block for block in draft.state.opening.blocks if block.kind is StandIn.SUMMARY]


def _oldest(draft: Draft) -> Sequence[Exchange]:
    """As many of the oldest turns as free what is too much, within what a summariser reads."""
    rules = draft.rules.compaction.summary
    needed = draft.excess + rules.writes + rules.exact
    weights = list(accumulate(exchange.said_tokens for exchange in draft.free))
    readable = sum(1 for weight in weights if weight <= rules.reads)
    enough = next((index + 1 for index, weight in enumerate(weights) if weight >= needed), len(weights))
    return draft.free[: min(readable, max(enough, rules.turns))]


def _need(draft: Draft, oldest: Sequence[Exchange], told: Sequence[Derived], *, key: str) -> SummaryNeed:
    before = [read_derived(block) for block in told]
    live = ask_live(oldest, state=draft.state, rules=draft.rules)
    messages = live or ask_alone(oldest, rules=draft.rules, told=before)
    max_tokens = draft.rules.compaction.summary.writes
    return SummaryNeed(key=key, messages=messages, max_tokens=max_tokens, turns=len(oldest))


def _find_fault(draft: Draft, oldest: Sequence[Exchange], told: Sequence[Derived], *, text: str) -> str | None:
    return check_summary(
        text,
        replaced=[*(read_derived(block) for block in told), *texts_of(oldest)],
        users=[*(read_derived(block) for block in told), *(exchange.user.text for exchange in oldest)],
        tokens=draft.rules.measure.count(text),
        replaced_tokens=sum(block.tokens for block in told) + sum(exchange.said_tokens for exchange in oldest),
        max_tokens=draft.rules.compaction.summary.writes,
    )


def _render(draft: Draft, oldest: Sequence[Exchange], told: Sequence[Derived], *, text: str) -> str:
    cap = draft.rules.compaction.summary.exact
    texts = [*(read_derived(block) for block in told), *texts_of(oldest)]
    exact = build_ledger(texts, cap=cap, count=draft.rules.measure.count)
    more = " and of what was told of those before" if told else ""
    return render_derived(StandIn.SUMMARY, text, covers=f"{len(oldest)} earlier turns{more}", exact=exact)


def _ids(exchanges: Sequence[Exchange]) -> tuple[str, ...]:
    return tuple(name for exchange in exchanges for name in message_ids(exchange))
