"""Fitting a turn: built as it is, or made smaller first; never over the hard threshold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamella.core.budget.thresholds import Budget, is_over, must_shrink
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.chain import plan_compaction
from lamella.core.compaction.condensing import condense_turn
from lamella.core.compaction.retelling import retell
from lamella.core.log.placement import Form
from lamella.core.log.receipt import Receipt
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.applying import apply_receipt
from lamella.core.prompt.layers.model import LayerId, Segment, StandIn
from lamella.core.prompt.state import OpenTurn, Rules, State
from lamella.core.prompt.turns import open_turn, turn_rules
from lamella.errors import BudgetExceededError

_STAND_INS = frozenset(kind.value for kind in StandIn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A turn that fits, the state it is built on, and the receipt of what had to go first, if anything.

    ``turn`` is the one asked, with summaries of what was too long in it.
    """

    opened: OpenTurn
    state: State
    turn: TurnInput
    receipt: Receipt | None = None
    needs: tuple[SummaryNeed, ...] = ()


def fit_turn(
    state: State,
    turn: TurnInput,
    rules: Rules,
    *,
    summaries: Summaries | None = None,
    path: Sequence[str] = (),
) -> Fitted:
    """The turn as it is sent. With ``needs``, fetch those and fit again; what cannot fit raises."""
    retold = retell(state, turn, rules, summaries=summaries)
    turn = retold.turn
    opened = open_turn(state, turn, rules)
    if retold.needs or not _must_shrink(opened, state, rules):
        return Fitted(opened=opened, state=state, turn=turn, needs=retold.needs)
    condensed = condense_turn(state, turn, opened, rules=rules, summaries=summaries)
    if condensed is not None:
        if condensed.needs:
            return Fitted(opened=opened, state=state, turn=turn, needs=condensed.needs)
        turn, opened = condensed.turn, open_turn(state, condensed.turn, rules)
        if not _must_shrink(opened, state, rules):
            return Fitted(opened=opened, state=state, turn=turn)
    return _shrink(state, turn, opened, rules=rules, summaries=summaries, path=path)


def _must_shrink(opened: OpenTurn, state: State, rules: Rules) -> bool:
    return must_shrink(opened.envelope.tokens.total, rules.budget, shrunk_to=state.shrunk_to)


def _shrink(
    state: State,
    turn: TurnInput,
    opened: OpenTurn,
    *,
    rules: Rules,
    summaries: Summaries | None,
    path: Sequence[str],
) -> Fitted:
    """The turn after the chain made room for it."""
    total = opened.envelope.tokens.total
    goal = int(rules.budget.target * rules.budget.limit)
    plan = plan_compaction(state, turn, rules, tokens=total, goal=goal, summaries=summaries, path=path)
    if plan.needs:
        return Fitted(opened=opened, state=state, turn=turn, needs=plan.needs)
    if plan.receipt is not None:
        state = apply_receipt(state, plan.receipt, turn_rules(rules, turn))
        opened = open_turn(state, turn, rules)
    check_fits(opened, rules.budget)
    return Fitted(opened=opened, state=state, turn=turn, receipt=plan.receipt)


def check_fits(opened: OpenTurn, budget: Budget) -> None:
    """Raise if a request is over the hard threshold, naming everything in it that may not shrink."""
    total = opened.envelope.tokens.total
    if is_over(total, budget.hard, budget):
        hard = int(budget.hard * budget.limit)
        raise BudgetExceededError(needed=total, hard=hard, limit=budget.limit, protected=_name_protected(opened))


def _name_protected(opened: OpenTurn) -> list[str]:
    """What is kept whatever happens, the heaviest first, each with its tokens."""
    parts = sorted(_protected(opened), key=lambda part: -part[1])
    return [f"{name} ({tokens:,} tokens)" for name, tokens in parts if tokens]


def _protected(opened: OpenTurn) -> Iterator[tuple[str, int]]:
    envelope = opened.envelope
    for segment in envelope.layer(LayerId.L1).segments:
        yield f"the system prompt's {segment.id}", segment.tokens
    yield "tool definitions", envelope.tokens.by_layer["tools"]
    for segment in envelope.layer(LayerId.L2).segments:
        # Pinned, not to be fetched again, or attached lately: whatever is left of it but one line.
        if segment.form is not Form.HANDLE:
            yield segment.id, segment.tokens
    for segment in envelope.layer(LayerId.L3).segments:
        yield f"{segment.id}, attached now", segment.tokens
    yield from _weigh_strip(envelope.layer(LayerId.L4).segments)
    for segment in envelope.layer(LayerId.L5).segments:
        yield "what was typed now", segment.tokens


def _weigh_strip(said: Sequence[Segment]) -> Iterator[tuple[str, int]]:
    last = list(dict.fromkeys(segment.place for segment in said))[-2:]
    talk = [segment for segment in said if segment.kind not in _STAND_INS]
    yield "what stands in for earlier turns", sum(one.tokens for one in said if one.kind in _STAND_INS)
    yield "the last exchange", sum(one.tokens for one in talk if one.place in last)
    # Left only where taking them out would free nothing.
    yield "earlier turns", sum(one.tokens for one in talk if one.place not in last)
