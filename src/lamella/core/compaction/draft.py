"""The draft of a request during compaction: prompt state, next turn, and the prompt they give."""

from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from msgspec import Struct

from lamella.core.budget import Tokenizer
from lamella.core.compaction.directives import Directives
from lamella.core.compaction.rules import CompactionConfig, StageMessages
from lamella.core.log.receipts import CompactionStep
from lamella.core.log.turn import Turn
from lamella.core.prompt.advance import LayoutPlanner, advance_by_turn, get_pending_prompt
from lamella.core.prompt.layers.history import HistoryTurn
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.receipts import apply_step, fold_for_receipt, recompute_tool_result_positions, with_prefix_kept
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace


class TurnRange(NamedTuple):
    """The range of turns from which compaction may remove something, by turn index, both ends included.

    ``last`` None means no upper end. If ``since_message`` names a message, every byte before that message stays as it
    was sent.
    """

    first: int = 0
    last: int | None = None
    since_message: str = ""

    def contains_turn(self, turn_index: int) -> bool:
        """Return whether a turn is in the range; ``turn_index`` is how many turns were asked before it."""
        return self.first <= turn_index and (self.last is None or turn_index <= self.last)


ALL_TURNS = TurnRange()


class PromptDraft(Struct, frozen=True, kw_only=True, dict=True):
    """A prompt state and the turn to be sent next, with the prompt that they give.

    Attributes:
        goal_tokens: The token count that the request is to be reduced to.
        stages: The completed stages, each with all its messages, including those that were already removed.
        current_stage_ids: The messages of the current stage; None if the conversation has no stages.
        is_last_resort: Whether earlier messages and attachments lose their protection, because the question could not
            be sent otherwise.
        is_turn_stuck: Whether the results that the model works with now lose their protection too, because the turn
            could not continue otherwise.
        turn_range: Only turns in this range may be shortened or removed.
    """

    state: PromptState
    turn: Turn
    config: CompactionConfig
    tokenizer: Tokenizer
    plan_layout: LayoutPlanner
    window: int
    prompt: Prompt
    goal_tokens: int
    stages: tuple[StageMessages, ...] = ()
    current_stage_ids: frozenset[str] | None = None
    is_last_resort: bool = False
    is_turn_stuck: bool = False
    turn_range: TurnRange = ALL_TURNS

    @property
    def names_recall(self) -> bool:
        """Whether placeholders name recall, as the turn settings say."""
        return self.turn.turn_settings.names_recall

    @property
    def tokens(self) -> int:
        return self.prompt.total

    @property
    def excess_tokens(self) -> int:
        return self.prompt.total - self.goal_tokens

    @cached_property
    def removable_turns(self) -> tuple[HistoryTurn, ...]:
        """Return the turns that may be removed: all shown turns except the last one.

        The last turn is included only as a last resort. A turn with a pinned message is never included.
        """
        pinned = self.prompt.pinned
        history = self.state.history
        shown = history.turns[history.hidden_turns : None if self.is_last_resort else -1]
        # Comparing by identity is enough: every draft without a range has the default object.
        if self.turn_range is not ALL_TURNS:
            shown = tuple([one for one in shown if self.turn_range.contains_turn(one.turn_index)])
        if not pinned:
            return shown
        return tuple([one for one in shown if pinned.isdisjoint([message.id for message in one.messages])])

    @property
    def leading_movable_turns(self) -> tuple[HistoryTurn, ...]:
        """Return the oldest shown turns that may leave their place, pinned ones included, up to the first that may not.

        The last turn is included only as a last resort.
        """
        history = self.state.history
        shown = history.turns[history.hidden_turns : None if self.is_last_resort else -1]
        free = (
            self.turn_range.contains_turn(turn.turn_index)
            and not (self.config.protects_current_stage and self.is_in_current_stage(turn))
            for turn in shown
        )
        return tuple([turn for turn, _ in zip(shown, takewhile(bool, free), strict=False)])

    @cached_property
    def directives(self) -> Directives:
        """Find the directives in the user's messages of the conversation."""
        return Directives(self.state.history, self.config.words, dismissed=[text for _, text in self.state.rules.ended])

    def is_in_current_stage(self, turn: HistoryTurn) -> bool:
        """Return whether a turn, or a reply that was joined to it, belongs to the current stage."""
        return self.current_stage_ids is not None and any(
            message.id in self.current_stage_ids for message in turn.messages
        )

    @property
    def attached_or_dropped_ids(self) -> frozenset[str]:
        """Return the ids that this turn attaches or drops; shortening them in the library would free nothing."""
        attached = (artifact.id for artifact in (*self.turn.tool_results, *self.turn.attached))
        return frozenset((*attached, *self.turn.drop))


def make_draft(
    state: PromptState,
    turn: Turn,
    *,
    config: CompactionConfig,
    tokenizer: Tokenizer,
    plan_layout: LayoutPlanner,
    window: int,
    goal_tokens: int,
    stages: tuple[StageMessages, ...] = (),
    current_prompt: Prompt | None = None,
    turn_range: TurnRange = ALL_TURNS,
) -> PromptDraft:
    """Return the draft that a compaction starts from: folded, with nothing removed yet.

    Every compaction starts a new epoch, so the state is folded first, except with ``turn_range.since``.
    ``current_prompt`` is the prompt of the turn before folding; it is reused if folding would give the same prompt.
    """
    if turn_range.since_message:
        folded = with_prefix_kept(state, turn_range.since_message)
    else:
        folded = recompute_tool_result_positions(
            fold_for_receipt(state, turn.turn_settings, tokenizer), turn.turn_settings, tokenizer
        )
    if turn_range.since_message or current_prompt is None or not _is_folded(current_prompt, state):
        current_prompt = get_pending_prompt(advance_by_turn(folded, turn, plan_layout, tokenizer=tokenizer))
    return PromptDraft(
        state=folded,
        turn=turn,
        config=config,
        tokenizer=tokenizer,
        plan_layout=plan_layout,
        window=window,
        prompt=current_prompt,
        goal_tokens=goal_tokens,
        stages=stages,
        turn_range=turn_range,
    )


def apply_step_to_draft(draft: PromptDraft, step: CompactionStep) -> PromptDraft:
    """Apply one step to the draft and build its prompt again, so that the token count is exact."""
    state = apply_step(draft.state, step, draft.turn.turn_settings, draft.tokenizer)
    if not draft.turn_range.since_message:
        state = recompute_tool_result_positions(state, draft.turn.turn_settings, draft.tokenizer)
    turn = draft.turn
    # The data of workflow stages is part of the system prompt of the turn, not of the state.
    if turn.system is not None and turn.system.workflow_detail:
        turn = replace(turn, system=turn.system.with_brief_stages(step.removed))
    prompt = get_pending_prompt(advance_by_turn(state, turn, draft.plan_layout, tokenizer=draft.tokenizer))
    return replace(draft, state=state, turn=turn, prompt=prompt)


def _is_folded(current_prompt: Prompt, state: PromptState) -> bool:
    """Return whether folding first would give the same prompt.

    It does if the layout plan folds everything and no turn of this epoch has tool results, which folding would
    shorten.
    """
    ended = state.history.turns[state.history.epoch_start :]
    folds = current_prompt.layout_plan.keep_messages == 0 and not current_prompt.layout_plan.forms
    return folds and not any(turn.tool_results or turn.rounds for turn in ended)
