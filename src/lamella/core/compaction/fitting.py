"""Fit a turn into the budget: send it as it is, or compact first to stay below the hard threshold."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import accumulate

from msgspec import Struct

from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.budget import TokenBudget, Tokenizer, exceeds_share, should_compact
from lamella.core.compaction.chain import plan_compaction
from lamella.core.compaction.outlines import (
    fixed_parts_exceed_hard_threshold,
    outline_attachments,
    stub_attachments,
    summarize_attachments,
)
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.summaries import Summaries, SummaryRequest, with_history_summary
from lamella.core.log.turn import ArtifactForm, HistoryMode, SecretPolicy, Turn, TurnSettings
from lamella.core.prompt.advance import LayoutPlanner, advance_by_turn, get_pending_prompt
from lamella.core.prompt.envelope import Envelope
from lamella.core.prompt.layers.model import PLACEHOLDER_KINDS, LayerId, Segment, SegmentKind
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import ContextBudgetExceededError

# The turn as it is sent, the state that then waits for its reply, and the summaries to fetch before sending.
FittedTurn = tuple[Turn, PromptState, tuple[SummaryRequest, ...]]


class PromptSettings(Struct, frozen=True, kw_only=True):
    """Settings that apply to every turn of a conversation, in addition to its turn settings.

    Attributes:
        secrets: What happens to text that looks like a secret.
        runner_configs: Compaction configs by runner name, for runners that have their own.
    """

    tokenizer: Tokenizer
    plan_layout: LayoutPlanner
    budget: TokenBudget = TokenBudget()
    compaction_config: CompactionConfig = CompactionConfig()
    secrets: SecretPolicy = SecretPolicy.WARN
    runner_configs: Mapping[str, CompactionConfig] = {}

    def compaction_config_for(self, turn_settings: TurnSettings) -> CompactionConfig:
        """Return the compaction config for a turn with these turn settings."""
        return self.runner_configs.get(turn_settings.runner, self.compaction_config)

    def turn_settings_for_runner(self, turn_settings: TurnSettings, runner: str | None) -> TurnSettings:
        """Return the turn settings for a turn that ``runner`` answers; None keeps the runner they name."""
        if runner is None:
            return turn_settings
        return replace(turn_settings, runner=runner)


def fit_turn(
    state: PromptState,
    turn: Turn,
    settings: PromptSettings,
    *,
    summaries: Summaries | None = None,
    message_ids: Sequence[str] = (),
) -> FittedTurn:
    """Return the turn as it is sent, with the compaction it needs, and the state that waits for its reply.

    ``state`` already has the effect of earlier receipts. If the third value is not empty, the caller fetches those
    summaries and calls this function again.
    """
    needs: tuple[SummaryRequest, ...] = ()
    config = settings.compaction_config_for(turn.turn_settings)
    # After a tool round the question was already sent. Only a receipt may then change the prompt before it.
    was_sent = bool(turn.rounds)
    if summaries is not None and turn.turn_settings.history is HistoryMode.STRIP and not was_sent:
        turn, needs = with_history_summary(
            state, turn, settings.tokenizer, plan_layout=settings.plan_layout, config=config, summaries=summaries
        )
    opened = advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer)
    if needs or not _should_compact(opened, state, settings):
        return turn, opened, needs
    condensed = turn
    if not was_sent:
        condensed, needs = summarize_attachments(
            state, turn, opened, config=config, budget=settings.budget, summaries=summaries
        )
    if needs:
        return turn, opened, needs
    # Compare by identity: ``summarize_attachments`` and ``outline_attachments`` return the same object if nothing
    # changed.
    if condensed is not turn:
        turn, opened = condensed, advance_by_turn(state, condensed, settings.plan_layout, tokenizer=settings.tokenizer)
    outlined = (
        turn
        if was_sent or not fixed_parts_exceed_hard_threshold(opened, settings.budget)
        else outline_attachments(turn, opened, settings.budget)
    )
    run = partial(_compact, state, settings=settings, summaries=summaries, message_ids=message_ids)
    fitted = run(outlined) if outlined is not turn else run(turn, opened)
    if was_sent or fitted[2] or not _exceeds_hard_threshold(fitted[1], settings):
        return fitted
    # Attachments that would fit alone may still be too large beside what compaction had to leave.
    tighter = run(outline_attachments(turn, opened, settings.budget, compacted_state=fitted[1]))
    return tighter if not _exceeds_hard_threshold(tighter[1], settings) else _fit_by_stubbing(turn, opened, run)


def _fit_by_stubbing(turn: Turn, pending_state: PromptState, fit: Callable[[Turn], FittedTurn]) -> FittedTurn:
    """Reduce the attachments of the turn to one line each, except those that are already earlier in the prompt."""
    named = stub_attachments(turn, pending_state)
    if named is turn:
        return fit(turn)
    shown = {
        one.id for one in get_pending_prompt(fit(named)[1]).rendered_attachments[0] if one.form is ArtifactForm.HANDLE
    }
    return fit(stub_attachments(turn, pending_state, only_ids=shown))


def _compact(
    state: PromptState,
    turn: Turn,
    pending_state: PromptState | None = None,
    *,
    settings: PromptSettings,
    summaries: Summaries | None,
    message_ids: Sequence[str],
) -> FittedTurn:
    """Return the turn after a compaction, if one is needed and helps.

    ``pending_state`` is the state that waits for the reply without a compaction; it is built here if it is None.
    """
    pending_state = pending_state or advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer)
    if not _should_compact(pending_state, state, settings):
        return turn, pending_state, ()
    plan = plan_compaction(
        state,
        turn,
        settings.compaction_config_for(turn.turn_settings),
        tokenizer=settings.tokenizer,
        plan_layout=settings.plan_layout,
        window=settings.budget.window,
        current_prompt=get_pending_prompt(pending_state),
        goal_tokens=int(settings.budget.target * settings.budget.limit),
        soft_goal_tokens=int(settings.budget.soft_target * settings.budget.limit),
        summaries=summaries,
        message_ids=message_ids,
        hard_limit=int(settings.budget.hard * settings.budget.limit),
    )
    if plan.summary_requests or plan.receipt is None:
        return turn, pending_state, plan.summary_requests
    turn = replace(turn, receipts=(plan.receipt,))
    return turn, advance_by_turn(state, turn, settings.plan_layout, tokenizer=settings.tokenizer), ()


def _exceeds_hard_threshold(pending_state: PromptState, settings: PromptSettings) -> bool:
    return exceeds_share(get_pending_prompt(pending_state).total, settings.budget.hard, settings.budget)


def _should_compact(pending_state: PromptState, state: PromptState, settings: PromptSettings) -> bool:
    return should_compact(
        get_pending_prompt(pending_state).total, settings.budget, last_compacted_total=state.last_compacted_total
    )


def check_fits(envelope: Envelope, budget: TokenBudget, *, attached: Sequence[Artifact] = ()) -> None:
    """Raise an error if a request is over the hard threshold, naming everything in it that may not shrink.

    The error also names folders and tags that added several notes, because the user did not choose those notes one
    by one.
    """
    total = envelope.tokens.total
    if exceeds_share(total, budget.hard, budget):
        hard = int(budget.hard * budget.limit)
        raise ContextBudgetExceededError(
            needed=total,
            hard=hard,
            limit=budget.limit,
            protected=_describe_protected(envelope),
            expanded=_describe_expanded(envelope, attached),
        )


def _describe_protected(envelope: Envelope) -> list[str]:
    """List the parts that are always kept, with their token counts, largest first."""
    parts = sorted(_iter_protected_parts(envelope), key=lambda part: -part[1])
    return [f"{name} ({tokens:,} tokens)" for name, tokens in parts if tokens]


def _describe_expanded(envelope: Envelope, attached: Sequence[Artifact]) -> list[str]:
    """List the folders and tags that added more than one note, largest first."""
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


def _iter_protected_parts(envelope: Envelope) -> Iterator[tuple[str, int]]:
    for segment in envelope.segments(LayerId.L1):
        yield f"the system prompt's {segment.id}", segment.tokens
    yield "tool definitions", envelope.tokens.by_layer["tools"]
    library = envelope.segments(LayerId.L2)
    for segment in library:
        # Pinned, not readable again, or attached recently: everything that is larger than one line.
        if segment.form is not ArtifactForm.HANDLE:
            yield segment.id, segment.tokens
    yield "lines that stand for attachments", sum(one.tokens for one in library if one.form is ArtifactForm.HANDLE)
    for placed in envelope.prompt.unlayered_artifacts:
        yield f"{placed.artifact.id}, in an earlier message", placed.tokens
    asked = {segment.place for segment in envelope.segments(LayerId.L5)}
    for segment in envelope.segments(LayerId.L3):
        called = segment.kind in (ArtifactKind.TOOL, SegmentKind.CALL) and segment.place not in asked
        yield f"{segment.id}, {'called for' if called else 'attached'} now", segment.tokens
    yield from _iter_protected_messages(envelope.segments(LayerId.L4), envelope.prompt.pinned)
    for segment in envelope.segments(LayerId.L5):
        yield "what was typed now", segment.tokens
    tokenizer = envelope.prompt.tokenizer
    yield (
        "what marks off messages",
        tokenizer.tokens_per_message * len(envelope.messages) + tokenizer.tokens_per_request,
    )


def _iter_protected_messages(messages: Sequence[Segment], pinned: Set[str]) -> Iterator[tuple[str, int]]:
    questions = [index for index, segment in enumerate(messages) if segment.kind == SegmentKind.USER]
    last = {segment.place for segment in messages[questions[-1] :]} if questions else set()
    talk = [segment for segment in messages if segment.kind not in PLACEHOLDER_KINDS]
    yield "standing wishes", sum(one.tokens for one in messages if one.kind is SegmentKind.RULES)
    yield (
        "what stands in for earlier turns",
        sum(one.tokens for one in messages if one.kind in PLACEHOLDER_KINDS and one.kind is not SegmentKind.RULES),
    )
    yield "the last exchange", sum(one.tokens for one in talk if one.place in last)
    earlier = [segment for segment in talk if segment.place not in last]
    turns = accumulate(int(segment.kind == SegmentKind.USER) for segment in earlier)
    placed = list(zip(earlier, turns, strict=True))
    # A pinned message keeps its whole turn.
    kept = {turn for segment, turn in placed if segment.id in pinned}
    yield "pinned turns", sum(one.tokens for one, turn in placed if turn in kept)
    # These turns are left only if removing them would free nothing.
    yield "earlier turns", sum(one.tokens for one, turn in placed if turn not in kept)
