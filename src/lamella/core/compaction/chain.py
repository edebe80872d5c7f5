"""The compaction chain: run the steps in order until the request has reached its token target."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from lamella.core.budget import Tokenizer
from lamella.core.compaction.draft import ALL_TURNS, PromptDraft, TurnRange, apply_step_to_draft, make_draft
from lamella.core.compaction.rules import CompactionConfig, MissingStage, current_stage_messages, resolve_stages
from lamella.core.compaction.steps import STEP_FUNCTIONS
from lamella.core.compaction.summaries import Summaries, SummaryRequest, propose_summary
from lamella.core.compaction.summary_checks import (
    RulesByMessage,
    build_certificate,
    find_removed_rules,
    rules_block_step,
    trim_rules_step,
)
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
    CompactionStepName.EXPENDABLE,
)

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
    summaries: Summaries | None = None,
    message_ids: Sequence[str] = (),
    automatic: bool = True,
    hard_limit: int | None = None,
    max_rules_tokens: int = 0,
    progress: CompactionProgress | None = None,
    turn_range: TurnRange = ALL_TURNS,
) -> CompactionPlan:
    """Plan what to remove so that the request of a turn, now ``current_prompt``, shrinks to ``goal_tokens`` tokens.

    - ``message_ids`` has every message id of the branch, oldest first.
    - ``hard_limit``: if the request is still larger than this, earlier messages and attachments lose their protection.
    - ``max_rules_tokens`` is the token limit for the rules of removed messages. 0 means that no rules block is written.
    - ``progress`` is the progress of a plan that stopped because it needed a summary; the plan continues there.
    - ``turn_range`` is the range of turns from which something may be removed.

    The plan has no receipt if the request would not get smaller, or if an exact string or a user rule would be lost
    for good.
    """
    stages, missing = resolve_stages(config.stages, message_ids) if config.stages else ((), ())
    weighed = partial(
        make_draft, config=config, tokenizer=tokenizer, plan_layout=plan_layout, window=window, goal_tokens=goal_tokens
    )
    progress = progress or _start_plan(
        weighed(state, turn, stages=stages, current_prompt=current_prompt, turn_range=turn_range),
        message_ids,
        max_rules_tokens=max_rules_tokens,
    )
    progress, request = _run_steps(progress, summaries, missing)
    if request is not None:
        return CompactionPlan(receipt=None, summary_requests=(request,), progress=progress)
    draft, steps, skipped = progress.draft, list(progress.steps), list(progress.skipped)
    if hard_limit is not None and draft.tokens > hard_limit:
        draft = _remove_protected_parts(
            replace(draft, goal_tokens=hard_limit, is_last_resort=True),
            steps,
            skipped,
            max_rules_tokens=max_rules_tokens,
        )
    wishes = find_removed_rules(progress.initial_draft.state, draft, steps)
    draft = _add_rules(draft, wishes, steps, max_tokens=max_rules_tokens, hard_limit=hard_limit)
    certificate = build_certificate(progress.initial_draft.state, draft, steps, rules=wishes, branch_ids=message_ids)
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
    )
    return CompactionPlan(receipt=receipt, prompt=draft.prompt)


def _start_plan(initial_draft: PromptDraft, message_ids: Sequence[str], *, max_rules_tokens: int) -> CompactionProgress:
    """Return the progress of a plan that has removed nothing yet, except user rules beyond their token limit."""
    after = initial_draft.config.current_stage_after
    if after is not None:
        initial_draft = replace(initial_draft, current_stage_ids=current_stage_messages(after, message_ids))
    steps: list[CompactionStep] = []
    # A compaction from a message onwards keeps every byte before it, and the rules block is before it.
    trims = (
        bool(initial_draft.state.history.preamble.blocks)
        and not initial_draft.turn_range.since_message
        and initial_draft.excess_tokens > 0
    )
    draft = _trim_rules(initial_draft, steps, max_tokens=max_rules_tokens) if trims else initial_draft
    return CompactionProgress(
        initial_draft=initial_draft,
        draft=draft,
        remaining_steps=_allowed_steps(initial_draft.config, initial_draft.turn_range),
        steps=tuple(steps),
    )


def _run_steps(
    progress: CompactionProgress, summaries: Summaries | None, missing: Sequence[MissingStage]
) -> tuple[CompactionProgress, SummaryRequest | None]:
    """Run steps until the goal is reached, no step is left, or a summary has to be fetched."""
    draft, steps, skipped = progress.draft, list(progress.steps), list(progress.skipped)
    request: SummaryRequest | None = None
    left = progress.remaining_steps
    while left and request is None and draft.prompt.total > draft.goal_tokens:
        skipped += _skip_missing(missing, left[0]) if missing else ()
        draft, request = _run_step(draft, left[0], summaries, steps=steps, skipped=skipped)
        # A step that waits for a summary stays in the list and runs again when the plan continues.
        left = left if request is not None else left[1:]
    return CompactionProgress(
        initial_draft=progress.initial_draft,
        draft=draft,
        remaining_steps=left,
        steps=tuple(steps),
        skipped=tuple(skipped),
    ), request


def _allowed_steps(config: CompactionConfig, turn_range: TurnRange) -> tuple[CompactionStepName, ...]:
    """Return the steps that may run; with ``turn_range.since`` only those that change no byte before that message."""
    return (
        tuple([name for name in config.steps if name in _IN_PLACE_STEPS]) if turn_range.since_message else config.steps
    )


def _add_rules(
    draft: PromptDraft, rules: RulesByMessage, steps: list[CompactionStep], *, max_tokens: int, hard_limit: int | None
) -> PromptDraft:
    """Add the rules of removed messages to the draft, unless the request would exceed ``hard_limit`` with them."""
    step = rules_block_step(rules, draft, max_tokens=max_tokens) if max_tokens else None
    if step is None:
        return draft
    larger = apply_step_to_draft(draft, step)
    if hard_limit is not None and larger.tokens > hard_limit:
        return draft
    steps.append(replace(step, tokens_before=draft.tokens, tokens_after=larger.tokens))
    return larger


def _trim_rules(draft: PromptDraft, steps: list[CompactionStep], *, max_tokens: int) -> PromptDraft:
    """Cut the rules block to its token limit; a block from a larger window could leave no space for messages."""
    step = trim_rules_step(draft, max_tokens=max_tokens) if max_tokens else None
    if step is None:
        return draft
    smaller = apply_step_to_draft(draft, step)
    steps.append(replace(step, tokens_before=draft.tokens, tokens_after=smaller.tokens))
    return smaller


def _remove_protected_parts(
    draft: PromptDraft, steps: list[CompactionStep], skipped: list[SkippedStep], *, max_rules_tokens: int
) -> PromptDraft:
    """Remove whatever is necessary so that the request can be sent.

    Rules that only a larger window had space for go first. Then the ``LAST_RESORT_STEPS`` steps run: outlines, then
    single lines, then the last turn. The tool results that the model requested last go last of all.
    """
    draft = _trim_rules(draft, steps, max_tokens=max_rules_tokens)
    for name in LAST_RESORT_STEPS:
        if name in draft.config.steps and draft.excess_tokens > 0:
            draft, _ = _run_step(draft, name, None, steps=steps, skipped=skipped)
    if CompactionStepName.TOOL_RESULTS in draft.config.steps and draft.excess_tokens > 0:
        draft, _ = _run_step(
            replace(draft, is_turn_stuck=True), CompactionStepName.TOOL_RESULTS, None, steps=steps, skipped=skipped
        )
    return draft


def _skip_missing(missing: Sequence[MissingStage], name: CompactionStepName) -> Iterator[SkippedStep]:
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
) -> tuple[PromptDraft, SummaryRequest | None]:
    """Repeat one step while it frees tokens and the goal is not reached; append its results to ``steps``.

    Returns the draft, and the summary request that the step is waiting for, if any.
    """
    tokens = draft.prompt.total
    while tokens > draft.goal_tokens:
        proposed = (
            propose_summary(draft, summaries) if name is CompactionStepName.SUMMARY else STEP_FUNCTIONS[name](draft)
        )
        if isinstance(proposed, SummaryRequest):
            return draft, proposed
        if isinstance(proposed, SkippedStep):
            skipped.append(proposed)
            break
        if proposed is None:
            break
        smaller = apply_step_to_draft(draft, proposed)
        weighs = smaller.prompt.total
        if weighs >= tokens:
            skipped += _skip_useless_summary(proposed)
            break
        _append_step(steps, replace(proposed, tokens_before=tokens, tokens_after=weighs))
        draft, tokens = smaller, weighs
    return draft, None


def _skip_useless_summary(step: CompactionStep) -> Iterator[SkippedStep]:
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
        gists = {
            **dict(zip(last.removed, last.outlines, strict=False)),
            **dict(zip(step.removed, step.outlines, strict=False)),
        }
        steps[-1] = replace(last, removed=removed, outlines=tuple(gists.values()), tokens_after=step.tokens_after)
