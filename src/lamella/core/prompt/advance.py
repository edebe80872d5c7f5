"""Advance a prompt state by one turn: the result is the next state with the turn's prompt.

Live turns, replay, resume and undo all use this code, so the same turns always give the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence, Set

from lamella.core.artifacts.blocks import render_removed_image
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.budget import Tokenizer
from lamella.core.log.receipts import is_stage_data_id
from lamella.core.log.turn import (
    ArtifactForm,
    AttachmentMode,
    LayoutPlan,
    MessageAuthor,
    SystemParts,
    Turn,
    compute_message_id,
    question_id,
)
from lamella.core.messages import Message, ToolRound
from lamella.core.prompt.attachment_delta import build_question_with_delta, changed_ids_shown_in_full, working_set_ids
from lamella.core.prompt.attachments import (
    collect_attachments,
    detach_from_working_set,
    drop_from_library,
    image_handle_warnings,
    replace_stubbed_by_names,
    shrunk_attachment_warnings,
    unsupported_image_warnings,
    update_library,
    with_new_unlisted_attachments,
)
from lamella.core.prompt.cache_history import add_tool_messages, record_request
from lamella.core.prompt.cutting import fold_after_cut
from lamella.core.prompt.folding import fold
from lamella.core.prompt.layers.history import HistoryMessage, HistoryTurn, make_history_message
from lamella.core.prompt.layers.library import LibraryEntry, PlacedArtifact, attachment_age, make_placed_artifact
from lamella.core.prompt.layers.model import message_position
from lamella.core.prompt.layers.tool_rounds import build_round_messages, partition_rounds, stub_result_message
from lamella.core.prompt.layers.turn import NO_ATTACHMENTS, RenderedAttachments, render_attachments, with_updates_joined
from lamella.core.prompt.prefix_change import prefix_change_triggers
from lamella.core.prompt.prompt import (
    Prompt,
    build_question_message,
    has_system_message,
    list_pieces_moved_by_fold,
)
from lamella.core.prompt.receipts import apply_receipts
from lamella.core.prompt.rules import apply_rule_changes
from lamella.core.prompt.state import PromptState, get_index
from lamella.core.values import replace

# Chooses the layout plan of a turn from the state before the turn and the turn itself. During a replay the state has
# no prompts and may lack the newest history, and the function may be called more than once for a turn. For a turn that
# does nothing but ask, the result may depend only on the turn's settings, not on its text: replay relies on that to
# handle many such turns together.
LayoutPlanner = Callable[[PromptState, Turn], LayoutPlan]
_USER, _REPLY = MessageAuthor.USER, MessageAuthor.REPLY
_STICKY = AttachmentMode.STICKY


def list_placed_tool_results(rendered: RenderedAttachments) -> tuple[PlacedArtifact, ...]:
    """Return the tool results among the attachments that a turn rendered."""
    tools = [one for one in rendered[2] if one.artifact.kind is ArtifactKind.TOOL]
    # A line of a list of handles exists only as long as the list, so it is not kept with the turn.
    return tuple([one for one in tools if not one.is_listed]) if tools else ()


def advance_by_turn(state: PromptState, turn: Turn, plan_layout: LayoutPlanner, *, tokenizer: Tokenizer) -> PromptState:
    """Return the state after a turn is asked; its prompt is ``last_prompt``.

    The state waits for a reply unless the turn already has one (a stored turn). If the previous turn never got a
    reply, it gets an empty one first.
    """
    before = add_reply_to_waiting_turn(state, "") if state.waits_for_reply else state
    before = apply_receipts(before, turn.receipts, turn.turn_settings, tokenizer=tokenizer) if turn.receipts else before
    now, attached, dropped, warnings = _apply_attachments(with_turn_overrides(before, turn), turn)
    if turn.rules is not None:
        now = apply_rule_changes(now, turn.rules, tokenizer)
    # The planner gets the state before the turn's changes: it compares the two to find out what must fold.
    layout_plan = _plan_layout(before, turn, plan_layout, tokenizer=tokenizer)
    if layout_plan.priced:
        # In other layouts the request contains nearly everything that is known.
        now = replace(now, index=get_index(now))
    if layout_plan.keep_messages is not None:
        folds = fold_after_cut if layout_plan.priced else fold
        now = folds(
            now, turn.turn_settings, tokenizer, layout_plan=layout_plan, attached=attached, summary=turn.history_summary
        )
    warnings += (
        unsupported_image_warnings(attached, now.model, placed=now.placed, tokenizer=tokenizer) if attached else ()
    )
    first = int(has_system_message(now.system, now.system_library))
    asked_at = first + now.history.shown_message_count
    asked = question_id(now.conversation, now.head, turn)
    user = make_history_message(asked, _USER, turn.text, position=message_position(asked_at), tokenizer=tokenizer)
    question, shown, opened = _build_question(
        now, turn, attached, typed=user.message, layout_plan=layout_plan, question_index=asked_at, tokenizer=tokenizer
    )
    prompt = Prompt(
        conversation_id=now.conversation,
        epoch=now.epoch,
        turn_settings=turn.turn_settings,
        layout_plan=layout_plan,
        tokenizer=tokenizer,
        model=now.model,
        tools=now.tools,
        system=now.system,
        library=now.library,
        system_library=now.system_library,
        placed=now.placed,
        history=now.history,
        question=user,
        question_message=question,
        first_message=first,
        question_index=asked_at,
        attached=attached,
        rendered_attachments=shown,
        dropped=dropped,
        history_rewrite=turn.history_rewrite,
        compaction_step=before.compaction_step,
        cleared_since=before.cleared_since,
        pinned=now.pinned,
        triggers=prefix_change_triggers(before, turn),
        warnings=warnings,
        working_set=opened.cache_history.working_set,
        picture_lines=_make_removed_image_lines(turn, shown, position=message_position(asked_at), tokenizer=tokenizer),
        unlisted_attachments=now.unlisted_attachments,
        index=now.index if now.index is not None and now.index.matches_library(now.library, now.placed) else None,
    )
    opened = replace(
        opened,
        head=asked,
        last_prompt=prompt,
        waits_for_reply=True,
        compaction_step=None,
        kept_messages=None,
        cleared_from=None,
        cleared_since=None,
    )
    opened = replace_tool_rounds_of_waiting_turn(opened, turn.rounds) if turn.rounds else opened
    return opened if turn.reply is None else add_reply_to_waiting_turn(opened, turn.reply, reply_id=turn.reply_id)


def _make_removed_image_lines(
    turn: Turn, rendered: RenderedAttachments, *, position: str, tokenizer: Tokenizer
) -> tuple[PlacedArtifact, ...]:
    """Return the lines that will name the images which the user attached to this turn, once they are not sent any more.

    Images that a note embeds need none: the text of the note names them.
    """
    if not turn.names_images:
        return ()
    given = {one.id for one in turn.attached if one.kind is ArtifactKind.IMAGE}
    lines: list[PlacedArtifact] = []
    for artifact in [one.artifact for one in rendered[2] if one.artifact.id in given]:
        text = render_removed_image(artifact)
        # The line needs no image data, and checkpoints would contain it.
        lines.append(
            make_placed_artifact(
                replace(artifact, images=()),
                form=ArtifactForm.HANDLE,
                position=position,
                pieces=(text,),
                tokens=tokenizer.count(text),
            )
        )
    return tuple(lines)


def _build_question(
    now: PromptState,
    turn: Turn,
    attached: tuple[Artifact, ...],
    *,
    typed: Message,
    layout_plan: LayoutPlan,
    question_index: int,
    tokenizer: Tokenizer,
) -> tuple[Message, RenderedAttachments, PromptState]:
    """Build the question of a turn, its rendered attachments, and the state that knows the attachments."""
    missing = _list_unplaced_sticky_attachments(now, turn, attached) if now.unlisted_attachments else ()
    if layout_plan.priced:
        return _build_question_for_priced_layout(
            now,
            turn,
            (*attached, *missing),
            typed=typed,
            layout_plan=layout_plan,
            question_index=question_index,
            tokenizer=tokenizer,
        )
    if not attached and not layout_plan.keep_messages and not missing:
        return typed, NO_ATTACHMENTS, now
    position = message_position(question_index)
    shown = render_attachments(
        (*attached, *missing),
        placed=now.placed,
        position=position,
        tokenizer=tokenizer,
        names_recall=turn.turn_settings.names_recall,
    )
    moved = list_pieces_moved_by_fold(now.library, now.placed, position) if layout_plan.keep_messages else ()
    question = build_question_message(shown, typed, count=tokenizer.count, moved=moved)
    return (
        question,
        shown,
        record_turn_attachments(now, turn, attached, rendered=shown, restored_ids=layout_plan.forms.keys()),
    )


def _build_question_for_priced_layout(
    now: PromptState,
    turn: Turn,
    attached: tuple[Artifact, ...],
    *,
    typed: Message,
    layout_plan: LayoutPlan,
    question_index: int,
    tokenizer: Tokenizer,
) -> tuple[Message, RenderedAttachments, PromptState]:
    """Do the same as ``_build_question`` for a layout plan that costs decided, and record the cache history."""
    index = get_index(now)
    is_covered = index.suffices_for_turn(
        linger=turn.turn_settings.linger, turn_number=now.turn_count, names=[artifact.id for artifact in attached]
    )
    library = index.active_library if is_covered else now.library
    in_set = working_set_ids(library, attached, turn.turn_settings, turn_number=now.turn_count)
    question, shown = build_question_with_delta(
        now,
        attached,
        typed,
        layout_plan=layout_plan,
        position=message_position(question_index),
        working_set=in_set,
        tokenizer=tokenizer,
        names_recall=turn.turn_settings.names_recall,
    )
    ages = {
        name: attachment_age(now.library[name], turn.turn_settings, turn_number=now.turn_count)
        for name in now.cache_history.working_set
        if name in now.library
    }
    cache_history = record_request(
        now.cache_history,
        layout_plan,
        question_index=question_index,
        working_set=in_set,
        known_ids=now.library,
        ages=ages,
    )
    whole = changed_ids_shown_in_full(layout_plan) & {artifact.id for artifact in attached}
    return (
        question,
        shown,
        replace(
            record_turn_attachments(now, turn, attached, rendered=shown, shown_in_full=whole),
            cache_history=cache_history,
        ),
    )


def _plan_layout(state: PromptState, turn: Turn, plan_layout: LayoutPlanner, *, tokenizer: Tokenizer) -> LayoutPlan:
    """Return the layout plan of a turn; if the tokenizer changed, the plan keeps no earlier message.

    A model of another family counts tokens differently and has nothing of this conversation in its cache.
    """
    layout_plan = plan_layout(state, turn)
    if not layout_plan.keep_messages or state.tokenizer_name == tokenizer.name:
        return layout_plan
    return replace(layout_plan, keep_messages=0, within=0, order=())


def record_turn_attachments(
    state: PromptState,
    turn: Turn,
    attached: tuple[Artifact, ...],
    *,
    rendered: RenderedAttachments,
    shown_in_full: Set[str] = frozenset(),
    restored_ids: Set[str] = frozenset(),
) -> PromptState:
    """Return the state that knows the attachments of a turn, where they are placed and how long they stay.

    ``restored_ids`` are outlined artifacts that the library has in full from this turn on.
    """
    sticks = turn.turn_settings.attachments is _STICKY
    library = update_library(
        state.library,
        attached,
        turn_number=state.turn_count,
        image_notes=turn.turn_settings.image_notes,
        stays_attached=True if sticks else None,
        restored_ids=restored_ids,
    )
    placed = with_updates_joined(state.placed, rendered[2], replaced_ids=shown_in_full)
    index = state.index
    if index is not None and index.matches_library(state.library, state.placed):
        changed = dict.fromkeys([*(artifact.id for artifact in attached), *(one.artifact.id for one in rendered[2])])
        index = index.with_attached(library, placed, changed) if changed else index
    learnt = replace(state, library=library, placed=placed, index=index)
    return (
        replace(
            learnt,
            unlisted_attachments=with_new_unlisted_attachments(state.unlisted_attachments, attached, turn),
        )
        if sticks and turn.attached
        else learnt
    )


def _list_unplaced_sticky_attachments(
    state: PromptState, turn: Turn, attached: Sequence[Artifact]
) -> tuple[Artifact, ...]:
    """List sticky attachments outside the library, such as images, that no message contains in full."""
    if turn.turn_settings.attachments is not _STICKY:
        return ()
    placed_names = {name for name in state.unlisted_attachments if name in state.placed and state.placed[name].is_full}
    placed_names.update(artifact.id for artifact in attached)
    return tuple(artifact for name, artifact in state.unlisted_attachments.items() if name not in placed_names)


def replace_tool_rounds_of_waiting_turn(state: PromptState, rounds: Sequence[ToolRound]) -> PromptState:
    """Return the state whose waiting turn has exactly these tool rounds; earlier ones are replaced."""
    prompt, stubbed = get_pending_prompt(state), state.history.stubbed_ids
    tokenizer, names_recall = prompt.tokenizer, prompt.turn_settings.names_recall
    sent, unsent = (
        build_round_messages(
            prompt.question.id,
            rounds,
            tokenizer,
            max_output_chars=prompt.turn_settings.tool_output,
            names_recall=names_recall,
        ),
        tuple[HistoryMessage, ...](),
    )
    if stubbed:
        messages = tuple(
            stub_result_message(one, tokenizer, names_recall=names_recall) if one.id in stubbed else one for one in sent
        )
        sent, unsent = partition_rounds(messages, stubbed, tokenizer, names_recall=names_recall)
    return replace(state, last_prompt=replace(prompt, rounds=sent, removed_rounds=unsent))


def add_reply_to_waiting_turn(state: PromptState, reply: str, *, reply_id: str | None = None) -> PromptState:
    """Return the state after the reply to the waiting turn."""
    prompt = get_pending_prompt(state)
    rounds, shown = prompt.rounds, prompt.rendered_attachments
    at = prompt.question_index + len(rounds) + 1
    turn = HistoryTurn(
        question=prompt.question,
        question_message=prompt.question_message,
        tool_results=list_placed_tool_results(shown),
        rounds=rounds,
        reply=_make_reply_message(
            state, prompt.question.id, reply, reply_id=reply_id, at=at, tokenizer=prompt.tokenizer
        ),
        has_attachments=bool(prompt.attached),
        turn_index=state.turn_count,
        picture_lines=prompt.picture_lines,
    )
    history = state.history
    history = replace(
        history, turns=history.turns.with_items_appended(turn), message_count=history.message_count + 2 + len(rounds)
    )
    cache_history = (
        add_tool_messages(state.cache_history, len(rounds))
        if rounds and state.cache_history.entries
        else state.cache_history
    )
    return replace(
        state,
        head=turn.reply.id,
        history=history,
        turn_count=state.turn_count + 1,
        waits_for_reply=False,
        cache_history=cache_history,
    )


def _make_reply_message(
    state: PromptState, question_id: str, text: str, *, reply_id: str | None, at: int, tokenizer: Tokenizer
) -> HistoryMessage:
    reply_id = reply_id or compute_message_id(state.conversation, parent=question_id, role=_REPLY, text=text)
    return make_history_message(reply_id, _REPLY, text, position=message_position(at), tokenizer=tokenizer)


def get_pending_prompt(state: PromptState) -> Prompt:
    """Return the prompt that waits for its reply; there must be one."""
    assert state.last_prompt is not None
    assert state.waits_for_reply
    return state.last_prompt


def with_turn_overrides(state: PromptState, turn: Turn) -> PromptState:
    """Return the state with the system prompt, tools, model and pins that the turn sets."""
    if turn.system is None and turn.tools is None and turn.model in (None, state.model) and turn.pinned is None:
        # Nearly every turn: no copy.
        return state
    return replace(
        state,
        system=_effective_system_parts(turn) or state.system,
        tools=turn.tools if turn.tools is not None else state.tools,
        model=turn.model if turn.model is not None else state.model,
        pinned=frozenset(turn.pinned) if turn.pinned is not None else state.pinned,
    )


def _effective_system_parts(turn: Turn) -> SystemParts | None:
    """Return the system parts that a turn sets, without stage details that a compaction removed before."""
    if turn.system is None or not turn.system.workflow_detail:
        return turn.system
    names = [
        name for receipt in turn.receipts for step in receipt.steps for name in step.removed if is_stage_data_id(name)
    ]
    return turn.system.with_brief_stages(names)


def _apply_attachments(
    state: PromptState, turn: Turn
) -> tuple[PromptState, tuple[Artifact, ...], tuple[str, ...], tuple[str, ...]]:
    """Apply the drops, detachments and attachments of a turn.

    Returns the state, the attached artifacts, the dropped ids and the warnings for the user.
    """
    warnings = turn.warnings
    dropped: tuple[str, ...] = ()
    attached: tuple[Artifact, ...] = ()
    if turn.drop:
        library, dropped, drop_warnings = _apply_drops(state, turn)
        state = replace(state, library=library)
        warnings += drop_warnings
    if turn.detach:
        state = replace(state, library=detach_from_working_set(state.library, turn.detach))
    if state.unlisted_attachments and (removed := {*dropped, *turn.detach}):
        state = replace(
            state,
            unlisted_attachments={name: one for name, one in state.unlisted_attachments.items() if name not in removed},
        )
    if turn.attached or turn.tool_results:
        attached, drop_warnings = collect_attachments(turn, state.library)
        warnings += drop_warnings
    if turn.rounds and state.history.stubbed_ids:
        attached, drop_warnings = replace_stubbed_by_names(
            attached, question_id(state.conversation, state.head, turn), state.history.stubbed_ids
        )
        warnings += drop_warnings
    if turn.turn_settings.attachments is _STICKY:
        warnings += shrunk_attachment_warnings(state.library, attached)
    elif attached:
        warnings += image_handle_warnings(state.library, attached, image_notes=turn.turn_settings.image_notes)
    return state, attached, dropped, warnings


def _apply_drops(state: PromptState, turn: Turn) -> tuple[Mapping[str, LibraryEntry], tuple[str, ...], tuple[str, ...]]:
    drawn_in = {artifact.id for artifact in state.system.inlined}
    placed_names = (state.placed.keys() | state.unlisted_attachments.keys()) - drawn_in
    return drop_from_library(state.library, turn.drop, placed_ids=placed_names, inlined_ids=drawn_in)
