"""Proposals: what compacting now would take out and bring, before anything is committed."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from lamella.core.budget.thresholds import check_share
from lamella.core.compaction.draft import WHOLE, Stretch
from lamella.core.compaction.fitting import Rules
from lamella.core.ledger.cache import CacheRequest
from lamella.core.ledger.entry import Tariff, see_request
from lamella.core.ledger.outlook import Outlook, compare_outlook
from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import TokenCounts, count_tokens
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import keep_before
from lamella.core.prompt.state import State
from lamella.engine.dialogue.fitting import Fitter
from lamella.engine.dialogue.reading.pins import name_said
from lamella.errors import CallError


class Proposal(Struct, frozen=True, kw_only=True):
    """A compaction that is not committed: its receipt, none if nothing would be gained, and what it would bring.

    ``goal`` is what it should come down to; ``before`` and ``after`` are the counts of the next request, with nothing
    typed in it yet. ``upon`` are the receipts in force when it was planned, ``warnings`` what is told of planning it.
    """

    receipt: Receipt | None
    goal: int
    before: TokenCounts
    outlook: Outlook | None = None
    after: TokenCounts | None = None
    upon: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class PlanRange(NamedTuple):
    """What of a conversation a plan is about: from the turn of a message on, up to that of another, or all of it."""

    since: str | None = None
    until: str | None = None


EVERYTHING_SAID = PlanRange()


def find_span(state: State, within: PlanRange) -> Stretch:
    """The turns that are meant, by the ids of messages, or as ``turn:3`` and ``reply:3``."""
    if within == EVERYTHING_SAID:
        return WHOLE
    names = name_said(state)
    turns = {said.id: one.number for one in state.talk.exchanges for said in one.said}
    for name in (one for one in within if one is not None):
        if name not in names:
            raise CallError(
                f"No message of the prompt is called {name!r}.",
                hint="Name a message by its id, or as turn:3 or reply:3; one that a compaction took out is none.",
            )
    first = 0 if within.since is None else turns[names[within.since]]
    last = None if within.until is None else turns[names[within.until]]
    if last is not None and last < first:
        raise CallError(
            f"{within.until} is before {within.since}: there is nothing between them.",
            hint="Give since the earlier one, and until the later.",
        )
    return Stretch(first=first, last=last, since="" if within.since is None else names[within.since])


def _check_unmoved(state: State, planned: Prompt, since: str) -> None:
    """Raise if what stands before a message would not be what was sent of it, whatever the compaction leaves alone."""
    kept = keep_before(state, since).kept
    if state.last is None or kept is None or state.last.messages[:kept] == planned.messages[:kept]:
        return
    raise CallError(
        f"The next turn moves what stands before {since} by itself: layout {planned.terms.layout} takes what was "
        "attached or called for into the system message, so nothing before it could stay as it was sent.",
        hint="Compact without since, or ask once more without attaching anything and plan again.",
    )


def propose(
    state: State,
    turn: Turn,
    rules: Rules,
    *,
    within: PlanRange = EVERYTHING_SAID,
    fitter: Fitter,
    to: float | None,
    path: Sequence[str],
    sent: CacheRequest | None,
    tariff: Tariff,
    at: datetime | None,
) -> Proposal:
    """What compacting would take out before this turn, down to a share of what fits, by default to the target."""
    budget = rules.budget
    goal = int((budget.target if to is None else check_share(to)) * budget.limit)
    span = find_span(state, within)
    as_is = waiting(advance(state, turn, rules.place, measure=rules.measure))
    before = count_tokens(as_is, budget)
    # Folding alone may free a little; where there is room enough, that is no reason to move the prefix.
    if before.total <= goal:
        return Proposal(receipt=None, goal=goal, before=before)
    plan, warnings = fitter.plan(state, turn, rules, goal=goal, path=path, as_is=as_is, span=span)
    if plan.receipt is None or plan.prompt is None:
        return Proposal(receipt=None, goal=goal, before=before, warnings=warnings)
    if span.since:
        _check_unmoved(state, plan.prompt, span.since)
    outlook = compare_outlook(
        sent,
        as_is=see_request(as_is, at=at),
        compacted=see_request(plan.prompt, at=at),
        tariff=tariff,
        measure=rules.measure,
        at=at,
    )
    after = count_tokens(plan.prompt, budget)
    return Proposal(receipt=plan.receipt, goal=goal, outlook=outlook, before=before, after=after, warnings=warnings)
