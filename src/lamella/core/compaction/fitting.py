"""Fitting a turn: asked as it is, or made smaller first; never over the hard threshold."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import accumulate

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.budget.counting import Measure
from lamella.core.budget.thresholds import Budget, is_over, must_shrink
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.certificate import WISHES_SHARE
from lamella.core.compaction.chain import plan_compaction
from lamella.core.compaction.condensing import condense_turn
from lamella.core.compaction.outlining import is_too_large, name_turn, outline_turn
from lamella.core.compaction.retelling import retell
from lamella.core.compaction.rules import ChainRules
from lamella.core.log.placement import Form
from lamella.core.log.terms import History, SecretRule, Terms
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import Planner, advance, waiting
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import STAND_INS, LayerId, Segment, SegmentKind
from lamella.core.prompt.state import State
from lamella.core.values import replace
from lamella.errors import BudgetExceededError

# A turn as it is asked, the state that then waits for its reply, and the summaries that are to be fetched before.
Fitted = tuple[Turn, State, tuple[SummaryNeed, ...]]


class Rules(Struct, frozen=True, kw_only=True):
    """What holds for every turn of a conversation beside its terms: its budget, how the chain runs, how it counts.

    ``secrets`` says what becomes of text that looks like a secret. ``chains`` are those of runners that have one of
    their own, by name.
    """

    measure: Measure
    place: Planner
    budget: Budget = Budget()
    chain: ChainRules = ChainRules()
    secrets: SecretRule = SecretRule.WARN
    chains: Mapping[str, ChainRules] = {}

    def chain_for(self, terms: Terms) -> ChainRules:
        """How the chain runs for a turn under these terms."""
        return self.chains.get(terms.runner, self.chain)

    def run_by(self, terms: Terms, runner: str | None) -> Terms:
        """The terms of a turn that this runner answers, if another one than they say."""
        if runner is None:
            return terms
        terms = replace(terms, runner=runner)
        return replace(terms, cues=self.chain_for(terms).own_cues)


def fit_turn(
    state: State, turn: Turn, rules: Rules, *, summaries: Summaries | None = None, path: Sequence[str] = ()
) -> Fitted:
    """The turn as it is asked, with what had to be compacted before it, and the state that then waits for its reply.

    Receipts that were committed before are applied to the state already. With needs, fetch those and fit again.
    """
    needs: tuple[SummaryNeed, ...] = ()
    chain = rules.chain_for(turn.terms)
    # Once tools were called the question was sent: only a receipt may shrink what goes before it.
    was_sent = bool(turn.rounds)
    if summaries is not None and turn.terms.history is History.STRIP and not was_sent:
        turn, needs = retell(state, turn, rules.measure, place=rules.place, chain=chain, summaries=summaries)
    opened = advance(state, turn, rules.place, measure=rules.measure)
    if needs or not _must_shrink(opened, state, rules):
        return turn, opened, needs
    condensed = turn
    if not was_sent:
        condensed, needs = condense_turn(state, turn, opened, chain=chain, budget=rules.budget, summaries=summaries)
    if needs:
        return turn, opened, needs
    if condensed is not turn:
        turn, opened = condensed, advance(state, condensed, rules.place, measure=rules.measure)
    outlined = turn if was_sent or not is_too_large(opened, rules.budget) else outline_turn(turn, opened, rules.budget)
    run = partial(_compact, state, rules=rules, summaries=summaries, path=path)
    fitted = run(outlined) if outlined is not turn else run(turn, opened)
    if was_sent or fitted[2] or not _is_over(fitted[1], rules):
        return fitted
    # Beside what is left of everything else, even what would fit alone may be too large.
    tighter = run(outline_turn(turn, opened, rules.budget, beside=fitted[1]))
    return tighter if not _is_over(tighter[1], rules) else _name_last(turn, opened, run)


def _name_last(turn: Turn, opened: State, run: Callable[[Turn], Fitted]) -> Fitted:
    """The turn with a line for each thing that it brings, where that may be no more; what stands above is as it was."""
    named = name_turn(turn, opened)
    if named is turn:
        return run(turn)
    shown = {one.id for one in waiting(run(named)[1]).shown[0] if one.form is Form.HANDLE}
    return run(name_turn(turn, opened, only=shown))


def _compact(
    state: State,
    turn: Turn,
    opened: State | None = None,
    *,
    rules: Rules,
    summaries: Summaries | None,
    path: Sequence[str],
) -> Fitted:
    """The turn after a compaction, where one is needed and helps; ``opened`` is the state it waits in without one."""
    opened = opened or advance(state, turn, rules.place, measure=rules.measure)
    if not _must_shrink(opened, state, rules):
        return turn, opened, ()
    plan = plan_compaction(
        state,
        turn,
        rules.chain_for(turn.terms),
        measure=rules.measure,
        place=rules.place,
        window=rules.budget.window,
        as_is=waiting(opened),
        goal=int(rules.budget.target * rules.budget.limit),
        summaries=summaries,
        path=path,
        hard=int(rules.budget.hard * rules.budget.limit),
        room=int(WISHES_SHARE * rules.budget.limit),
    )
    if plan.needs or plan.receipt is None:
        return turn, opened, plan.needs
    turn = replace(turn, receipts=(plan.receipt,))
    return turn, advance(state, turn, rules.place, measure=rules.measure), ()


def _is_over(opened: State, rules: Rules) -> bool:
    return is_over(waiting(opened).total, rules.budget.hard, rules.budget)


def _must_shrink(opened: State, state: State, rules: Rules) -> bool:
    return must_shrink(waiting(opened).total, rules.budget, shrunk_to=state.shrunk_to)


def check_fits(envelope: Envelope, budget: Budget, *, attached: Sequence[Artifact] = ()) -> None:
    """Raise if a request is over the hard threshold, naming everything in it that may not shrink.

    Where what is attached came in by a folder or a tag, that is named, too: nobody chose those notes one by one.
    """
    total = envelope.tokens.total
    if is_over(total, budget.hard, budget):
        hard = int(budget.hard * budget.limit)
        raise BudgetExceededError(
            needed=total,
            hard=hard,
            limit=budget.limit,
            protected=_name_protected(envelope),
            expanded=_name_expanded(envelope, attached),
        )


def _name_protected(envelope: Envelope) -> list[str]:
    """What is kept whatever happens, the heaviest first, each with its tokens."""
    parts = sorted(_protected(envelope), key=lambda part: -part[1])
    return [f"{name} ({tokens:,} tokens)" for name, tokens in parts if tokens]


def _name_expanded(envelope: Envelope, attached: Sequence[Artifact]) -> list[str]:
    """The folders and tags that brought more than one note, the heaviest first."""
    weights = {segment.id: segment.tokens for segment in envelope.segments(LayerId.L3)}
    brought: dict[str, list[int]] = {}
    for artifact in attached:
        if artifact.source.via is not None:
            brought.setdefault(artifact.source.via, []).append(weights.get(artifact.id, 0))
    heaviest = sorted(brought.items(), key=lambda one: -sum(one[1]))
    return [
        f"{via.replace(':', ' ', 1)} ({len(tokens):,} notes, {sum(tokens):,} tokens)"
        for via, tokens in heaviest
        if len(tokens) > 1
    ]


def _protected(envelope: Envelope) -> Iterator[tuple[str, int]]:
    for segment in envelope.segments(LayerId.L1):
        yield f"the system prompt's {segment.id}", segment.tokens
    yield "tool definitions", envelope.tokens.by_layer["tools"]
    library = envelope.segments(LayerId.L2)
    for segment in library:
        # Pinned, not to be fetched again, or attached lately: whatever is left of it but one line.
        if segment.form is not Form.HANDLE:
            yield segment.id, segment.tokens
    yield "lines that stand for attachments", sum(one.tokens for one in library if one.form is Form.HANDLE)
    for standing in envelope.prompt.carried:
        yield f"{standing.artifact.id}, in an earlier message", standing.tokens
    asked = {segment.place for segment in envelope.segments(LayerId.L5)}
    for segment in envelope.segments(LayerId.L3):
        called = segment.kind in (Kind.TOOL, SegmentKind.CALL) and segment.place not in asked
        yield f"{segment.id}, {'called for' if called else 'attached'} now", segment.tokens
    yield from _weigh_strip(envelope.segments(LayerId.L4), envelope.prompt.pinned)
    for segment in envelope.segments(LayerId.L5):
        yield "what was typed now", segment.tokens
    measure = envelope.prompt.measure
    yield "what marks off messages", measure.per_message * len(envelope.messages) + measure.per_request


def _weigh_strip(said: Sequence[Segment], pinned: Set[str]) -> Iterator[tuple[str, int]]:
    questions = [index for index, segment in enumerate(said) if segment.kind == SegmentKind.USER]
    last = {segment.place for segment in said[questions[-1] :]} if questions else set()
    talk = [segment for segment in said if segment.kind not in STAND_INS]
    yield "standing wishes", sum(one.tokens for one in said if one.kind is SegmentKind.RULES)
    yield (
        "what stands in for earlier turns",
        sum(one.tokens for one in said if one.kind in STAND_INS and one.kind is not SegmentKind.RULES),
    )
    yield "the last exchange", sum(one.tokens for one in talk if one.place in last)
    earlier = [segment for segment in talk if segment.place not in last]
    turns = accumulate(int(segment.kind == SegmentKind.USER) for segment in earlier)
    placed = list(zip(earlier, turns, strict=True))
    # A pin keeps its whole turn.
    kept = {turn for segment, turn in placed if segment.id in pinned}
    yield "pinned turns", sum(one.tokens for one, turn in placed if turn in kept)
    # Left only where taking them out would free nothing.
    yield "earlier turns", sum(one.tokens for one, turn in placed if turn not in kept)
