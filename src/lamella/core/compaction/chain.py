"""The chain: steps in their order, until the request has come down to its goal. A plan is a value."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.draft import Draft, begin_draft, shrink_draft
from lamella.core.compaction.stages import ResolvedStages, resolve_stages
from lamella.core.compaction.steps import STEPS
from lamella.core.compaction.summary import propose_summary
from lamella.core.log.receipt import Cut, Receipt, Skipped, Step, StepName, make_receipt
from lamella.core.log.turn import TurnInput
from lamella.core.prompt.state import Rules, State
from lamella.core.values import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a compaction would do. With ``needs``, it would do more once those summaries are there."""

    receipt: Receipt | None
    needs: tuple[SummaryNeed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """A chain under way."""

    draft: Draft
    steps: tuple[Step, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    needs: tuple[SummaryNeed, ...] = ()


def plan_compaction(
    state: State,
    turn: TurnInput,
    rules: Rules,
    *,
    tokens: int,
    goal: int,
    summaries: Summaries | None = None,
    path: Sequence[str] = (),
    automatic: bool = True,
) -> Plan:
    """What would be taken out so that the turn's request comes down to the goal, from ``tokens`` as it stands.

    ``path`` is every message of the branch, for what is said of it by ranges.
    """
    resolved = resolve_stages(rules.compaction.stages, path)
    draft = begin_draft(state, turn, rules, goal=goal, stages=resolved.stages)
    walk = _Walk(draft=draft)
    for name in rules.compaction.steps:
        if walk.draft.excess <= 0 or walk.needs:
            break
        walk = _run(replace(walk, skipped=(*walk.skipped, *_unresolved(resolved, name))), name, summaries)
    if walk.needs or walk.draft.tokens >= tokens:
        return Plan(receipt=None, needs=walk.needs)
    receipt = make_receipt(
        state.conversation,
        parent=state.head,
        steps=walk.steps,
        skipped=walk.skipped,
        tokens=(tokens, walk.draft.tokens),
        target=goal,
        automatic=automatic,
    )
    return Plan(receipt=receipt)


def _unresolved(resolved: ResolvedStages, name: StepName) -> Iterator[Skipped]:
    """The stages that a step would take out if this branch had them."""
    for one in resolved.missing:
        if name is (StepName.RECENT_STAGES if one.range.recent else StepName.OLDEST_STAGES):
            yield Skipped(name=name, why=one.why)


def _run(walk: _Walk, name: StepName, summaries: Summaries | None) -> _Walk:
    """One step, repeated while it frees something and the goal is not reached."""
    while walk.draft.excess > 0:
        proposed = propose_summary(walk.draft, summaries) if name is StepName.SUMMARY else STEPS[name](walk.draft)
        if isinstance(proposed, SummaryNeed):
            return _Walk(draft=walk.draft, steps=walk.steps, skipped=walk.skipped, needs=(proposed,))
        if isinstance(proposed, Skipped):
            return _Walk(draft=walk.draft, steps=walk.steps, skipped=(*walk.skipped, proposed))
        if proposed is None:
            return walk
        smaller = shrink_draft(walk.draft, proposed)
        if smaller.tokens >= walk.draft.tokens:
            return _frees_nothing(walk, proposed)
        walk = _Walk(draft=smaller, steps=_add(walk, proposed, smaller.tokens), skipped=walk.skipped)
    return walk


def _frees_nothing(walk: _Walk, cut: Cut) -> _Walk:
    """A cut that is not made; where a text was fetched for it, that is said."""
    if cut.name is not StepName.SUMMARY:
        return walk
    why = "with its exact words it is not smaller than what it replaces"
    return replace(walk, skipped=(*walk.skipped, Skipped(name=cut.name, why=why)))


def _add(walk: _Walk, cut: Cut, tokens_after: int) -> tuple[Step, ...]:
    """The steps with one more; a step that goes on where it stopped is one step, unless a text stands in for each."""
    *before, last = walk.steps or (None,)
    if last is None or last.name is not cut.name or cut.text is not None:
        return (*walk.steps, Step(cut=cut, tokens_before=walk.draft.tokens, tokens_after=tokens_after))
    joined = Cut(name=cut.name, removed=(*last.removed, *cut.removed))
    done = [step for step in before if step is not None]
    return (*done, Step(cut=joined, tokens_before=last.tokens_before, tokens_after=tokens_after))
