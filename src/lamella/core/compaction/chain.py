"""The compaction chain: run the steps in order until the request has reached its token target."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lamella.core.budget import Tokenizer
from lamella.core.compaction.draft import ALL_TURNS, PromptDraft, TurnRange, apply_step_to_draft, make_draft
from lamella.core.compaction.rules import CompactionConfig, MissingStage, current_stage_messages, resolve_stages
from lamella.core.compaction.steps import STEP_FUNCTIONS
from lamella.core.compaction.summaries import Summaries, SummaryRequest, propose_summary
from lamella.core.compaction.summary_checks import build_certificate
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName, SkippedStep, make_receipt
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import LayoutPlanner
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

# The steps that run, in this order, when the request is still over the hard threshold and nothing is protected.
LAST_RESORT_STEPS = (
    CompactionStepName.TOOL_RESULTS,
    CompactionStepName.PREVIEW,
    CompactionStepName.REPLIES,
    CompactionStepName.HANDLE,
    CompactionStepName.LAST_REPLY,
    CompactionStepName.DIGEST,
    CompactionStepName.EXPENDABLE,
)

# The steps that touch what the user and the model said last. They stop at the higher of the two goals.
_SOFT_STEPS = (CompactionStepName.LAST_REPLY, CompactionStepName.EXPENDABLE)

# The steps that shorten messages in place. They add no block before the history, so the prefix stays unchanged.
_IN_PLACE_STEPS = (CompactionStepName.TOOL_RESULTS, CompactionStepName.REPLIES, CompactionStepName.EXPENDABLE)


class CompactionProgress(NamedTuple):
    """The progress of a plan: its first and current draft, the steps made, and the step names still to run."""

    initial_draft: PromptDraft
    draft: PromptDraft
    remaining_steps: tuple[CompactionStepName, ...]
    steps: tuple[CompactionStep, ...] = ()
    skipped: tuple[SkippedStep, ...] = ()


class CompactionPlan(NamedTuple):
    """The result of planning a compaction: its receipt and the prompt that it leads to.

    ``receipt`` is None if a compaction would not help. If ``summary_requests`` is not empty, the caller fetches those
    summaries first and then continues the plan from ``progress``.
    """

    receipt: CompactionReceipt | None
    prompt: Prompt | None = None
    summary_requests: tuple[SummaryRequest, ...] = ()
    progress: CompactionProgress | None = None


def plan_compaction(
    state: PromptState,
    turn: Turn,
    config: CompactionConfig,
    *,
    tokenizer: Tokenizer,
    plan_layout: LayoutPlanner,
    window: int,
    current_prompt: Prompt,
    goal_tokens: int,
    soft_goal_tokens: int | None = None,
    summaries: Summaries | None = None,
    message_ids: Sequence[str] = (),
    automatic: bool = True,
    hard_limit: int | None = None,
    progress: CompactionProgress | None = None,
    turn_range: TurnRange = ALL_TURNS,
) -> CompactionPlan:
    """Plan what to remove so that the request of a turn, now ``current_prompt``, shrinks to ``goal_tokens`` tokens.

    - ``soft_goal_tokens`` is the goal down to which messages of the user are removed; ``goal_tokens`` if it is None.
      It applies to a chain with the step ``digest``.
    - ``message_ids`` has every message id of the branch, oldest first.
    - ``hard_limit``: if the request is still larger than this, earlier messages and attachments lose their protection.
    - ``progress`` is the progress of a plan that stopped because it needed a summary; the plan continues there.
    - ``turn_range`` is the range of turns from which something may be removed.

    The plan has no receipt if the request would not get smaller, or if an exact string or a directive would be lost for
    good.
    """
    stages, missing = resolve_stages(config.stages, message_ids) if config.stages else ((), ())
    weighed = partial(
        make_draft, config=config, tokenizer=tokenizer, plan_layout=plan_layout, window=window, goal_tokens=goal_tokens
    )
    progress = progress or _start_plan(
        weighed(state, turn, stages=stages, current_prompt=current_prompt, turn_range=turn_range),
        message_ids,
    )
    soft_goal = goal_tokens
    if soft_goal_tokens is not None and CompactionStepName.DIGEST in config.steps:
        soft_goal = max(goal_tokens, soft_goal_tokens)
    progress, requests = _run_steps(progress, summaries, missing, soft_goal=soft_goal)
    if requests:
        return CompactionPlan(receipt=None, summary_requests=requests, progress=progress)
    draft, steps, skipped = progress.draft, list(progress.steps), list(progress.skipped)
    if hard_limit is not None and draft.tokens > hard_limit:
        draft = _remove_protected_parts(replace(draft, goal_tokens=hard_limit, is_last_resort=True), steps, skipped)
    certificate = build_certificate(progress.initial_draft.state, draft, steps, branch_ids=message_ids)
    if draft.tokens >= current_prompt.total or certificate.lost_count:
        return CompactionPlan(receipt=None)
    receipt = make_receipt(
        state.conversation,
        parent=state.head,
        steps=tuple(steps),
        skipped=tuple(skipped),
        tokens=(current_prompt.total, draft.tokens),
        target=goal_tokens,
        automatic=automatic,
        certificate=certificate,
        since_message=turn_range.since_message,
        soft_target=soft_goal if soft_goal != goal_tokens else 0,
    )
    return CompactionPlan(receipt=receipt, prompt=draft.prompt)


def _start_plan(initial_draft: PromptDraft, message_ids: Sequence[str]) -> CompactionProgress:
    """Return the progress of a plan that has removed nothing yet."""
    after = initial_draft.config.current_stage_after
    if after is not None:
        initial_draft = replace(initial_draft, current_stage_ids=current_stage_messages(after, message_ids))
    return CompactionProgress(
        initial_draft=initial_draft,
        draft=initial_draft,
        remaining_steps=_allowed_steps(initial_draft.config, initial_draft.turn_range),
    )


def _run_steps(
    progress: CompactionProgress, summaries: Summaries | None, missing: Sequence[MissingStage], *, soft_goal: int
) -> tuple[CompactionProgress, tuple[SummaryRequest, ...]]:
    """Run steps until the goals are reached, no step is left, or a summary has to be fetched."""
    draft, steps, skipped = progress.draft, list(progress.steps), list(progress.skipped)
    goal = draft.goal_tokens
    requests: tuple[SummaryRequest, ...] = ()
    left = progress.remaining_steps
    while left and not requests and draft.prompt.total > goal:
        skipped += _skip_stages_of_other_branches(missing, left[0]) if missing else ()
        draft = replace(draft, goal_tokens=soft_goal if left[0] in _SOFT_STEPS else goal)
        draft, requests = _run_step(draft, left[0], summaries, steps=steps, skipped=skipped)
        # A step that waits for a summary stays in the list and runs again when the plan continues.
        left = left if requests else left[1:]
    return CompactionProgress(
        initial_draft=progress.initial_draft,
        draft=replace(draft, goal_tokens=goal),
        remaining_steps=left,
        steps=tuple(steps),
        skipped=tuple(skipped),
    ), requests


def _allowed_steps(config: CompactionConfig, turn_range: TurnRange) -> tuple[CompactionStepName, ...]:
    """Return the steps that may run; with ``turn_range.since_message`` only those that change nothing before it."""
    return (
        tuple([name for name in config.steps if name in _IN_PLACE_STEPS]) if turn_range.since_message else config.steps
    )


def _remove_protected_parts(draft: PromptDraft, steps: list[CompactionStep], skipped: list[SkippedStep]) -> PromptDraft:
    """Remove as much as necessary to send the request.

    The ``LAST_RESORT_STEPS`` run: outlines, then the last turn. The tool results that the model requested last go last
    of all.
    """
    for name in LAST_RESORT_STEPS:
        if name in draft.config.steps and draft.excess_tokens > 0:
            draft, _ = _run_step(draft, name, None, steps=steps, skipped=skipped)
    if CompactionStepName.EXPENDABLE in draft.config.steps and draft.excess_tokens > 0:
        draft = _remove_every_turn(draft, steps)
    if CompactionStepName.TOOL_RESULTS in draft.config.steps and draft.excess_tokens > 0:
        draft, _ = _run_step(
            replace(draft, is_turn_stuck=True), CompactionStepName.TOOL_RESULTS, None, steps=steps, skipped=skipped
        )
    return draft


def _remove_every_turn(draft: PromptDraft, steps: list[CompactionStep]) -> PromptDraft:
    """Remove all earlier turns without a pin, hidden ones included: the summary of hidden turns leaves with them."""
    pinned = draft.prompt.pinned
    turns = [turn for turn in draft.state.history.turns if pinned.isdisjoint([message.id for message in turn.messages])]
    removed = tuple([message.id for turn in turns for message in (turn.question, *turn.replies)])
    if not removed:
        return draft
    step = CompactionStep(name=CompactionStepName.EXPENDABLE, removed=removed)
    smaller = apply_step_to_draft(draft, step)
    if smaller.tokens >= draft.tokens:
        return draft
    _append_step(steps, replace(step, tokens_before=draft.tokens, tokens_after=smaller.tokens))
    return smaller


def _skip_stages_of_other_branches(missing: Sequence[MissingStage], name: CompactionStepName) -> Iterator[SkippedStep]:
    """Yield a skipped step for each stage that the step would remove if it were on this branch."""
    for stage, why in missing:
        if name is (CompactionStepName.RECENT_STAGES if stage.recent else CompactionStepName.OLDEST_STAGES):
            yield SkippedStep(name=name, why=why)


def _run_step(
    draft: PromptDraft,
    name: CompactionStepName,
    summaries: Summaries | None,
    *,
    steps: list[CompactionStep],
    skipped: list[SkippedStep],
) -> tuple[PromptDraft, tuple[SummaryRequest, ...]]:
    """Repeat one step while it frees tokens and the goal is not reached; append its results to ``steps``.

    Returns the draft, and the summary requests that the step is waiting for, if any.
    """
    tokens = draft.prompt.total
    while tokens > draft.goal_tokens:
        proposed = (
            propose_summary(draft, summaries) if name is CompactionStepName.SUMMARY else STEP_FUNCTIONS[name](draft)
        )
        if isinstance(proposed, tuple):
            return draft, proposed
        if isinstance(proposed, SkippedStep):
            skipped.append(proposed)
            break
        if proposed is None:
            break
        smaller = apply_step_to_draft(draft, proposed)
        weighs = smaller.prompt.total
        if weighs >= tokens:
            skipped += _explain_useless_summary(proposed)
            break
        _append_step(steps, replace(proposed, tokens_before=tokens, tokens_after=weighs))
        draft, tokens = smaller, weighs
    return draft, ()


def _explain_useless_summary(step: CompactionStep) -> Iterator[SkippedStep]:
    """Yield a reason for a step that would free nothing; only a summary, which cost a call, needs one."""
    if step.name is CompactionStepName.SUMMARY:
        yield SkippedStep(name=step.name, why="with its exact words it is not smaller than what it replaces")


def _append_step(steps: list[CompactionStep], step: CompactionStep) -> None:
    """Append a step, or merge it into the last one if that has the same name and no placeholder text."""
    last = steps[-1] if steps else None
    if last is None or last.name is not step.name or step.text is not None:
        steps.append(step)
    else:
        # A reply that was removed alone at first can be removed again together with its question, so ids repeat.
        removed = tuple(dict.fromkeys((*last.removed, *step.removed)))
        left = {
            **dict(zip(last.removed, last.outlines, strict=False)),
            **dict(zip(step.removed, step.outlines, strict=False)),
        }
        outlines = tuple([left.get(name, "") for name in removed]) if left else ()
        steps[-1] = replace(last, removed=removed, outlines=outlines, tokens_after=step.tokens_after)
