"""The chain: steps in their order, until the request has come down to its goal. A plan is a value."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lamella.core.budget.counting import Measure
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.certificate import certify, keep_wishes
from lamella.core.compaction.draft import WHOLE, Draft, Span, begin_draft, shrink_draft
from lamella.core.compaction.rules import ChainRules
from lamella.core.compaction.stages import MissingStage, find_current, resolve_stages
from lamella.core.compaction.steps import STEPS
from lamella.core.compaction.summary import propose_summary
from lamella.core.log.receipt import Receipt, Skip, Step, StepName, make_receipt
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import Planner
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import State
from lamella.core.values import replace

# What makes room where nothing is spared, in this order.
LAST_RESORT = (StepName.TOOL_RESULTS, StepName.PREVIEW, StepName.REPLIES, StepName.HANDLE, StepName.EXPENDABLE)

# What shrinks where it stands: no block before the talk tells of it.
_IN_PLACE = (StepName.TOOL_RESULTS, StepName.REPLIES, StepName.EXPENDABLE)


class Plan(NamedTuple):
    """What a compaction would do, and the prompt it comes to. With ``needs``, those summaries are fetched first."""

    receipt: Receipt | None
    prompt: Prompt | None = None
    needs: tuple[SummaryNeed, ...] = ()


def plan_compaction(
    state: State,
    turn: Turn,
    chain: ChainRules,
    *,
    measure: Measure,
    place: Planner,
    window: int,
    as_is: Prompt,
    goal: int,
    summaries: Summaries | None = None,
    path: Sequence[str] = (),
    automatic: bool = True,
    hard: int | None = None,
    room: int = 0,
    span: Span = WHOLE,
) -> Plan:
    """What would be taken out so that the turn's request comes down to the goal, from the prompt ``as_is``.

    ``path`` is every message of the branch. Still over ``hard``, nothing that was said before is spared. ``room`` is
    for the user's wishes whose messages go. A compaction that would lose an exact word or a wish for good is none.
    Only what is in the ``span`` goes.
    """
    stages, missing = resolve_stages(chain.stages, path)
    weighed = partial(begin_draft, chain=chain, measure=measure, place=place, window=window, goal=goal)
    draft = weighed(state, turn, stages=stages, as_is=as_is, span=span)
    draft = first = replace(draft, current=find_current(chain.stage_after, path))
    steps, skipped = list[Step](), list[Skip]()
    draft, need = _run_all(draft, missing, summaries, steps=steps, skipped=skipped)
    if need is not None:
        return Plan(receipt=None, needs=(need,))
    if hard is not None and draft.tokens > hard:
        draft = _spare_nothing(replace(draft, goal=hard, resort=True), steps, skipped)
    draft = _add_wishes(first, draft, steps, room=room, hard=hard)
    certificate = certify(first.state, draft, steps, path=path)
    if draft.tokens >= as_is.total or certificate.gone:
        return Plan(receipt=None)
    receipt = make_receipt(
        state.conversation,
        parent=state.head,
        steps=tuple(steps),
        skipped=tuple(skipped),
        tokens=(as_is.total, draft.tokens),
        target=goal,
        automatic=automatic,
        certificate=certificate,
        since=span.since,
    )
    return Plan(receipt=receipt, prompt=draft.prompt)


def _run_all(
    draft: Draft,
    missing: Sequence[MissingStage],
    summaries: Summaries | None,
    *,
    steps: list[Step],
    skipped: list[Skip],
) -> tuple[Draft, SummaryNeed | None]:
    """The steps in their order until the goal is reached, or until one needs a summary first."""
    for name in _list_steps(draft.chain, draft.span):
        if draft.excess <= 0:
            break
        skipped += _skip_missing(missing, name) if missing else ()
        draft, need = _run(draft, name, summaries, steps=steps, skipped=skipped)
        if need is not None:
            return draft, need
    return draft, None


def _list_steps(chain: ChainRules, span: Span) -> Sequence[StepName]:
    """The steps that may run; from a message on only those that leave every byte before it where it is."""
    return [name for name in chain.steps if name in _IN_PLACE] if span.since else chain.steps


def _add_wishes(first: Draft, draft: Draft, steps: list[Step], *, room: int, hard: int | None) -> Draft:
    """The draft with the wishes of the messages that went, unless it could not be sent with them."""
    step = keep_wishes(first.state, draft, room=room) if room else None
    if step is None:
        return draft
    larger = shrink_draft(draft, step)
    if hard is not None and larger.tokens > hard:
        return draft
    steps.append(replace(step, tokens_before=draft.tokens, tokens_after=larger.tokens))
    return larger


def _spare_nothing(draft: Draft, steps: list[Step], skipped: list[Skip]) -> Draft:
    """The draft without whatever it takes to be sent: outlines first, then lines, the last exchange last of all."""
    for name in LAST_RESORT:
        if name in draft.chain.steps and draft.excess > 0:
            draft, _ = _run(draft, name, None, steps=steps, skipped=skipped)
    return draft


def _skip_missing(missing: Sequence[MissingStage], name: StepName) -> Iterator[Skip]:
    """The stages that a step would take out if this branch had them."""
    for stage, why in missing:
        if name is (StepName.RECENT_STAGES if stage.recent else StepName.OLDEST_STAGES):
            yield Skip(name=name, why=why)


def _run(
    draft: Draft, name: StepName, summaries: Summaries | None, *, steps: list[Step], skipped: list[Skip]
) -> tuple[Draft, SummaryNeed | None]:
    """One step, repeated while it frees something and the goal is not reached; what it did joins ``steps``."""
    while draft.excess > 0:
        proposed = propose_summary(draft, summaries) if name is StepName.SUMMARY else STEPS[name](draft)
        if isinstance(proposed, SummaryNeed):
            return draft, proposed
        if isinstance(proposed, Skip):
            skipped.append(proposed)
            break
        if proposed is None:
            break
        smaller = shrink_draft(draft, proposed)
        if smaller.tokens >= draft.tokens:
            skipped += _frees_nothing(proposed)
            break
        _add(steps, replace(proposed, tokens_before=draft.tokens, tokens_after=smaller.tokens))
        draft = smaller
    return draft, None


def _frees_nothing(step: Step) -> Iterator[Skip]:
    """A step that is not made; where a text was fetched for it, that is said."""
    if step.name is StepName.SUMMARY:
        yield Skip(name=step.name, why="with its exact words it is not smaller than what it replaces")


def _add(steps: list[Step], step: Step) -> None:
    """One more step; one that goes on where it stopped is the same step, unless a text stands in for each."""
    last = steps[-1] if steps else None
    if last is None or last.name is not step.name or step.text is not None:
        steps.append(step)
    else:
        # A reply that went first alone may go with its question after all.
        removed = tuple(dict.fromkeys((*last.removed, *step.removed)))
        steps[-1] = replace(last, removed=removed, tokens_after=step.tokens_after)
