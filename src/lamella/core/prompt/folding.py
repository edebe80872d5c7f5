"""Fold the prompt: start a new epoch and move attachments from messages into the library."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from lamella.core.artifacts.blocks import render_tool_stub, render_update
from lamella.core.artifacts.model import Artifact
from lamella.core.budget import Tokenizer, count_pieces_tokens
from lamella.core.log.turn import ArtifactForm, HistoryMode, LayoutPlan, MessageAuthor, TurnSettings
from lamella.core.prompt.layers.digest import recount_digest
from lamella.core.prompt.layers.history import (
    HistoryMessage,
    HistoryTurn,
    Placeholder,
    SharedSequence,
    count_messages,
    make_history_message,
    make_placeholder,
    recount_preamble,
    render_placeholder,
    shorten_message,
    with_joined_replies,
)
from lamella.core.prompt.layers.library import (
    PlacedArtifact,
    choose_carried_form,
    make_placed_artifact,
    place_in_library,
    place_library,
)
from lamella.core.prompt.layers.model import SYSTEM_POSITION, SegmentKind, message_position
from lamella.core.prompt.layers.tool_rounds import count_tool_call_tokens, make_call_lines
from lamella.core.prompt.prompt import has_system_message, render_user_message
from lamella.core.prompt.rules import with_hidden_rules
from lamella.core.prompt.state import PromptState
from lamella.core.text.exact_terms import render_exact_strings
from lamella.core.text.rule_detection import build_conversation_outline
from lamella.core.values import replace

SHOWN_TURNS_BY_MODE = {HistoryMode.WINDOW: 10, HistoryMode.STRIP: 2}
MAX_PLACEHOLDER_TOKENS = 300
_MAX_EXACT_LIST_TOKENS = 150
# The outline shows the newest turns that fit its token limit. More turns than this can never fit.
_MAX_OUTLINED_TURNS = 60
# A summary of hidden turns covers whole groups of turns, so that not every turn needs a new summary.
_SUMMARY_GROUP_TURNS = 8


def fold(
    state: PromptState,
    turn_settings: TurnSettings,
    tokenizer: Tokenizer,
    *,
    layout_plan: LayoutPlan,
    attached: Sequence[Artifact] = (),
    summary: str | None = None,
) -> PromptState:
    """Move all earlier attachments into the library, and reduce tool results to their calls.

    If the layout plan keeps messages, only the messages after them fold. A note whose text is inlined into L1, as
    known or as attached now, is not repeated in the library. ``summary`` is a summary of the oldest turns that the
    history mode hides.
    """
    if layout_plan.keep_messages:
        return _fold_after_kept(state, turn_settings, tokenizer, layout_plan=layout_plan)
    folded = fold_library(state, turn_settings, tokenizer, forms=layout_plan.forms, attached=attached)
    start = folded.history.epoch_start
    ended = folded.history.turns[start:]
    # Most turns contain only typed text. Skipping them by identity avoids rebuilding thousands of turns.
    bare = [one.question_message is one.question.message and not (one.rounds or one.tool_results) for one in ended]
    plain = tuple(
        [
            one if is_bare else _remove_attachments(one, turn_settings, tokenizer)
            for one, is_bare in zip(ended, bare, strict=True)
        ]
    )
    # Keep the shared sequence if nothing changed: a new one copies the whole history.
    exchanges = SharedSequence((*folded.history.turns[:start], *plain)) if plain != ended else folded.history.turns
    closed = sum([len(turn.rounds) for turn in ended])
    history = replace(
        folded.history, turns=exchanges, epoch_start=len(exchanges), message_count=folded.history.message_count - closed
    )
    shown = replace(folded, history=history)
    return (
        shown
        if turn_settings.history is HistoryMode.FULL and not history.hides_turns
        else hide_old_turns(shown, turn_settings, tokenizer, summary=summary)
    )


def _fold_after_kept(
    state: PromptState, turn_settings: TurnSettings, tokenizer: Tokenizer, *, layout_plan: LayoutPlan
) -> PromptState:
    """Start a new epoch after the turns that begin before the first message that is not kept.

    Later turns keep only their conversation. Library artifacts that they attached move into the next question, in
    first-seen order. Their tool results and images are removed, as in any fold.
    """
    forms, keep = layout_plan.forms, layout_plan.keep_messages or 0
    history, first = state.history, int(has_system_message(state.system, state.system_library))
    cut, end = history.hidden_turns, first
    while cut < len(history.turns) and end < keep:
        end += count_messages(history.turns[cut : cut + 1])
        cut += 1
    closed = [_remove_attachments(turn, turn_settings, tokenizer) for turn in history.turns[cut:]]
    spoken = history.message_count - sum([len(turn.rounds) for turn in history.turns[cut:]])
    history = replace(history, turns=SharedSequence((*history.turns[:cut], *closed)), message_count=spoken)
    kept_pieces = {
        piece for turn in history.turns[history.hidden_turns : cut] for piece in turn.question_message.pieces
    }
    placed = {name: one for name, one in state.placed.items() if _is_placed_before(one, end)}
    position = message_position(first + history.shown_message_count)
    for name, entry in state.library.items():
        if name not in placed:
            form = forms.get(name) or choose_carried_form(entry, turn_settings)
            old = state.placed.get(name)
            left = (
                [piece for piece in old.pieces if piece in kept_pieces or _is_in_system_library(state, name, piece)]
                if old
                else []
            )
            placed[name] = _place_in_question(entry.artifact, form, left, position=position, tokenizer=tokenizer)
    return replace(state, history=history, placed=placed, epoch=state.epoch + 1, turn_settings=turn_settings)


def _is_placed_before(placed: PlacedArtifact, end: int) -> bool:
    """Return whether the newest piece of an artifact is in the system message or in a message before ``end``."""
    position = placed.place
    if position is None or position == SYSTEM_POSITION:
        return placed.is_listed or position is not None
    return int(position.partition(":")[2]) < end


def _is_in_system_library(state: PromptState, name: str, piece: str) -> bool:
    return name in state.system_library and piece in state.system_library[name].pieces


def _place_in_question(
    artifact: Artifact, form: ArtifactForm, kept_pieces: Sequence[str], *, position: str, tokenizer: Tokenizer
) -> PlacedArtifact:
    """Place a known artifact in a question that did not attach it; pieces ``kept_pieces`` above make it an update."""
    fresh = place_in_library(artifact, form=form, count=tokenizer.count)
    if not kept_pieces or fresh.form is not ArtifactForm.FULL:
        form, text = fresh.form, fresh.pieces[-1]
    else:
        form, text = ArtifactForm.UPDATE, render_update(artifact, diff=None)
    pieces = (*kept_pieces, text)
    tokens = sum(tokenizer.count(piece) for piece in pieces)
    return make_placed_artifact(artifact, form=form, position=position, pieces=pieces, tokens=tokens)


def fold_library(
    state: PromptState,
    turn_settings: TurnSettings,
    tokenizer: Tokenizer,
    *,
    forms: Mapping[str, ArtifactForm] = MappingProxyType({}),
    attached: Sequence[Artifact] = (),
) -> PromptState:
    """Start a new epoch: render all known artifacts into the system message, and none into messages."""
    if state.tokenizer_name != tokenizer.name:
        state = recount_state_with_tokenizer(state, tokenizer)
    inlined: dict[str, Artifact] = {artifact.id: artifact for artifact in state.system.inlined}
    before = state.turn_settings
    is_unchanged = (
        before is not None
        and before.carry_forward is turn_settings.carry_forward
        and before.attachments is turn_settings.attachments
    )
    if is_unchanged and state.library_rendered_from is state.library and not inlined and not forms:
        # Most turns attach nothing, so thousands of folds share one rendered library. The library is compared by
        # identity because comparing its texts would cost more than the fold.
        placed_library = state.system_library
    else:
        placed_library = place_library(
            state.library,
            system_library=state.system_library if is_unchanged else {},
            placed=state.placed,
            forms=forms,
            turn_settings=turn_settings,
            excluded_ids=_list_inlined_ids(state, inlined, attached),
            count=tokenizer.count,
        )
    return replace(
        state,
        system_library=placed_library,
        library_rendered_from=state.library if not inlined else None,
        placed={**{name: place_inlined_note(a) for name, a in inlined.items()}, **placed_library}
        if inlined
        else placed_library,
        epoch=state.epoch if state.turn_settings is None else state.epoch + 1,
        # The placeholder for hidden turns of the previous epoch may have been counted by another tokenizer, or may
        # contain a summary that this turn does not have.
        history=state.history if state.history.placeholder is None else replace(state.history, placeholder=None),
        turn_settings=turn_settings,
    )


def _list_inlined_ids(state: PromptState, inlined: Mapping[str, Artifact], attached: Sequence[Artifact]) -> set[str]:
    if not inlined:
        return set()
    known = [entry.artifact for entry in state.library.values()]
    return {a.id for a in (*known, *attached) if a.id in inlined and inlined[a.id].hash == a.hash}


def _remove_attachments(turn: HistoryTurn, turn_settings: TurnSettings, tokenizer: Tokenizer) -> HistoryTurn:
    """Return a turn whose epoch is over: without attachments, and with tool calls as lines before its reply."""
    names_recall = turn_settings.names_recall
    stubs = [stub_tool_result(one, tokenizer, names_recall=names_recall) for one in turn.tool_results]
    closed = with_tool_results_only(turn, (*stubs, *turn.picture_lines), tokenizer)
    if not closed.rounds:
        return closed
    lines = (*closed.call_lines, *make_call_lines(closed.rounds, tokenizer, names_recall=names_recall))
    return with_joined_replies(
        replace(closed, rounds=(), call_lines=lines), closed.joined_replies, count=tokenizer.count
    )


def with_tool_results_only(turn: HistoryTurn, tools: Sequence[PlacedArtifact], tokenizer: Tokenizer) -> HistoryTurn:
    """Return a turn whose question contains only these tool results, or lines in their place, and the typed text."""
    if not tools:
        plain = not turn.tool_results and turn.question_message == turn.question.message
        return turn if plain else replace(turn, question_message=turn.question.message, tool_results=())
    pieces = [piece for placed_result in tools for piece in placed_result.pieces]
    sent = render_user_message(pieces, turn.question.message.pieces, (), count=tokenizer.count)
    return replace(turn, question_message=sent, tool_results=tuple(tools), picture_lines=())


def with_inline_stubs(turn: HistoryTurn, stubs: Sequence[PlacedArtifact], tokenizer: Tokenizer) -> HistoryTurn:
    """Return a turn whose question contains these one-line calls and the typed text, without a label.

    A call on a line of its own is easy to distinguish from the typed text, so it needs no label.
    """
    pieces = (*(piece for stub in stubs for piece in stub.pieces), *turn.question.message.pieces)
    sent = replace(
        turn.question.message, pieces=pieces, tokens=count_pieces_tokens(pieces, tokenizer.count), piece_token_counts=()
    )
    return replace(turn, question_message=sent, tool_results=tuple(stubs), picture_lines=())


def has_only_inline_stubs(turn: HistoryTurn) -> bool:
    """Return whether a question contains only one-line calls and the typed text, without a label."""
    stubs = [placed_result for placed_result in turn.tool_results if placed_result.form is ArtifactForm.HANDLE]
    has_only_stubs = len(turn.question_message.pieces) == len(stubs) + len(turn.question.message.pieces)
    return bool(stubs) and len(stubs) == len(turn.tool_results) and has_only_stubs


def stub_tool_result(placed_result: PlacedArtifact, tokenizer: Tokenizer, *, names_recall: bool) -> PlacedArtifact:
    """Return a tool result reduced to a stub with the call that gets it again."""
    if placed_result.form is ArtifactForm.HANDLE:
        return placed_result
    text = render_tool_stub(placed_result.artifact, names_recall=names_recall)
    return make_placed_artifact(
        placed_result.artifact,
        form=ArtifactForm.HANDLE,
        position=placed_result.place,
        pieces=(text,),
        tokens=tokenizer.count(text),
    )


def hide_old_turns(
    state: PromptState, turn_settings: TurnSettings, tokenizer: Tokenizer, *, summary: str | None = None
) -> PromptState:
    """Hide the turns that the history mode does not show; add a placeholder and the user rules for them."""
    history = state.history
    if turn_settings.history is HistoryMode.FULL:
        return (
            state
            if not history.hides_turns
            else replace(
                state,
                history=replace(
                    history, hidden_turns=0, first_shown_turn=0, hides_excerpts=False, placeholder=None, rules=None
                ),
            )
        )
    hidden = _hide_older_turns(with_recall_named(state, turn_settings), turn_settings, tokenizer, summary=summary)
    if not turn_settings.hidden_rules:
        return replace(hidden, history=replace(hidden.history, rules=None)) if hidden.history.rules else hidden
    return with_hidden_rules(hidden, tokenizer, cues=turn_settings.cues)


def with_recall_named(state: PromptState, turn_settings: TurnSettings) -> PromptState:
    """Return the state whose placeholders before the history name recall or not, as the turn settings say.

    They change only where the history before them changes anyway.
    """
    if state.history.names_recall == turn_settings.names_recall:
        return state
    return replace(state, history=replace(state.history, names_recall=turn_settings.names_recall))


_get_turn_index = attrgetter("turn_index")


def _hide_older_turns(
    state: PromptState, turn_settings: TurnSettings, tokenizer: Tokenizer, *, summary: str | None
) -> PromptState:
    history = state.history
    # Count back from the last turn that was asked: if a compaction removed a turn, no older one becomes visible again.
    first = state.turn_count - (turn_settings.history_turns or SHOWN_TURNS_BY_MODE[turn_settings.history])
    # A compaction may have removed turns, but it keeps the order of the others.
    hidden = bisect_left(history.turns, first, key=_get_turn_index)
    if history.digest and first > 0:
        history = replace(history, first_shown_turn=first, hides_excerpts=not turn_settings.hidden_excerpts)
    if not hidden or turn_settings.history is not HistoryMode.STRIP:
        return replace(state, history=replace(history, hidden_turns=hidden, placeholder=None))
    if summary is None and hidden == history.hidden_turns and history.placeholder is not None:
        return replace(state, history=history)
    placeholder = _make_outline_placeholder(history.turns[:hidden], tokenizer, summary)
    covered = history.turns[: count_summarized_turns(hidden)]
    retold = history.last_summary if summary is None else (summary, question_ids(covered))
    return replace(state, history=replace(history, hidden_turns=hidden, placeholder=placeholder, last_summary=retold))


def count_summarized_turns(hidden: int) -> int:
    """Return how many of the hidden turns a summary covers; the placeholder outlines the newer ones."""
    return hidden - hidden % _SUMMARY_GROUP_TURNS


def question_ids(turns: Sequence[HistoryTurn]) -> tuple[str, ...]:
    """Return the ids of the questions of some turns."""
    return tuple([turn.question.id for turn in turns])


def _make_outline_placeholder(hidden: Sequence[HistoryTurn], tokenizer: Tokenizer, summary: str | None) -> Placeholder:
    count = tokenizer.count
    newest = hidden[-_MAX_OUTLINED_TURNS:]
    rest = newest if summary is None else hidden[count_summarized_turns(len(hidden)) :]
    cap = max(0, MAX_PLACEHOLDER_TOKENS - (count(summary) if summary else 0))
    talk = [(one.question.text, "\n\n".join(reply.original for reply in one.replies)) for one in rest]
    outline = build_conversation_outline(talk, max_tokens=cap, count=count)
    texts = [message.original for turn in newest for message in turn.messages]
    # This block is rebuilt whenever a conversation is opened. ``legacy`` keeps the older detection rules, so that the
    # result equals the bytes that were sent.
    exact = render_exact_strings(texts, max_tokens=_MAX_EXACT_LIST_TOKENS, count=count, legacy=True)
    content = "\n".join(part for part in (summary, outline) if part)
    block = render_placeholder(SegmentKind.SUMMARY, content, covers=f"the {len(hidden):,} turns before", exact=exact)
    return make_placeholder(SegmentKind.SUMMARY, block, count=count)


def recount_state_with_tokenizer(state: PromptState, tokenizer: Tokenizer) -> PromptState:
    """Count the whole state again with another tokenizer.

    All placed artifacts are cleared, so the fold that follows renders and counts them again.
    """
    history = state.history
    exchanges = SharedSequence(_recount_turn(turn, tokenizer) for turn in history.turns)
    return replace(
        state,
        history=replace(
            history,
            turns=exchanges,
            preamble=recount_preamble(history.preamble, tokenizer.count, names_recall=history.names_recall),
            rules=None,
            digest=recount_digest(history.digest, tokenizer.count),
        ),
        system_library={},
        library_rendered_from=None,
        placed={},
        tokenizer_name=tokenizer.name,
    )


def _recount_turn(turn: HistoryTurn, tokenizer: Tokenizer) -> HistoryTurn:
    count = tokenizer.count
    again = replace(
        turn,
        question=_recount_message(turn.question, MessageAuthor.USER, tokenizer),
        reply=_recount_message(turn.reply, MessageAuthor.REPLY, tokenizer),
        tool_results=tuple(
            _recount_tool_result(placed_result, tokenizer)
            for placed_result in (*turn.tool_results, *turn.picture_lines)
        ),
        picture_lines=(),
        rounds=tuple(_recount_round(message, tokenizer) for message in turn.rounds),
        call_lines=tuple(replace(line, tokens=count(line.text)) for line in turn.call_lines),
        joined_replies=tuple(_recount_message(reply, MessageAuthor.REPLY, tokenizer) for reply in turn.joined_replies),
    )
    # Questions of earlier epochs contain only typed text and what is left of tool results. One-line calls must keep
    # that form: hidden turns are never closed again.
    keep = with_inline_stubs if has_only_inline_stubs(turn) else with_tool_results_only
    return with_joined_replies(keep(again, again.tool_results, tokenizer), again.joined_replies, count=count)


def _recount_message(message: HistoryMessage, author: MessageAuthor, tokenizer: Tokenizer) -> HistoryMessage:
    if message.full_texts is not None:
        return shorten_message(message, message.text, form=message.segment.form, count=tokenizer.count)
    again = make_history_message(message.id, author, message.text, position=message.segment.place, tokenizer=tokenizer)
    return again if message.turn is None else replace(again, turn=message.turn)


def _recount_round(message: HistoryMessage, tokenizer: Tokenizer) -> HistoryMessage:
    tokens = count_tool_call_tokens(message.text, message.message.provider_reply, tokenizer)
    return HistoryMessage(
        message=replace(message.message, tokens=tokens), segment=replace(message.segment, tokens=tokens)
    )


def _recount_tool_result(placed_result: PlacedArtifact, tokenizer: Tokenizer) -> PlacedArtifact:
    tokens = sum(tokenizer.count(piece) for piece in placed_result.pieces)
    return make_placed_artifact(
        placed_result.artifact,
        form=placed_result.form,
        position=placed_result.place,
        pieces=placed_result.pieces,
        tokens=tokens,
    )


def place_inlined_note(artifact: Artifact) -> PlacedArtifact:
    """Return a note that L1's instructions inline as a placed artifact.

    It has no pieces of its own: later turns can refer to it, and the library does not repeat it.
    """
    return make_placed_artifact(artifact, form=ArtifactForm.FULL, position=SYSTEM_POSITION, pieces=(), tokens=0)
