"""Fold the prompt from some message on, if costs decide the layout.

Messages before the cut stay as sent. After it the conversation stays, unused attachments leave, and attachments in
use are shown again in the question. The system message contains only L1: library texts are always in messages.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain

from lamella.core.artifacts.blocks import render_call_line, render_update
from lamella.core.artifacts.kinds import LIBRARY_KIND, goes_to_library
from lamella.core.artifacts.model import Artifact
from lamella.core.budget import Tokenizer
from lamella.core.log.turn import ArtifactForm, AttachmentMode, LayoutPlan, TurnSettings
from lamella.core.prompt.artifact_index import ArtifactIndex, build_index
from lamella.core.prompt.attachments import is_in_working_set
from lamella.core.prompt.folding import (
    has_only_inline_stubs,
    hide_old_turns,
    place_inlined_note,
    recount_state_with_tokenizer,
    with_inline_stubs,
    with_tool_results_only,
)
from lamella.core.prompt.layers.history import ConversationHistory, HistoryTurn, SharedSequence, history_messages
from lamella.core.prompt.layers.library import (
    LibraryEntry,
    PlacedArtifact,
    can_be_listed,
    can_shrink,
    choose_carried_form,
    is_start_or_end_of_handle_list,
    make_placed_artifact,
    max_handle_list_tokens,
    place_handle_list,
    place_in_library,
    place_newest_handles,
    place_without_text,
)
from lamella.core.prompt.layers.model import SYSTEM_POSITION, message_position
from lamella.core.prompt.prompt import has_system_message, render_user_message
from lamella.core.prompt.state import PromptState, get_index
from lamella.core.values import replace


def fold_after_cut(
    state: PromptState,
    turn_settings: TurnSettings,
    tokenizer: Tokenizer,
    *,
    layout_plan: LayoutPlan,
    attached: Sequence[Artifact],
    summary: str | None = None,
) -> PromptState:
    """Start a new epoch after the messages that the layout plan keeps; 0 or None keeps none.

    ``attached`` are the attachments of this turn; the turn renders them itself. ``summary`` is a summary of the oldest
    turns that the history mode hides, if a model wrote one.
    """
    keep = layout_plan.keep_messages or 0
    if state.tokenizer_name != tokenizer.name:
        state = recount_state_with_tokenizer(state, tokenizer)
    first = int(has_system_message(state.system, {}))
    at, end = first_turn_after_cut(state.history, keep, first_message=first)
    within = layout_plan.within if at < len(state.history.turns) else 0
    history = _strip_attachments_after(state.history, at, tokenizer, keep_pieces=within)
    # The cut may be inside a message: then the first pieces of the first message after it stay, too.
    head = history.turns[at].question_message.pieces[:within] if within else ()
    kept_pieces = set(head).union(
        chain.from_iterable([turn.question_message.pieces for turn in history.turns[history.hidden_turns : at]])
    )
    placed: dict[str, PlacedArtifact] = {one.id: place_inlined_note(one) for one in state.system.inlined}
    index = get_index(state)
    names = [artifact.id for artifact in attached]
    # Retired artifacts are only counted, unless one of them comes back with this turn.
    is_covered = index.suffices_for_turn(linger=turn_settings.linger, turn_number=state.turn_count, names=names)
    library, before = (index.active_library, index.active_placed) if is_covered else (state.library, state.placed)
    placed |= {name: one for name, one in before.items() if keep and _is_in_kept_message(one, end, head)}
    now = replace(state, history=history, system_library={}, library_rendered_from=None, turn_settings=turn_settings)
    if at <= history.hidden_turns:
        # No turn that was shown stays as sent, so the history mode may choose again which turns to show. That must
        # happen before artifacts get a position in the question, because the question comes after the shown turns.
        now = hide_old_turns(_without_history_preamble(now), turn_settings, tokenizer, summary=summary)
    shown = {artifact.id for artifact in attached}
    left = {
        name: entry
        for name, entry in library.items()
        if name not in placed
        or (
            name not in shown
            and _differs_from_inlined(entry, placed[name], turn_settings, turn_number=state.turn_count)
        )
    }
    position = message_position(first + now.history.shown_message_count)
    # Lists of handles in messages that stay use part of the token limit for all such lists.
    above = sum([one.tokens for one in placed.values() if one.is_listed])
    placed |= _place_artifacts_removed_by_cut(
        now,
        left,
        attached,
        index=index if is_covered else None,
        kept_pieces=kept_pieces,
        position=position,
        handle_list_tokens=above,
        tokenizer=tokenizer,
    )
    now = replace(now, epoch=state.epoch if state.turn_settings is None else state.epoch + 1)
    if not is_covered:
        return replace(now, placed=placed, index=build_index(now.library, placed))
    relisted = [one for one in reversed(index.retired[-len(placed) - 1 :]) if one.name in placed]
    folded = index.after_fold(placed, relisted=relisted)
    return replace(now, placed=folded.placed, index=folded)


def first_turn_after_cut(history: ConversationHistory, keep_messages: int, *, first_message: int) -> tuple[int, int]:
    """Return the index of the first turn after the kept messages, and the index of its first message."""
    at, end = len(history.turns), first_message + history.shown_message_count
    # Search from the end: nearly always everything but the newest turn is kept.
    while at > history.hidden_turns and (begins := end - 2 - len(history.turns[at - 1].rounds)) >= keep_messages:
        at, end = at - 1, begins
    return at, end


def _without_history_preamble(state: PromptState) -> PromptState:
    # The placeholder of the previous epoch may contain a summary that this turn does not have.
    return (
        state if state.history.placeholder is None else replace(state, history=replace(state.history, placeholder=None))
    )


def _strip_attachments_after(
    history: ConversationHistory, turn_index: int, tokenizer: Tokenizer, *, keep_pieces: int
) -> ConversationHistory:
    """Remove attachments from the questions of the turns after the cut.

    Typed text, replies and tool rounds stay. A tool result that was sent as text becomes one line with its call. The
    first of these questions keeps its first ``keep_pieces`` pieces. If nothing changes, the result is the same object.
    """
    behind = history.turns[turn_index:]
    closed = [_strip_attachments(turn, tokenizer) for turn in behind]
    if keep_pieces:
        closed[0] = _strip_attachments_except(behind[0], closed[0], tokenizer, keep_pieces=keep_pieces)
    if all(new is old for new, old in zip(closed, behind, strict=True)):
        return history
    return replace(history, turns=SharedSequence((*history.turns[:turn_index], *closed)))


def _strip_attachments(turn: HistoryTurn, tokenizer: Tokenizer) -> HistoryTurn:
    if has_no_attachments(turn):
        return turn
    stubs = [to_call_line(placed_result, tokenizer) for placed_result in (*turn.tool_results, *turn.picture_lines)]
    return with_inline_stubs(turn, stubs, tokenizer) if stubs else with_tool_results_only(turn, (), tokenizer)


def _strip_attachments_except(
    turn: HistoryTurn, stripped: HistoryTurn, tokenizer: Tokenizer, *, keep_pieces: int
) -> HistoryTurn:
    """Return a closed turn whose question still begins with the first ``keep_pieces`` pieces as they were sent."""
    stubs = [piece for placed_result in stripped.tool_results for piece in placed_result.pieces]
    pieces = (*turn.question_message.pieces[:keep_pieces], *stubs)
    sent = render_user_message(pieces, turn.question.message.pieces, (), count=tokenizer.count)
    return turn if sent == turn.question_message else replace(stripped, question_message=sent)


def has_no_attachments(turn: HistoryTurn) -> bool:
    """Return whether a question has nothing that a cut removes: only typed text and one-line calls."""
    typed, sent = turn.question.message, turn.question_message
    if sent is typed or not turn.tool_results:
        return sent == typed
    return has_only_inline_stubs(turn)


def to_call_line(placed_result: PlacedArtifact, tokenizer: Tokenizer) -> PlacedArtifact:
    """Return a tool result reduced to one line with the call that gets it again."""
    if placed_result.form is ArtifactForm.HANDLE:
        return placed_result
    text = render_call_line(placed_result.artifact)
    return make_placed_artifact(
        placed_result.artifact,
        form=ArtifactForm.HANDLE,
        position=placed_result.place,
        pieces=(text,),
        tokens=tokenizer.count(text),
    )


def _is_in_kept_message(placed: PlacedArtifact, end: int, head: Sequence[str]) -> bool:
    """Return whether the newest piece of an artifact is in a kept message.

    Kept are the messages before index ``end`` and the pieces ``head`` at the beginning of the next one.
    """
    position = placed.place
    if position is None or position == SYSTEM_POSITION:
        return False
    at = int(position.partition(":")[2])
    return at < end or (at == end and bool(placed.pieces) and placed.pieces[-1] in head)


def _differs_from_inlined(
    entry: LibraryEntry, placed: PlacedArtifact, turn_settings: TurnSettings, *, turn_number: int
) -> bool:
    """Return whether an attached artifact has another text than the copy that the instructions inline.

    Such a copy does not count as the artifact, which therefore has to be shown as well.
    """
    drawn_in = placed.place == SYSTEM_POSITION and placed.artifact.hash != entry.artifact.hash
    return drawn_in and is_in_working_set(entry, turn_settings, turn_number=turn_number)


def _place_artifacts_removed_by_cut(
    state: PromptState,
    entries: Mapping[str, LibraryEntry],
    attached: Sequence[Artifact],
    *,
    index: ArtifactIndex | None,
    kept_pieces: Collection[str],
    position: str,
    handle_list_tokens: int,
    tokenizer: Tokenizer,
) -> dict[str, PlacedArtifact]:
    """Place the artifacts whose copies the cut removed, and list those that are no longer used.

    With an ``index``, retired artifacts are counted although they are not in ``entries``. ``kept_pieces`` are the pieces
    that stay above the cut; ``handle_list_tokens`` is the token count of handle lists
    that stay there.
    """
    turn_settings = state.turn_settings or TurnSettings()
    now: dict[str, Artifact] = {artifact.id: artifact for artifact in attached if goes_to_library(artifact)}
    placed: dict[str, PlacedArtifact] = {}
    unused: list[LibraryEntry] = []
    for name, entry in entries.items():
        old = state.placed.get(name)
        copied = old is not None and any(
            piece in kept_pieces for piece in old.pieces if not is_start_or_end_of_handle_list(piece)
        )
        artifact = now.get(name)
        if artifact is not None and not _is_shown_unchanged_later(artifact):
            # The turn shows it: as an update if an older copy stays above, and otherwise as if it were new.
            placed[name] = _make_unplaced_artifact(entry.artifact if copied else artifact)
        elif artifact is not None:
            placed[name] = _place_again(
                artifact, ArtifactForm.FULL, has_copy_above=copied, position=position, tokenizer=tokenizer
            )
        elif must_stay_readable(entry, turn_settings, turn_number=state.turn_count) and not (
            entry.is_listed and can_be_listed(entry.artifact)
        ):
            form = _choose_library_form(entry, turn_settings)
            placed[name] = _place_again(
                entry.artifact, form, has_copy_above=copied, position=position, tokenizer=tokenizer
            )
        else:
            unused.append(entry)
    if not unused and (index is None or not index.retired):
        return placed
    placed_tokens = sum([one.tokens for one in placed.values()])
    placed_tokens += sum([message.tokens for message in history_messages(state.history.shown)])
    remaining_tokens = max_handle_list_tokens(placed_tokens) - handle_list_tokens
    if index is not None:
        newest = (
            index.library[one.name].artifact
            for one in index.iter_handles_newest_first([one.artifact.id for one in unused])
        )
        listed = place_newest_handles(
            newest,
            len(unused) + len(index.retired),
            count=tokenizer.count,
            position=position,
            max_tokens=remaining_tokens,
            names_recall=turn_settings.names_recall,
            is_continued=handle_list_tokens > 0,
        )
        silent = {one.artifact.id: place_without_text(one.artifact) for one in unused if one.artifact.id not in listed}
        return placed | listed | silent
    return placed | place_handle_list(
        unused,
        count=tokenizer.count,
        position=position,
        max_tokens=remaining_tokens,
        names_recall=turn_settings.names_recall,
        is_continued=handle_list_tokens > 0,
    )


def must_stay_readable(entry: LibraryEntry, turn_settings: TurnSettings, *, turn_number: int) -> bool:
    """Return whether an artifact must stay readable in a turn that does not attach it.

    That is so for the working set and for artifacts that may never be shortened.
    """
    return is_in_working_set(entry, turn_settings, turn_number=turn_number) or not can_shrink(entry.artifact)


def _is_shown_unchanged_later(artifact: Artifact) -> bool:
    """Return whether later turns show an attachment the same way: no active note, outline or summary."""
    return LIBRARY_KIND[artifact.kind] is artifact.kind and not artifact.is_outlined and artifact.condensed is None


def _choose_library_form(entry: LibraryEntry, turn_settings: TurnSettings) -> ArtifactForm:
    """Return the form of an artifact in use: full, unless a compaction or its images made it smaller."""
    readable = (
        turn_settings.attachments is AttachmentMode.TURN and entry.form is None and entry.artifact.condensed is None
    )
    return ArtifactForm.FULL if readable else choose_carried_form(entry, turn_settings)


def _place_again(
    artifact: Artifact, form: ArtifactForm, *, has_copy_above: bool, position: str, tokenizer: Tokenizer
) -> PlacedArtifact:
    if has_copy_above and form is ArtifactForm.FULL:
        text = render_update(artifact, diff=None)
        return make_placed_artifact(
            artifact, form=ArtifactForm.UPDATE, position=position, pieces=(text,), tokens=tokenizer.count(text)
        )
    shown = place_in_library(artifact, form=form, count=tokenizer.count)
    return replace(shown, segment=replace(shown.segment, place=position))


def _make_unplaced_artifact(artifact: Artifact) -> PlacedArtifact:
    return make_placed_artifact(artifact, form=ArtifactForm.HANDLE, position=None, pieces=(), tokens=0)


def list_pieces_moved_by_cut(
    library: Mapping[str, LibraryEntry], placed: Mapping[str, PlacedArtifact], position: str
) -> list[str]:
    """List the pieces that a cut moved into the question: artifacts as first seen, then the handle list."""
    moved = [placed[name] for name in library if placed[name].place == position and placed[name].pieces]
    listed = [one for one in placed.values() if one.is_listed and one.place == position]
    alive = [one.pieces[-1] for one in moved if not one.is_listed]
    return [*alive, *(piece for one in listed for piece in one.pieces)]
