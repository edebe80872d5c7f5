"""Replay stored turns: compute the state that past turns lead to, many at a time where they are alike.

``advance_by_turn`` handles one turn. Replay leaves out work whose result is not needed: prompts that were sent long ago, folds
that the next turn repeats, and reply outlines that a later compaction removes. Opening a conversation of a thousand
turns takes a third of the time that advancing each turn takes (2026-11-17, ``python -m bench stores``). A turn that
does anything unusual is advanced normally. Property tests check that both ways lead to the same state:
``tests/unit/core/prompt/test_replay.py`` and ``tests/invariants/test_rounds.py``.
"""

from collections.abc import Mapping, Sequence, Set

from lamella.core.artifacts.kinds import goes_to_library
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.budget import Tokenizer
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName
from lamella.core.log.turn import (
    AttachmentMode,
    HistoryMode,
    LayoutPlan,
    MessageAuthor,
    Turn,
    TurnBatch,
    TurnSettings,
    compute_message_id,
    question_id,
)
from lamella.core.prompt.advance import (
    LayoutPlanner,
    advance_by_turn,
    list_placed_tool_results,
    record_turn_attachments,
)
from lamella.core.prompt.attachment_delta import (
    changed_ids_shown_in_full,
    render_attachments_and_changes,
    working_set_ids,
)
from lamella.core.prompt.attachments import collect_attachments, is_in_working_set, update_library
from lamella.core.prompt.cache_history import CacheHistoryBuilder
from lamella.core.prompt.folding import fold_library
from lamella.core.prompt.layers.history import HistoryTurn, make_plain_turns
from lamella.core.prompt.layers.library import LibraryEntry, attachment_age
from lamella.core.prompt.layers.model import message_position
from lamella.core.prompt.layers.turn import NO_ATTACHMENTS, RenderedAttachments, render_attachments, with_updates_joined
from lamella.core.prompt.prompt import build_question_message, has_system_message
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

_REPLY = MessageAuthor.REPLY
_STICKY = AttachmentMode.STICKY
# Steps after which a reply is one line, is covered by a summary, or is removed.
_REMOVING_STEPS = (
    CompactionStepName.EXPENDABLE,
    CompactionStepName.CHITCHAT,
    CompactionStepName.SUMMARY,
    CompactionStepName.OLDEST_STAGES,
)


def replay_turns(
    state: PromptState, turns: Sequence[Turn | TurnBatch], plan_layout: LayoutPlanner, *, tokenizer: Tokenizer
) -> PromptState:
    """Return the state after all these turns.

    Most turns of a long conversation only ask, or attach something. They are replayed together, without building
    prompts. The last turn is always advanced, so that the state has its prompt.
    """
    if not turns:
        return state
    *past, last = turns
    if isinstance(last, TurnBatch):
        past += [before] if (before := last.without_last()) else []
        last = last.get_last_turn()
    pending = _skip_superseded_replies(past)[::-1]
    replay = _AppendOnlyReplay(state, tokenizer)
    # Turns that only ask are replayed alike as long as they have these settings: either each folds, or none does.
    alike: TurnSettings | None = None
    while pending:
        part = pending.pop()
        turn = part if isinstance(part, Turn) else part.get_turn(0)
        passes = _changes_only_history_and_library(replay.state, turn)
        if passes and turn.turn_settings is alike and not part.attached:
            replay.add_turns(part)
            continue
        layout_plan = plan_layout(replay.state, turn) if passes else None
        if layout_plan is not None and not replay.can_add(part, layout_plan):
            replay = _start_replay(replay.final_state(), turn, layout_plan, tokenizer=tokenizer)
        if layout_plan is not None and replay.can_add(part, layout_plan):
            replay.add_turns(part)
            # Attachments may change the next layout plan, and if costs decide, each turn has a plan of its own.
            alike = None if part.attached or layout_plan.priced else turn.turn_settings
        elif isinstance(part, TurnBatch) and (first := min(part.attached, default=0)):
            pending += [rest for rest in (part.get_range(first, None), part.get_range(0, first)) if rest is not None]
        else:
            replay, alike = (
                _AppendOnlyReplay(
                    advance_by_turn(replay.final_state(), turn, plan_layout, tokenizer=tokenizer), tokenizer
                ),
                None,
            )
            pending += [rest] if isinstance(part, TurnBatch) and (rest := part.without_first()) else []
    return advance_by_turn(replay.final_state(), last, plan_layout, tokenizer=tokenizer)


def _skip_superseded_replies(turns: Sequence[Turn | TurnBatch]) -> list[Turn | TurnBatch]:
    """Return the same turns with receipts that skip replies which a later step reduces further.

    Shortening such a reply would be wasted: the later step leaves a line of it, or nothing.
    """
    spared = list(turns)
    compacted = [at for at, part in enumerate(turns) if isinstance(part, Turn) and part.receipts]
    if not compacted or any(isinstance(part, Turn) and part.pinned for part in turns):
        # A pinned message stays even if a receipt names it, so it is not known which replies a later step removes.
        return spared
    questions = {name for part in turns for name in _list_question_ids(part)}
    later: set[str] = set()
    for at in reversed(compacted):
        turn = turns[at]
        assert isinstance(turn, Turn)
        receipts = [_skip_superseded_steps(receipt, later, questions) for receipt in reversed(turn.receipts)]
        spared[at] = replace(turn, receipts=tuple(receipts[::-1]))
    return spared


def _list_question_ids(part: Turn | TurnBatch) -> Sequence[str | None]:
    return part.message_ids[::2] if isinstance(part, TurnBatch) else (part.id,)


def _skip_superseded_steps(
    receipt: CompactionReceipt, superseded_ids: set[str], questions: Set[str | None]
) -> CompactionReceipt:
    """Return a receipt without the work that ``superseded_ids`` steps repeat.

    Receipts are visited from the last to the first: the ids that this one removes are added to ``superseded_ids``.
    """
    steps: list[CompactionStep] = []
    for step in reversed(receipt.steps):
        takes_out = step.name in _REMOVING_STEPS and receipt.chain_version > 1
        # If a step removes a question, or may do so because its id is unknown, the set of replies it names matters.
        keeps_questions = None not in questions and questions.isdisjoint(step.removed)
        shortens = step.name is CompactionStepName.REPLIES or (takes_out and keeps_questions)
        steps.append(_without_removed(step, superseded_ids) if superseded_ids and shortens else step)
        if takes_out:
            superseded_ids.update(step.removed)
    return replace(receipt, steps=tuple(steps[::-1]))


def _without_removed(step: CompactionStep, removed_ids: Set[str]) -> CompactionStep:
    if removed_ids.isdisjoint(step.removed):
        return step
    left = [at for at, name in enumerate(step.removed) if name not in removed_ids]
    gists = tuple([step.outlines[at] for at in left]) if step.outlines else ()
    return replace(step, removed=tuple([step.removed[at] for at in left]), outlines=gists)


def _start_replay(
    state: PromptState, turn: Turn, layout_plan: LayoutPlan, *, tokenizer: Tokenizer
) -> "_AppendOnlyReplay":
    """Return the replay class for a turn and the turns like it."""
    if layout_plan.priced:
        return _PricedHistoryReplay(state, tokenizer, turn_settings=turn.turn_settings)
    if layout_plan.keep_messages == 0 and _would_fold_change_nothing(state, turn, tokenizer=tokenizer):
        return _FoldedHistoryReplay(state, tokenizer, turn_settings=turn.turn_settings)
    return _AppendOnlyReplay(state, tokenizer)


def _would_fold_change_nothing(state: PromptState, turn: Turn, *, tokenizer: Tokenizer) -> bool:
    """Return whether a fold before the turn would change nothing but the start of the epoch."""
    history, turn_settings = state.history, turn.turn_settings
    is_placed_the_same = (
        state.library_rendered_from is state.library
        and state.placed is state.system_library
        and not state.system.inlined
    )
    shows_all = turn_settings.history is HistoryMode.FULL and not history.hides_turns and history.placeholder is None
    same = turn_settings is state.turn_settings and state.tokenizer_name == tokenizer.name
    if not (is_placed_the_same and shows_all and same):
        return False
    return all(_has_only_text(exchange) for exchange in history.turns[history.epoch_start :])


def _has_only_text(turn: HistoryTurn) -> bool:
    return turn.question_message is turn.question.message and not turn.tool_results and not turn.rounds


def _attaches_only_library_artifacts(part: Turn | TurnBatch) -> bool:
    """Return whether all attachments of these turns go into the library and have no images.

    That is always true for a batch.
    """
    return isinstance(part, TurnBatch) or all(goes_to_library(one) and not one.images for one in part.attached)


def _changes_only_history_and_library(state: PromptState, turn: Turn) -> bool:
    """Return whether a turn changes nothing but the history and the library."""
    brings = turn.tool_results or turn.rounds or turn.receipts or turn.drop or turn.detach or turn.fold
    sets = turn.system is not None or turn.tools is not None or turn.model not in (None, state.model)
    sets |= turn.pinned is not None or turn.rules is not None
    sets |= turn.turn_settings.attachments is _STICKY and bool(turn.attached or state.unlisted_attachments)
    # A line names such an image once the question is sent without it; only ``advance_by_turn`` makes these lines.
    sets |= turn.names_images and any(one.kind is ArtifactKind.IMAGE for one in turn.attached)
    return (
        not brings
        and not sets
        and turn.reply is not None
        and turn.history_rewrite is None
        and not state.waits_for_reply
    )


class _AppendOnlyReplay:
    """Replays turns that ask or attach something while all earlier messages stay as sent.

    ``state`` already knows the attachments of the turns added so far; ``final_state`` adds their messages.
    """

    def __init__(self, state: PromptState, tokenizer: Tokenizer) -> None:
        self.state = state
        self._tokenizer = tokenizer
        self._names: list[str] = []
        self._texts: list[str] = []
        # Rendered attachments by turn number within this replay, and whether the turn itself attached them.
        self._shown: dict[int, tuple[RenderedAttachments, bool]] = {}
        self._number = state.turn_count
        self._at = int(has_system_message(state.system, state.system_library)) + state.history.shown_message_count

    def can_add(self, part: Turn | TurnBatch, layout_plan: LayoutPlan) -> bool:
        """Return whether this replay can add a part, given the layout plan of its first turn."""
        return layout_plan.keep_messages is None and not layout_plan.priced

    def add_turns(self, part: Turn | TurnBatch) -> None:
        """Add one turn, or a batch of turns."""
        if isinstance(part, TurnBatch):
            start = 0
            for at in part.attached:
                self._add_plain_turns(part, start, at)
                self.add_turns(part.get_turn(at))
                start = at + 1
            self._add_plain_turns(part, start, len(part.message_ids) // 2)
            return
        if part.attached:
            self._add_attachments(part)
        conversation, head = self.state.conversation, self._names[-1] if self._names else self.state.head
        asked, reply = part.id or question_id(conversation, head, part), part.reply or ""
        self._names += asked, part.reply_id or compute_message_id(conversation, parent=asked, role=_REPLY, text=reply)
        self._texts += part.text, reply

    def _add_plain_turns(self, batch: TurnBatch, first: int, end: int) -> None:
        """Add turns of a batch that only ask."""
        if first < end:
            self._names += batch.message_ids[2 * first : 2 * end]
            self._texts += batch.texts[2 * first : 2 * end]

    @property
    def _replayed_count(self) -> int:
        """How many turns were added so far."""
        return len(self._names) // 2

    def _add_attachments(self, turn: Turn) -> None:
        state, replayed_count = self.state, self._replayed_count
        attached, _ = collect_attachments(turn, state.library)
        position = message_position(self._at + len(self._names))
        shown = render_attachments(
            attached,
            placed=state.placed,
            position=position,
            tokenizer=self._tokenizer,
            names_recall=turn.turn_settings.names_recall,
        )
        self._shown[replayed_count] = shown, True
        library = update_library(
            state.library,
            attached,
            turn_number=self._number + replayed_count,
            image_notes=turn.turn_settings.image_notes,
        )
        self.state = replace(state, library=library, placed=with_updates_joined(state.placed, shown[2]))

    def final_state(self) -> PromptState:
        """Return the state after all added turns; it has no prompt."""
        if not self._names:
            return self.state
        exchanges = self.state.history.turns.with_items_appended(*self._make_plain_turns())
        history = replace(
            self.state.history, turns=exchanges, message_count=self.state.history.message_count + len(self._names)
        )
        turns = self._number + self._replayed_count
        return replace(
            self.state, head=self._names[-1], history=history, turn_count=turns, last_prompt=None, compaction_step=None
        )

    def _make_plain_turns(self) -> list[HistoryTurn]:
        count = self._tokenizer.count
        positions, numbers = (
            range(self._at, self._at + len(self._names)),
            range(self._number, self._number + self._replayed_count),
        )
        tokens = [count(text) for text in self._texts]
        turns = make_plain_turns(self._names, self._texts, positions=positions, numbers=numbers, tokens=tokens)
        for at, (shown, attached) in self._shown.items():
            sent = build_question_message(shown, turns[at].question_message, count=count)
            turns[at] = replace(
                turns[at], question_message=sent, tool_results=list_placed_tool_results(shown), has_attachments=attached
            )
        return turns


class _FoldedHistoryReplay(_AppendOnlyReplay):
    """Replays turns with a fold before each turn.

    Attachments of a turn are in the library in the next turn and no longer in their question. The library is therefore
    rendered only once, for the last turn.
    """

    def __init__(self, state: PromptState, tokenizer: Tokenizer, *, turn_settings: TurnSettings) -> None:
        super().__init__(state, tokenizer)
        self._turn_settings = turn_settings
        # If the first library entry adds a system message, all later positions shift by one; such turns are not taken.
        self._has_shelf = bool(state.system_library) or has_system_message(state.system, {})
        # The last turn if it has attachments, with the library before it.
        self._last: tuple[Turn, Mapping[str, LibraryEntry]] | None = None

    def can_add(self, part: Turn | TurnBatch, layout_plan: LayoutPlan) -> bool:
        """Return whether the part has the same settings and nothing that a fold would have to examine."""
        plain = not part.attached or (self._has_shelf and _attaches_only_library_artifacts(part))
        return (
            layout_plan.keep_messages == 0
            and not layout_plan.forms
            and part.turn_settings is self._turn_settings
            and plain
        )

    def add_turns(self, part: Turn | TurnBatch) -> None:
        """Add one turn, or a batch, after a fold that moves earlier attachments into the library."""
        self._last = None
        super().add_turns(part)

    def _add_plain_turns(self, batch: TurnBatch, first: int, end: int) -> None:
        """Add turns that only ask; they fold earlier attachments as well."""
        if first < end:
            self._last = None
            super()._add_plain_turns(batch, first, end)

    def _add_attachments(self, turn: Turn) -> None:
        library, at = self.state.library, self._number + self._replayed_count
        self._last = turn, library
        self._shown[self._replayed_count] = NO_ATTACHMENTS, True
        learnt = update_library(
            library, collect_attachments(turn, library)[0], turn_number=at, image_notes=turn.turn_settings.image_notes
        )
        self.state = replace(self.state, library=learnt)

    def final_state(self) -> PromptState:
        """Return the state after all added turns, folded before the last one."""
        if not self._names:
            return self.state
        replayed_count, epoch = self._replayed_count, self.state.epoch
        state = self.state if self._last is None else replace(self.state, library=self._last[1])
        if state.library_rendered_from is not state.library:
            state = fold_library(state, self._turn_settings, self._tokenizer)
        if self._last is not None:
            turn = self._last[0]
            attached, _ = collect_attachments(turn, state.library)
            position = message_position(self._at + len(self._names) - 2)
            shown = render_attachments(
                attached,
                placed=state.placed,
                position=position,
                tokenizer=self._tokenizer,
                names_recall=turn.turn_settings.names_recall,
            )
            self._shown[replayed_count - 1] = shown, True
            state = record_turn_attachments(
                replace(state, turn_count=self._number + replayed_count - 1), turn, attached, rendered=shown
            )
        self.state = replace(state, epoch=epoch + replayed_count)
        ended = super().final_state()
        return replace(ended, history=replace(ended.history, epoch_start=len(ended.history.turns) - 1))


class _PricedHistoryReplay(_AppendOnlyReplay):
    """Replays turns whose layout costs decided, with the working set and the cache history."""

    def __init__(self, state: PromptState, tokenizer: Tokenizer, *, turn_settings: TurnSettings) -> None:
        super().__init__(state, tokenizer)
        self._turn_settings = turn_settings
        self._trail = CacheHistoryBuilder(
            state.cache_history,
            {
                name: attachment_age(one, turn_settings, turn_number=state.turn_count)
                for name, one in state.library.items()
            },
        )
        # The state's working set was computed with the settings of its last turn, which may have been different.
        self._knows_set = False

    def can_add(self, part: Turn | TurnBatch, layout_plan: LayoutPlan) -> bool:
        """Return whether all earlier messages stay and the stored layout plan of the turn still applies."""
        begins = self.state.compaction_step is None and self.state.kept_messages is None
        begins = begins and self.state.cleared_from is None
        planned = part.layout_plan if isinstance(part, Turn) else next(iter(part.layout_plans), None)
        follows = layout_plan.keep_messages is None and part.turn_settings is self._turn_settings
        follows = follows and planned is not None and layout_plan == replace(planned, priced=True)
        # A keep-alive changes the times of all earlier cache entries, which the summed-up cache history cannot do.
        follows = follows and layout_plan.kept_alive_at is None
        return follows and begins and _attaches_only_library_artifacts(part)

    def add_turns(self, part: Turn | TurnBatch) -> None:
        """Add one turn, or a batch of turns."""
        if isinstance(part, Turn):
            self._add_working_set_change(part)
        super().add_turns(part)

    def _add_plain_turns(self, batch: TurnBatch, first: int, end: int) -> None:
        """Add turns of a batch that only ask; artifacts may still leave the working set with them."""
        while first < end and not (self._knows_set and not self._trail.attached):
            self.add_turns(batch.get_turn(first))
            first += 1
        if first < end:
            # Nothing is attached and no line is needed. That remains so until something is attached.
            asked_at = self._at + len(self._names)
            self._trail.record_requests(batch.layout_plans[first:end], question_index=asked_at, working_set=())
            super()._add_plain_turns(batch, first, end)

    def _add_attachments(self, turn: Turn) -> None:
        """Do nothing: ``_add_working_set_change`` has already handled the attachments."""

    def _add_working_set_change(self, turn: Turn) -> None:
        """Add a turn's attachments, or the line that says what is no longer attached."""
        state, number, asked_at = self.state, self._number + self._replayed_count, self._at + len(self._names)
        attached = collect_attachments(turn, state.library)[0] if turn.attached else ()
        layout_plan = turn.layout_plan or LayoutPlan()
        in_set = self._current_working_set(attached, number)
        if attached or in_set != self._trail.attached:
            state = replace(
                state, turn_count=number, cache_history=state.cache_history._replace(working_set=self._trail.attached)
            )
            position, tokenizer = message_position(asked_at), self._tokenizer
            shown = render_attachments_and_changes(
                state,
                attached,
                layout_plan=layout_plan,
                position=position,
                working_set=in_set,
                tokenizer=tokenizer,
                names_recall=turn.turn_settings.names_recall,
            )
            self._shown[self._replayed_count] = shown, bool(attached)
            whole = changed_ids_shown_in_full(layout_plan) & {artifact.id for artifact in attached}
            self.state = record_turn_attachments(state, turn, attached, rendered=shown, shown_in_full=whole)
        self._trail.record_requests((layout_plan,), question_index=asked_at, working_set=in_set)
        if attached:
            self._trail.add_known(artifact.id for artifact in attached if self._restarts_age(artifact))

    def _restarts_age(self, artifact: Artifact) -> bool:
        """Return whether an attachment of the last added turn is new, or its age counts from its last turn."""
        entry = self.state.library.get(artifact.id)
        return entry is None or bool(self._turn_settings.linger) or not entry.repeats

    def _current_working_set(self, attached: Sequence[Artifact], number: int) -> tuple[str, ...]:
        """Return the working set of a turn.

        If no artifact came back, it is the previous set without the artifacts that left, plus the new ones.
        """
        library, before = self.state.library, self._trail.attached
        if not self._knows_set or any(one.id in library and one.id not in before for one in attached):
            self._knows_set = True
            return working_set_ids(library, attached, self._turn_settings, turn_number=number)
        now = {one.id: None for one in attached}
        stays = [
            name
            for name in before
            if name in now or is_in_working_set(library[name], self._turn_settings, turn_number=number)
        ]
        return tuple(dict.fromkeys((*stays, *now)))

    def final_state(self) -> PromptState:
        """Return the state after all added turns, with the cache history."""
        if self._names:
            self.state = replace(self.state, cache_history=self._trail.finish(), kept_messages=None, cleared_from=None)
        return super().final_state()
