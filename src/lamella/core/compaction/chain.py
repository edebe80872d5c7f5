"""The chain: steps in their order, until the request has come down to its goal. A plan is a value."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lamella.core.budget.counting import Measure
from lamella.core.compaction.asking import Summaries, SummaryNeed
from lamella.core.compaction.certificate import Wishes, certify, find_wishes, keep_wishes, trim_wishes
from lamella.core.compaction.draft import WHOLE, Draft, Stretch, begin_draft, shrink_draft
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


class Course(NamedTuple):
    """How far a plan has come: the draft it began with and the one it has, the steps made, and those left to make."""

    first: Draft
    draft: Draft
    names: tuple[StepName, ...]
    steps: tuple[Step, ...] = ()
    skipped: tuple[Skip, ...] = ()


class Plan(NamedTuple):
    """What a compaction would do, and the prompt it comes to.

    With ``needs``, those summaries are fetched first, and it goes on from its ``course``.
    """

    receipt: Receipt | None
    prompt: Prompt | None = None
    needs: tuple[SummaryNeed, ...] = ()
    course: Course | None = None


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
    course: Course | None = None,
    span: Stretch = WHOLE,
) -> Plan:
    """What would be taken out so that the turn's request comes down to the goal, from the prompt ``as_is``.

    ``path`` is every message of the branch. Still over ``hard``, nothing that was said before is spared. ``room`` is
    for the wishes whose messages go. What would lose an exact word or a wish for good is none. One that stopped for a
    summary goes on in its ``course``. Only what is in the ``span`` goes.
    """
    stages, missing = resolve_stages(chain.stages, path) if chain.stages else ((), ())
    weighed = partial(begin_draft, chain=chain, measure=measure, place=place, window=window, goal=goal)
    course = course or _begin(weighed(state, turn, stages=stages, as_is=as_is, span=span), path, room=room)
    course, need = _go_on(course, summaries, missing)
    if need is not None:
        return Plan(receipt=None, needs=(need,), course=course)
    draft, steps, skipped = course.draft, list(course.steps), list(course.skipped)
    if hard is not None and draft.tokens > hard:
        draft = _spare_nothing(replace(draft, goal=hard, resort=True), steps, skipped, room=room)
    wishes = find_wishes(course.first.state, draft, steps)
    draft = _add_wishes(draft, wishes, steps, room=room, hard=hard)
    certificate = certify(course.first.state, draft, steps, wishes=wishes, path=path)
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


def _begin(first: Draft, path: Sequence[str], *, room: int) -> Course:
    """The course of a plan that has done nothing yet, but that no more wishes stand than have room."""
    after = first.chain.stage_after
    if after is not None:
        first = replace(first, current=find_current(after, path))
    steps: list[Step] = []
    trims = bool(first.state.talk.opening.blocks) and not first.span.since and first.excess > 0
    draft = _trim_wishes(first, steps, room=room) if trims else first
    return Course(first=first, draft=draft, names=_list_steps(first.chain, first.span), steps=tuple(steps))


def _go_on(
    course: Course, summaries: Summaries | None, missing: Sequence[MissingStage]
) -> tuple[Course, SummaryNeed | None]:
    """The course once its goal is reached or no step is left, or as far as it comes without a summary."""
    draft, steps, skipped = course.draft, list(course.steps), list(course.skipped)
    need: SummaryNeed | None = None
    left = course.names
    while left and need is None and draft.prompt.total > draft.goal:
        skipped += _skip_missing(missing, left[0]) if missing else ()
        draft, need = _run(draft, left[0], summaries, steps=steps, skipped=skipped)
        left = left if need is not None else left[1:]
    return Course(first=course.first, draft=draft, names=left, steps=tuple(steps), skipped=tuple(skipped)), need


def _list_steps(chain: ChainRules, span: Stretch) -> tuple[StepName, ...]:
    """The steps that may run; from a message on only those that leave every byte before it where it is."""
    return tuple([name for name in chain.steps if name in _IN_PLACE]) if span.since else chain.steps


def _add_wishes(draft: Draft, wishes: Wishes, steps: list[Step], *, room: int, hard: int | None) -> Draft:
    """The draft with the wishes of the messages that went, unless it could not be sent with them."""
    step = keep_wishes(wishes, draft, room=room) if room else None
    if step is None:
        return draft
    larger = shrink_draft(draft, step)
    if hard is not None and larger.tokens > hard:
        return draft
    steps.append(replace(step, tokens_before=draft.tokens, tokens_after=larger.tokens))
    return larger


def _trim_wishes(draft: Draft, steps: list[Step], *, room: int) -> Draft:
    """The draft with no more standing wishes than have room: those of a larger window would leave none for talk."""
    step = trim_wishes(draft, room=room) if room else None
    if step is None:
        return draft
    smaller = shrink_draft(draft, step)
    steps.append(replace(step, tokens_before=draft.tokens, tokens_after=smaller.tokens))
    return smaller


def _spare_nothing(draft: Draft, steps: list[Step], skipped: list[Skip], *, room: int) -> Draft:
    """The draft without whatever it takes to be sent: outlines first, then lines, then the last exchange.

    Wishes that a larger window had room for go before that, what the model has called for last goes last of all.
    """
    draft = _trim_wishes(draft, steps, room=room)
    for name in LAST_RESORT:
        if name in draft.chain.steps and draft.excess > 0:
            draft, _ = _run(draft, name, None, steps=steps, skipped=skipped)
    if StepName.TOOL_RESULTS in draft.chain.steps and draft.excess > 0:
        draft, _ = _run(replace(draft, stuck=True), StepName.TOOL_RESULTS, None, steps=steps, skipped=skipped)
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
    tokens = draft.prompt.total
    while tokens > draft.goal:
        proposed = propose_summary(draft, summaries) if name is StepName.SUMMARY else STEPS[name](draft)
        if isinstance(proposed, SummaryNeed):
            return draft, proposed
        if isinstance(proposed, Skip):
            skipped.append(proposed)
            break
        if proposed is None:
            break
        smaller = shrink_draft(draft, proposed)
        weighs = smaller.prompt.total
        if weighs >= tokens:
            skipped += _frees_nothing(proposed)
            break
        _add(steps, replace(proposed, tokens_before=tokens, tokens_after=weighs))
        draft, tokens = smaller, weighs
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
        gists = {
            **dict(zip(last.removed, last.gists, strict=False)),
            **dict(zip(step.removed, step.gists, strict=False)),
        }
        steps[-1] = replace(last, removed=removed, gists=tuple(gists.values()), tokens_after=step.tokens_after)
