"""Proposals: what compacting now would take out and bring, before anything is committed."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from lamella.core.budget.thresholds import check_share
from lamella.core.compaction.fitting import Rules
from lamella.core.ledger.cache import CacheRequest
from lamella.core.ledger.entry import Tariff, see_request
from lamella.core.ledger.outlook import Outlook, compare_outlook
from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import advance, waiting
from lamella.core.prompt.envelope import TokenCounts, count_tokens
from lamella.core.prompt.state import State
from lamella.engine.dialogue.fitting import Fitter


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


def propose(
    state: State,
    turn: Turn,
    rules: Rules,
    *,
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
    as_is = waiting(advance(state, turn, rules.place, measure=rules.measure))
    before = count_tokens(as_is, budget)
    # Folding alone may free a little; where there is room enough, that is no reason to move the prefix.
    if before.total <= goal:
        return Proposal(receipt=None, goal=goal, before=before)
    plan, warnings = fitter.plan(state, turn, rules, goal=goal, path=path, as_is=as_is)
    if plan.receipt is None or plan.prompt is None:
        return Proposal(receipt=None, goal=goal, before=before, warnings=warnings)
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
