"""Apply compaction receipts to a prompt state; the same receipt always gives the same result."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from functools import partial
from types import MappingProxyType

from lamella.core.artifacts.model import ArtifactKind
from lamella.core.budget import Tokenizer
from lamella.core.log.receipts import (
    CHAIN_VERSION,
    CompactionReceipt,
    CompactionStep,
    CompactionStepName,
    is_stage_data_id,
)
from lamella.core.log.turn import ArtifactForm, HistoryMode, TurnSettings
from lamella.core.prompt.folding import (
    fold_library,
    hide_old_turns,
    stub_tool_result,
    with_recall_named,
    with_tool_results_only,
)
from lamella.core.prompt.layers.digest import (
    DigestMessage,
    add_to_digest,
    iter_digest_messages,
    make_digest_message,
    question_message_number,
    shorten_digest,
)
from lamella.core.prompt.layers.history import (
    ConversationHistory,
    HistoryMessage,
    HistoryPreamble,
    HistoryTurn,
    Placeholder,
    SharedSequence,
    count_messages,
    extend_preamble,
    make_placeholder,
    shorten_message,
    with_joined_replies,
    with_rules_block,
)
from lamella.core.prompt.layers.library import can_be_listed, place_handle_list, place_in_library
from lamella.core.prompt.layers.model import SegmentKind, TokenCounter, message_position
from lamella.core.prompt.layers.tool_rounds import TOOL_KIND, stub_result_message
from lamella.core.prompt.prompt import has_system_message
from lamella.core.prompt.state import PromptState
from lamella.core.text.rule_detection import outline_reply, stub_reply
from lamella.core.values import replace

# Named instead of a compaction step in the ledger: a compaction was undone, or it only folded.
UNDO_CAUSE = "undo"
FOLD_CAUSE = "fold"
_SHRUNK_FORM_BY_STEP = {
    CompactionStepName.PREVIEW: ArtifactForm.PREVIEW,
    CompactionStepName.HANDLE: ArtifactForm.HANDLE,
}
_PLACEHOLDER_KIND_BY_STEP = {
    CompactionStepName.OLDEST_STAGES: SegmentKind.DIGEST,
    CompactionStepName.RECENT_STAGES: SegmentKind.DIGEST,
    CompactionStepName.SUMMARY: SegmentKind.SUMMARY,
    CompactionStepName.RULES: SegmentKind.RULES,
}


def apply_receipt(
    state: PromptState, receipt: CompactionReceipt, turn_settings: TurnSettings, *, tokenizer: Tokenizer
) -> PromptState:
    """Return the state after a compaction: a new epoch begins, and what the receipt names is removed."""
    if receipt.clears_in_place:
        return clear_results(
            state,
            receipt.steps[0].removed,
            tokenizer,
            tokens_after=receipt.tokens_after,
            names_recall=turn_settings.names_recall,
        )
    now = (
        with_prefix_kept(state, receipt.since_message)
        if receipt.since_message
        else fold_for_receipt(state, turn_settings, tokenizer)
    )
    for step in receipt.steps:
        now = apply_step(now, step, turn_settings, tokenizer, chain_version=receipt.chain_version)
    # With ``since`` nothing folded and no question was removed, so all positions are still right.
    now = now if receipt.since_message else recompute_tool_result_positions(now, turn_settings, tokenizer)
    return replace(
        now,
        last_compacted_total=receipt.tokens_after,
        compaction_step=_get_earliest_changing_step(receipt),
        cleared_from=None,
        cleared_since=None,
    )


def clear_results(
    state: PromptState, result_ids: Sequence[str], tokenizer: Tokenizer, *, tokens_after: int, names_recall: bool
) -> PromptState:
    """Return the state in which these tool results are handles. Every other byte stays, and nothing folds.

    A new epoch begins at the first of them. If another compaction since the last request folds anyway, it decides what
    stays.
    """
    first = first_result_message_index(state, result_ids)
    folds = state.cleared_from is None and (state.compaction_step is not None or state.kept_messages is not None)
    entries = tuple([one for one in state.cache_history.entries if one.position < first])
    cleared = _stub_tool_results(state, frozenset(result_ids), tokenizer, names_recall=names_recall)
    return replace(
        cleared,
        epoch=state.epoch + 1,
        last_compacted_total=tokens_after,
        compaction_step=state.compaction_step or CompactionStepName.TOOL_RESULTS,
        cleared_from=None if folds else min(first, state.cleared_from or first),
        cleared_since=None if folds else result_ids[0],
        cache_history=state.cache_history._replace(entries=entries),
    )


def first_result_message_index(state: PromptState, result_ids: Collection[str]) -> int:
    """Return the index of the first message with one of these tool results.

    If no earlier turn has any, they belong to the turn that is asked next, and its question stays as it is.
    """
    wanted, history = frozenset(result_ids), state.history
    first = int(has_system_message(state.system, state.system_library))
    at = first
    for turn in history.turns[history.hidden_turns :]:
        for offset, message in enumerate(turn.rounds, start=1):
            if message.id in wanted:
                return at + offset
        at += count_messages((turn,))
    return at + 1


def apply_receipts(
    state: PromptState, receipts: Sequence[CompactionReceipt], turn_settings: TurnSettings, *, tokenizer: Tokenizer
) -> PromptState:
    """Return the state after several compactions, applied in order."""
    for receipt in receipts:
        state = apply_receipt(state, receipt, turn_settings, tokenizer=tokenizer)
    return state


def fold_for_receipt(state: PromptState, turn_settings: TurnSettings, tokenizer: Tokenizer) -> PromptState:
    """Return the folded state that a compaction starts from.

    Unlike other folds it keeps tool results, since the steps of the receipt say what becomes of them.
    """
    start = state.history.epoch_start
    kept = [
        one
        if one.question_message is one.question.message and not one.tool_results
        else with_tool_results_only(one, (*one.tool_results, *one.picture_lines), tokenizer)
        for one in state.history.turns[start:]
    ]
    history = replace(state.history, turns=SharedSequence((*state.history.turns[:start], *kept)))
    state = with_recall_named(replace(state, history=history), turn_settings)
    folded = fold_library(state, turn_settings, tokenizer)
    # Count this epoch even in the first turn, because tool rounds of it may have been sent already. A changed layout
    # starts an epoch of its own; after the compaction the change is no longer visible, so it is counted here.
    begun = int(state.turn_settings is not None and state.turn_settings.layout is not turn_settings.layout)
    return hide_old_turns(replace(folded, epoch=state.epoch + 1 + begun), turn_settings, tokenizer)


def with_prefix_kept(state: PromptState, since_message: str) -> PromptState:
    """Return the state that a compaction from message ``since_message`` on starts from.

    No part is folded, and the messages before ``since_message`` stay as sent.
    """
    history = state.history
    at = [
        index
        for index, turn in enumerate(history.turns)
        if any(message.id == since_message for message in turn.messages)
    ]
    before = history.turns[history.hidden_turns : at[0]] if at else ()
    kept = int(has_system_message(state.system, state.system_library)) + count_messages(before)
    return replace(state, epoch=state.epoch + 1, kept_messages=kept if at else None)


def apply_step(
    state: PromptState,
    step: CompactionStep,
    turn_settings: TurnSettings,
    tokenizer: Tokenizer,
    *,
    chain_version: int = CHAIN_VERSION,
) -> PromptState:
    """Return the state after one compaction step, by the rules of the given chain version.

    Unknown ids are ignored. Step names without a case of their own remove messages and leave no placeholder.
    """
    names_recall = turn_settings.names_recall
    # Receipts of chain 1 keep their old effect, so that stored conversations replay to the bytes that were sent.
    if step.name is CompactionStepName.HANDLE and chain_version > 1:
        return _move_entries_to_handle_list(state, step.removed, tokenizer, names_recall=names_recall)
    if step.name in _SHRUNK_FORM_BY_STEP:
        return _shrink_entries(state, step.removed, _SHRUNK_FORM_BY_STEP[step.name], tokenizer=tokenizer)
    if step.name is CompactionStepName.DIGEST:
        return _move_to_digest(state, frozenset(step.removed), tokenizer)
    if step.name is CompactionStepName.LAST_REPLY:
        return _shorten_last_reply(state, step, tokenizer)
    if step.name is CompactionStepName.TOOL_RESULTS:
        return _stub_tool_results(state, frozenset(step.removed), tokenizer, names_recall=names_recall)
    if step.name is CompactionStepName.REPLIES:
        removed_ids = frozenset(step.removed) - _list_messages_of_pinned_turns(state)
        gists = dict(zip(step.removed, step.outlines, strict=False))
        return shorten_replies(
            state,
            removed_ids,
            partial(outline_reply, names_recall=names_recall),
            form=ArtifactForm.PREVIEW,
            count=tokenizer.count,
            gists=gists,
            again=chain_version > 2,
        )
    if step.name is CompactionStepName.RECENT_STAGES:
        state = replace(state, system=state.system.with_brief_stages(step.removed))
    return _apply_removal(
        state,
        step,
        _PLACEHOLDER_KIND_BY_STEP.get(step.name),
        tokenizer=tokenizer,
        chain_version=chain_version,
        names_recall=names_recall,
    )


def recompute_tool_result_positions(
    state: PromptState, turn_settings: TurnSettings, tokenizer: Tokenizer
) -> PromptState:
    """Recompute the positions of tool results after messages were removed or hidden.

    Tool results whose messages were removed or are hidden are no longer placed, so later turns cannot refer to them.
    """
    shows_all = turn_settings.history is HistoryMode.FULL and not state.history.hides_turns
    now = state if shows_all else hide_old_turns(state, turn_settings, tokenizer)
    history = now.history
    placed = {name: one for name, one in now.placed.items() if one.artifact.kind is not ArtifactKind.TOOL}
    turns = [*history.turns[:]]
    if not any(turn.tool_results for turn in turns):
        return replace(now, placed=placed)
    at = int(has_system_message(now.system, now.system_library))
    for index in range(history.hidden_turns, len(turns)):
        turn = turns[index]
        if turn.tool_results:
            position = message_position(at)
            tools = tuple(
                placed_result
                if placed_result.place == position
                else replace(placed_result, segment=replace(placed_result.segment, place=position))
                for placed_result in turn.tool_results
            )
            turns[index] = replace(turn, tool_results=tools)
            placed.update((one.artifact.id, one) for one in tools if one.artifact.kind is ArtifactKind.TOOL)
        at += 2 + len(turn.rounds)
    return replace(now, history=replace(history, turns=SharedSequence(turns)), placed=placed)


def _shrink_entries(
    state: PromptState, artifact_ids: Collection[str], form: ArtifactForm, *, tokenizer: Tokenizer
) -> PromptState:
    smaller = {
        name: place_in_library(state.library[name].artifact, form=form, count=tokenizer.count)
        for name in artifact_ids
        if name in state.system_library
    }
    library = {name: replace(entry, form=form) if name in smaller else entry for name, entry in state.library.items()}
    # If L1 inlines notes, the placed library lacks them and was made for no library value (None). It must stay so:
    # a later fold that inlines other notes could not reuse it.
    known_library = None if state.library_rendered_from is None else library
    placed_library = {**state.system_library, **smaller}
    return replace(
        state,
        library=library,
        system_library=placed_library,
        library_rendered_from=known_library,
        placed={**state.placed, **smaller},
    )


def _move_entries_to_handle_list(
    state: PromptState, artifact_ids: Collection[str], tokenizer: Tokenizer, *, names_recall: bool
) -> PromptState:
    """Move these library entries into the list of handles, beside the entries that it already has."""
    removed_names = {
        name for name in artifact_ids if name in state.system_library and can_be_listed(state.library[name].artifact)
    }
    library = {
        name: replace(entry, form=ArtifactForm.HANDLE, is_listed=True) if name in removed_names else entry
        for name, entry in state.library.items()
    }
    handles = [entry for name, entry in library.items() if entry.is_listed and name in state.system_library]
    listed = place_handle_list(handles, count=tokenizer.count, names_recall=names_recall) if handles else {}
    placed_library = {**{name: one for name, one in state.system_library.items() if name not in listed}, **listed}
    known_library = None if state.library_rendered_from is None else library
    return replace(
        state,
        library=library,
        system_library=placed_library,
        library_rendered_from=known_library,
        placed={**state.placed, **listed},
    )


# Returns a shorter text for a reply, given its text, its turn number and its stored gist if there is one; None if it
# cannot be shortened.
ReplyShortener = Callable[[str, int, str | None], str | None]


def shorten_replies(
    state: PromptState,
    reply_ids: Collection[str],
    shorten_reply: ReplyShortener,
    *,
    form: ArtifactForm,
    count: TokenCounter,
    gists: Mapping[str, str] = MappingProxyType({}),
    again: bool = False,
) -> PromptState:
    """Return the state with the named replies in the shorter form that ``shorten_reply`` returns for each.

    A reply that already has this form stays as it is, unless ``again`` is set.
    """
    turns = [*state.history.turns[:]]
    for index, turn in enumerate(turns):
        reply, joined = turn.reply, turn.joined_replies
        if not joined:
            # Nearly all replies take this path, hundreds of them in one compaction.
            shown = reply.segment
            if shown.id not in reply_ids or (shown.form is form and not again):
                continue
        elif all(
            one.segment.id not in reply_ids or (one.segment.form is form and not again) for one in (reply, *joined)
        ):
            continue
        replies: list[HistoryMessage] = []
        for message in (reply, *joined):
            text = None
            if message.segment.id in reply_ids and (again or message.segment.form is not form):
                whole = message.segment.text if message.full_texts is None else message.full_texts[message.segment.id]
                text = shorten_reply(whole, message.turn or turn.turn_index + 1, gists.get(message.segment.id))
            replies.append(message if text is None else shorten_message(message, text, form=form, count=count))
        cut_down = replace(turn, reply=replies[0])
        plain = not joined and not turn.call_lines
        turns[index] = cut_down if plain else with_joined_replies(cut_down, replies[1:], count=count)
    return replace(state, history=replace(state.history, turns=SharedSequence(turns)))


def _shorten_to_stub(text: str, turn: int, _gist: str | None, *, names_recall: bool) -> str | None:
    return stub_reply(turn, names_recall=names_recall) if text else None


def _stub_tool_results(
    state: PromptState, result_ids: Collection[str], tokenizer: Tokenizer, *, names_recall: bool
) -> PromptState:
    history = state.history
    exchanges = SharedSequence(
        _stub_results_in_turn(turn, result_ids, tokenizer, names_recall=names_recall) for turn in history.turns
    )
    return replace(state, history=replace(history, turns=exchanges, stubbed_ids=history.stubbed_ids.union(result_ids)))


def _stub_results_in_turn(
    turn: HistoryTurn, result_ids: Collection[str], tokenizer: Tokenizer, *, names_recall: bool
) -> HistoryTurn:
    if any(placed_result.artifact.id in result_ids for placed_result in turn.tool_results):
        tools = [
            stub_tool_result(one, tokenizer, names_recall=names_recall) if one.artifact.id in result_ids else one
            for one in turn.tool_results
        ]
        turn = with_tool_results_only(turn, tools, tokenizer)
    if any(message.id in result_ids for message in turn.rounds):
        rounds = (
            stub_result_message(message, tokenizer, names_recall=names_recall)
            if _is_full_result_among(message, result_ids)
            else message
            for message in turn.rounds
        )
        turn = replace(turn, rounds=tuple(rounds))
    return turn


def _is_full_result_among(message: HistoryMessage, result_ids: Collection[str]) -> bool:
    return message.id in result_ids and message.segment.kind == TOOL_KIND and message.segment.form is ArtifactForm.FULL


def _apply_removal(
    state: PromptState,
    step: CompactionStep,
    placeholder_kind: SegmentKind | None,
    *,
    tokenizer: Tokenizer,
    chain_version: int,
    names_recall: bool,
) -> PromptState:
    count = tokenizer.count
    removed_ids = frozenset(step.removed)
    if state.pinned:
        removed_ids -= _list_messages_of_pinned_turns(state)
    if chain_version > 2:
        state = _keep_excerpts_in_digest(state, step, removed_ids, count)
    if chain_version > 1:
        # From chain 2 on a reply may be removed without its question. A line stays in its place, so that user and
        # assistant messages keep alternating.
        stays = removed_ids - _list_replies_of_removed_turns(state.history, removed_ids)
        state = shorten_replies(
            state,
            stays,
            partial(_shorten_to_stub, names_recall=names_recall),
            form=ArtifactForm.HANDLE,
            count=count,
        )
    history = state.history
    turns, messages, start = remove_messages(history, removed_ids, count=count)
    preamble = history.preamble
    if placeholder_kind is not None and step.text is not None:
        placeholder = make_placeholder(placeholder_kind, step.text, content=step.content, count=count)
        preamble = _add_placeholder(preamble, placeholder)
    if chain_version > 2:
        known = [message.id for message in iter_digest_messages(history.digest)]
        cut = dict.fromkeys(removed_ids.intersection(known), "") | {
            name: text for name, text in _get_excerpts_by_message_id(step).items() if name in removed_ids
        }
        shorter = shorten_digest(history.digest, cut, count=count)
        messages += len(known) - sum(len(block.messages) for block in shorter)
        history = replace(history, digest=shorter)
    preamble = extend_preamble(
        preamble, left_out=messages, brief=chain_version > 1, names_recall=history.names_recall, count=count
    )
    spoken = count_messages(turns)
    left = replace(history, turns=SharedSequence(turns), epoch_start=start, preamble=preamble, message_count=spoken)
    return replace(state, history=left)


def _get_excerpts_by_message_id(step: CompactionStep) -> dict[str, str]:
    return dict(zip(step.removed, step.outlines, strict=False))


def _keep_excerpts_in_digest(
    state: PromptState, step: CompactionStep, removed_ids: Set[str], count: TokenCounter
) -> PromptState:
    """Return the state whose digest has what the step keeps of questions that leave their place between turns."""
    kept = {name: text for name, text in _get_excerpts_by_message_id(step).items() if text and name in removed_ids}
    if not kept:
        return state
    new = [
        make_digest_message(
            turn.question.id,
            question_message_number(turn.turn_index),
            kept[turn.question.id],
            count=count,
            is_excerpt=True,
        )
        for turn in state.history.turns
        if turn.question.id in kept
    ]
    return replace(state, history=replace(state.history, digest=add_to_digest(state.history.digest, new)))


def _move_to_digest(state: PromptState, moved_ids: Set[str], tokenizer: Tokenizer) -> PromptState:
    """Move the oldest turns, as far as their questions are in ``moved_ids``, into the digest.

    Their replies in ``moved_ids`` leave. Pinned replies, and replies that ``moved_ids`` does not name, go into the
    digest word for word.
    """
    history, pinned, count = state.history, _list_messages_of_pinned_turns(state), tokenizer.count
    end = next((at for at, turn in enumerate(history.turns) if turn.question.id not in moved_ids), len(history.turns))
    moved: list[DigestMessage] = []
    gone = 0
    for turn in history.turns[:end]:
        for message in turn.messages:
            leaves = message is not turn.question and message.id in moved_ids and message.id not in pinned
            number = (
                question_message_number(turn.turn_index)
                if message is turn.question
                else question_message_number((message.turn or turn.turn_index + 1) - 1) + 1
            )
            if leaves or not message.original.strip():
                gone += 1
            else:
                moved.append(make_digest_message(message.id, number, message.original, count=count))
    turns = history.turns[end:]
    preamble = extend_preamble(
        history.preamble, left_out=gone, brief=True, names_recall=history.names_recall, count=count
    )
    left = replace(
        history,
        turns=SharedSequence(turns),
        epoch_start=max(history.epoch_start - end, 0),
        message_count=count_messages(turns),
        preamble=preamble,
        digest=add_to_digest(history.digest, moved),
    )
    return replace(state, history=left)


def _shorten_last_reply(state: PromptState, step: CompactionStep, tokenizer: Tokenizer) -> PromptState:
    """Return the state with replies shortened to the texts that the step has for them."""
    texts = _get_excerpts_by_message_id(step)
    names = frozenset(texts) - _list_messages_of_pinned_turns(state)
    return shorten_replies(
        state,
        names,
        lambda _text, _turn, shorter: shorter,
        form=ArtifactForm.PREVIEW,
        count=tokenizer.count,
        gists=texts,
        again=True,
    )


def _list_replies_of_removed_turns(history: ConversationHistory, removed_ids: Set[str]) -> set[str]:
    """Return the replies that leave no line, because their question and all joined replies go with them."""
    return {
        reply.segment.id
        for turn in history.turns
        if turn.question.segment.id in removed_ids and all(reply.segment.id in removed_ids for reply in turn.replies)
        for reply in turn.replies
    }


def _list_messages_of_pinned_turns(state: PromptState) -> frozenset[str]:
    """Return the ids of all messages in turns with a pinned message.

    A receipt may name such a message because it was written before the user pinned it.
    """
    pinned = state.pinned
    if not pinned:
        return frozenset()
    turn_ids = [[one.id for one in turn.messages] for turn in state.history.turns]
    by_turn: dict[int, list[str]] = {}
    for message in iter_digest_messages(state.history.digest):
        by_turn.setdefault(message.turn_index, []).append(message.id)
    turn_ids += by_turn.values()
    return frozenset(name for names in turn_ids if not pinned.isdisjoint(names) for name in names)


def remove_messages(
    history: ConversationHistory, removed_ids: Set[str], *, count: TokenCounter
) -> tuple[tuple[HistoryTurn, ...], int, int]:
    """Return the turns without these messages, the number removed, and the new index of the epoch start.

    A question can be removed alone only if a turn precedes it: its replies then join the reply of that turn. A reply
    is removed only together with its question.
    """
    left: list[HistoryTurn] = []
    joined: dict[int, list[HistoryMessage]] = {}
    messages = start = 0
    every = history.turns[:]
    if removed_ids.isdisjoint([turn.question.segment.id for turn in every]):
        return every, 0, history.epoch_start
    for index, turn in enumerate(every):
        if index == history.epoch_start:
            start = len(left)
        if turn.question.segment.id not in removed_ids:
            left.append(turn)
        elif all(reply.segment.id in removed_ids for reply in (turn.reply, *turn.joined_replies)):
            messages += 2 + len(turn.joined_replies)
        elif left:
            messages += 1
            last = len(left) - 1
            number = turn.turn_index + 1
            moved = [replace(one, turn=one.turn or number) for one in (turn.reply, *turn.joined_replies)]
            joined.setdefault(last, list(left[last].joined_replies)).extend(moved)
        else:
            left.append(turn)
    for index, replies in joined.items():
        left[index] = with_joined_replies(left[index], replies, count=count)
    return tuple(left), messages, start if history.epoch_start < len(every) else len(left)


def _add_placeholder(preamble: HistoryPreamble, placeholder: Placeholder) -> HistoryPreamble:
    """Add a placeholder to the history preamble.

    A new summary replaces the earlier one, since it covers the same turns as well. Rules replace the earlier rules
    block and come first.
    """
    others = tuple(other for other in preamble.blocks if other.kind is not placeholder.kind)
    if placeholder.kind is SegmentKind.SUMMARY:
        return replace(preamble, blocks=(*others, placeholder))
    if placeholder.kind is SegmentKind.RULES:
        return with_rules_block(preamble, placeholder)
    if any(other.text == placeholder.text for other in preamble.blocks):
        return preamble
    return replace(preamble, blocks=(*preamble.blocks, placeholder))


def _get_earliest_changing_step(receipt: CompactionReceipt) -> str:
    """Return the name of the step that changed the earliest bytes of the request.

    The order is: L1, the library, the preamble before all messages, tool results.
    """
    first = min(receipt.steps, key=_get_position_in_request, default=None)
    return FOLD_CAUSE if first is None else first.name


def _get_position_in_request(step: CompactionStep) -> int:
    # Stage data is part of the system prompt, before everything else.
    if any(map(is_stage_data_id, step.removed)):
        return -1
    if step.name in _SHRUNK_FORM_BY_STEP:
        return 0
    return 2 if step.name is CompactionStepName.TOOL_RESULTS else 1
