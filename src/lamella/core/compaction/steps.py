"""The steps of a compaction that need no model, one function each.

Completed workflow stages (``drop_oldest_stages``), library entries (``shrink_to_previews``, ``shrink_to_handles``),
tool results (``stub_tool_results``), acknowledgements (``drop_chitchat``), replies (``outline_replies``) and whole
turns (``drop_expendable``). Each step frees what the draft is over its target and no more: see ``select_first_that_free_enough``.

Pinned entries, and entries that cannot be read again, are never shortened. The user's messages go last: they are the
smaller part of most conversations and contain most of what is needed later.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import accumulate, takewhile
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_list_line
from lamella.core.compaction.draft import ALL_TURNS, PromptDraft
from lamella.core.compaction.outlines import may_be_sent_shorter
from lamella.core.compaction.removal_order import rank_messages_for_removal
from lamella.core.log.receipts import CompactionStep, CompactionStepName, ReplyInPrompt
from lamella.core.log.turn import ArtifactForm, HistoryMode
from lamella.core.prompt.attachments import is_in_working_set, stub_id
from lamella.core.prompt.folding import stub_tool_result
from lamella.core.prompt.layers.digest import DigestMessage, iter_digest_messages, render_digest_line
from lamella.core.prompt.layers.history import HistoryMessage, HistoryTurn, render_notice
from lamella.core.prompt.layers.library import PlacedArtifact, can_shrink, render_shorter_form
from lamella.core.prompt.layers.tool_rounds import TOOL_KIND, group_rounds, stub_result_message
from lamella.core.text.content import iter_lines_with_code_flag
from lamella.core.text.rule_detection import OUTLINE_OPENING, outline_reply, reply_gist, shorten_to_ends, stub_reply
from lamella.core.values import replace

# A reply of at most this many tokens counts as a message of the user in every step.
SHORT_REPLY_TOKENS = 60
# A last reply of at most this share of the window is never shortened.
LAST_REPLY_SHARE = 0.05
# Directives in the digest leave only over this share of the window, unless the request could not be sent otherwise.
DIRECTIVES_SHARE = 0.05
# About what the number of a message in the digest adds to its text.
_DIGEST_LINE_TOKENS = 5


def drop_oldest_stages(draft: PromptDraft) -> CompactionStep | None:
    """Remove the oldest completed stage that still has messages in the prompt, except the recent stages."""
    return _remove_oldest_stage(draft, CompactionStepName.OLDEST_STAGES, recent=False)


def shrink_recent_stages(draft: PromptDraft) -> CompactionStep | None:
    """Shorten the data of the recent stages first, then remove the oldest of them that still has messages."""
    return _shorten_stage_data(draft) or _remove_oldest_stage(draft, CompactionStepName.RECENT_STAGES, recent=True)


def _shorten_stage_data(draft: PromptDraft) -> CompactionStep | None:
    system = draft.turn.system or draft.state.system
    count = draft.tokenizer.count
    if (
        draft.turn_range is not ALL_TURNS
        or not system.workflow_detail
        or count(system.workflow_brief) >= count(system.workflow)
    ):
        return None
    return CompactionStep(name=CompactionStepName.RECENT_STAGES, removed=tuple(system.workflow_detail.split()))


def _remove_oldest_stage(draft: PromptDraft, name: CompactionStepName, *, recent: bool) -> CompactionStep | None:
    """Remove one stage at a time; the caller counts the draft's tokens again before the next one."""
    done: set[str] = set()
    for stage, messages in draft.stages:
        # A reply whose question was removed is joined to the turn before it, which can belong to an earlier stage.
        done.update(messages)
        turns = (
            [turn for turn in draft.removable_turns if all(message.id in done for message in turn.messages)]
            if stage.recent is recent
            else []
        )
        if turns:
            return remove_turns_keeping_directives(draft, name, turns)
    return None


# Selection: candidates in order until they free enough tokens.


def select_first_that_free_enough(
    candidates: Iterable[tuple[str, int]], excess: int, *, drop_unneeded: bool = False
) -> tuple[str, ...]:
    """Return the first candidates that together free the excess, without those that free nothing.

    Each candidate comes with the tokens that it frees. The last one may free more than necessary; with
    ``drop_unneeded``, earlier candidates that are then not needed are left out again, the latest first.
    """
    taken: dict[str, int] = {}
    freed = 0
    for name, tokens in candidates:
        if freed >= excess:
            break
        if tokens > 0:
            taken[name] = taken.get(name, 0) + tokens
            freed += tokens
    for name, tokens in reversed(tuple(taken.items())) if drop_unneeded else ():
        if tokens <= freed - excess:
            del taken[name]
            freed -= tokens
    return tuple(taken)


# Library entries: shorten to an outline, or to one line of a list.


def shrink_to_previews(draft: PromptDraft) -> CompactionStep | None:
    """Reduce large library entries to their outline, oldest first."""
    large = (
        (name, _tokens_freed_by_preview(entry, draft))
        for name, entry in _shrinkable_library_entries(draft)
        if entry.form is ArtifactForm.FULL
        and len(entry.artifact.text) > draft.config.for_kind(entry.artifact.kind).preview_over
    )
    taken = select_first_that_free_enough(large, draft.excess_tokens)
    return CompactionStep(name=CompactionStepName.PREVIEW, removed=taken) if taken else None


def shrink_to_handles(draft: PromptDraft) -> CompactionStep | None:
    """Move entries outside the working set to the list of handles, oldest first."""
    stale = (
        one
        for one in _shrinkable_library_entries(draft)
        if not one[1].is_listed and not _is_in_working_set(*one, draft)
    )
    freed = ((name, entry.tokens - draft.tokenizer.count(render_list_line(entry.artifact))) for name, entry in stale)
    taken = select_first_that_free_enough(freed, draft.excess_tokens)
    return CompactionStep(name=CompactionStepName.HANDLE, removed=taken) if taken else None


def _shrinkable_library_entries(draft: PromptDraft) -> list[tuple[str, PlacedArtifact]]:
    config, library, span = draft.config, draft.state.library, draft.turn_range
    # As a last resort the earlier text of a current attachment may be shortened: it may leave no space for the new one.
    held = frozenset(draft.turn.drop) if draft.is_last_resort else draft.attached_or_dropped_ids
    # A priced layout plan already lists unused entries as handles, so shortening them frees nothing more.
    shown = draft.prompt.placed if draft.prompt.layout_plan.priced else {}
    left = {name for name, one in shown.items() if one.is_listed}
    shelved = [
        (name, entry) for name, entry in draft.state.system_library.items() if name not in held and name not in left
    ]
    if span is not ALL_TURNS:
        shelved = [
            one for one in shelved if one[0] not in library or span.contains_turn(library[one[0]].last_attached_turn)
        ]
    return [
        (name, one) for name, one in shelved if can_shrink(one.artifact) and config.for_kind(one.artifact.kind).shrink
    ]


def _is_in_working_set(name: str, entry: PlacedArtifact, draft: PromptDraft) -> bool:
    """Return whether an entry is in the working set of the turn to be sent."""
    if draft.is_last_resort or name in draft.turn.detach:
        return False
    after, turn_settings = draft.config.for_kind(entry.artifact.kind).handle_after, draft.turn.turn_settings
    turn_settings = turn_settings if after is None else replace(turn_settings, linger=after)
    return is_in_working_set(draft.state.library[name], turn_settings, turn_number=draft.state.turn_count)


# Tool results: reduce to the call that can fetch them again.


def _tokens_freed_by_preview(entry: PlacedArtifact, draft: PromptDraft) -> int:
    smaller = render_shorter_form(entry.artifact, ArtifactForm.PREVIEW)
    return entry.tokens - draft.tokenizer.count(smaller) if smaller is not None else 0


_PROTECTED_ROUNDS = 2
# Tokens of the lines that say which parts of the current turn were removed.
_NOTICE_TOKENS = 60


def stub_tool_results(draft: PromptDraft) -> CompactionStep | None:
    """Reduce tool results, oldest first.

    The results of the last turn and of the last two tool rounds of the current turn are kept, unless the turn could
    not be sent otherwise (``draft.is_last_resort`` and ``draft.is_turn_stuck``).
    """
    taken = select_first_that_free_enough(
        _iter_stub_candidates(draft),
        draft.excess_tokens + (_NOTICE_TOKENS if draft.is_turn_stuck else 0),
        drop_unneeded=draft.is_turn_stuck,
    )
    return CompactionStep(name=CompactionStepName.TOOL_RESULTS, removed=taken) if taken else None


def _iter_stub_candidates(draft: PromptDraft) -> Iterator[tuple[str, int]]:
    stay = set(draft.attached_or_dropped_ids)
    if draft.state.history.turns and not draft.is_last_resort:
        stay.update(placed_result.artifact.id for placed_result in draft.state.history.turns[-1].tool_results)
    for turn in (*draft.removable_turns, *_iter_pinned_turns(draft)):
        for placed_result in () if draft.turn_range.since_message else turn.tool_results:
            if placed_result.form is ArtifactForm.FULL and placed_result.artifact.id not in stay:
                yield (
                    placed_result.artifact.id,
                    placed_result.tokens
                    - stub_tool_result(placed_result, draft.tokenizer, names_recall=draft.names_recall).tokens,
                )
        for message in turn.rounds:
            if (
                message.segment.kind == TOOL_KIND
                and message.segment.form is ArtifactForm.FULL
                and message.id not in draft.prompt.pinned
            ):
                yield message.id, _tokens_freed_by_stub(message, draft)
    if draft.is_turn_stuck:
        yield from _iter_what_a_stuck_turn_can_lose(draft)
    else:
        yield from (
            (message.id, _tokens_freed_by_stub(message, draft))
            for message in _iter_earlier_results(draft.prompt.rounds)
        )


def _iter_pinned_turns(draft: PromptDraft) -> Iterator[HistoryTurn]:
    """Yield the turns with a pinned message as a last resort: the pin keeps the messages, not the tool results."""
    if draft.is_last_resort and draft.prompt.pinned:
        history = draft.state.history
        for turn in history.turns[history.hidden_turns :]:
            if not draft.prompt.pinned.isdisjoint([message.id for message in turn.messages]):
                yield turn


def _iter_what_a_stuck_turn_can_lose(draft: PromptDraft) -> Iterator[tuple[str, int]]:
    """Yield what the current turn can do without if it could not continue otherwise.

    The order is: its earlier tool rounds, then the results of the last two rounds, then the attachments of the
    question, largest first. The round before the last one is removed as a whole only once its results are already
    handles.
    """
    rounds = group_rounds(draft.prompt.rounds)
    for index, (calling, results) in enumerate(rounds[:-1]):
        weighs = sum(one.segment.tokens + draft.tokenizer.tokens_per_message for one in (calling, *results))
        if index < len(rounds) - _PROTECTED_ROUNDS or not any(map(_is_unstubbed_result, results)):
            yield calling.id, weighs
    for _, results in rounds[-_PROTECTED_ROUNDS:]:
        yield from (
            (message.id, _tokens_freed_by_stub(message, draft)) for message in results if _is_unstubbed_result(message)
        )
    brought = {one.id for one in draft.prompt.attached if may_be_sent_shorter(one)} if rounds else set[str]()
    shown = [
        one for one in draft.prompt.rendered_attachments[0] if one.id in brought and one.form is not ArtifactForm.HANDLE
    ]
    for segment in sorted(shown, key=lambda one: -one.tokens):
        yield stub_id(draft.prompt.question.id, segment.id), segment.tokens


def _iter_earlier_results(rounds: Sequence[HistoryMessage]) -> Iterator[HistoryMessage]:
    """Yield the results of all tool rounds except the last two, which the model is still working with."""
    for _, results in group_rounds(rounds)[:-_PROTECTED_ROUNDS]:
        yield from filter(_is_unstubbed_result, results)


def _is_unstubbed_result(message: HistoryMessage) -> bool:
    # A partly shown result can still be too long, so every form larger than a handle counts.
    return message.segment.form is not ArtifactForm.HANDLE


def _stub_tokens(message: HistoryMessage, draft: PromptDraft) -> int:
    return stub_result_message(message, draft.tokenizer, names_recall=draft.names_recall).segment.tokens


def _tokens_freed_by_stub(message: HistoryMessage, draft: PromptDraft) -> int:
    return message.segment.tokens - _stub_tokens(message, draft)


# Scores of turns by how little a conversation misses them; a higher score is removed sooner.

# The documented formula has the weights 2, 10 and 3. Here they are divided by 20: an age of twenty messages is 1.
_USER_SCORE = 0.1
_OTHER_SCORE = 0.5
_LONG_MESSAGE_SCORE = 0.15
_LONG_MESSAGE_TOKENS = 500
_MAX_LENGTH_SCORE = 0.6

# Equal sums of different weights can differ in their last bits. Rounding makes ties real ties.
_SCORE_DIGITS = 9

# The possible beginnings of a code block. Most texts match nothing here, which saves walking their lines.
CODE_BLOCK_START = re.compile(r"```|~~~|(?:\A|\n)(?: {4}|\t)")
_INDENTED_LINE = re.compile(r"(?: {4}|\t)[ \t]*\S")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")


class RemovableTurn(NamedTuple):
    """One turn that may be removed: the question, the tool results and the reply together."""

    id: str
    position: int
    question_tokens: int
    reply_tokens: int
    has_code: bool = False


def rank_by_expendability(candidates: Sequence[RemovableTurn], *, total_turns: int) -> tuple[str, ...]:
    """Return the ids of the turns, most expendable first; equal scores put the older turn first."""
    ranked = sorted(candidates, key=lambda turn: (-turn_expendability(turn, total_turns=total_turns), turn.position))
    return tuple(turn.id for turn in ranked)


def turn_expendability(turn: RemovableTurn, *, total_turns: int) -> float:
    """Return the mean score of the question and the reply, weighted by their share of the tokens.

    The length part of the score uses the tokens of the whole turn.
    """
    tokens = turn.question_tokens + turn.reply_tokens
    at, code = turn.position, turn.has_code
    asked = message_expendability("user", position=at, total=total_turns, tokens=tokens, code=code)
    answered = asked if code else asked + _OTHER_SCORE - _USER_SCORE
    share = turn.question_tokens / tokens if tokens else 0.5
    return round(share * asked + (1 - share) * answered, _SCORE_DIGITS)


def message_expendability(role: str, *, position: int, total: int, tokens: int, code: bool) -> float:
    """Return the score of a message, from its role, age, length and whether it contains code.

    A system message scores 0. Every other message scores more than 0.
    """
    if role == "system":
        return 0.0
    age = min(max(total - position, 1) / max(total, 1), 1.0)
    # Code is long by nature and equally useful from either author, so neither length nor role counts against it.
    written = 0.0 if code else _USER_SCORE if role == "user" else _OTHER_SCORE
    length = 0.0 if code else min(tokens // _LONG_MESSAGE_TOKENS * _LONG_MESSAGE_SCORE, _MAX_LENGTH_SCORE)
    return round(age + written + length, _SCORE_DIGITS)


def has_code(text: str) -> bool:
    """Return whether a Markdown text contains a fenced or indented code block.

    Inline text that only looks like code does not count.
    """
    if not CODE_BLOCK_START.search(text):
        return False
    may_begin, in_list = True, False
    for line, fenced in iter_lines_with_code_flag(text):
        if fenced:
            return True
        if _INDENTED_LINE.match(line):
            # An indented line inside a list continues its item; elsewhere it is code only after a blank line.
            if may_begin and not in_list:
                return True
        elif line.strip():
            in_list = bool(_LIST_ITEM.match(line))
        may_begin = not line.strip()
    return False


# Acknowledgements: user messages that no later turn needs.

# Only emoji that agree: a thumb down, a coloured circle or a flag may be the whole answer to a question.
_AGREEMENT_EMOJI = "👍👌🙏🙌👏🤝😀😁😃😄😅😊🙂😉🎉💯✅✔❤🔥✨"
_EMOJI_MODIFIERS = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff\ufe0f\u200d"
_TRAILING_CHARACTERS = f" \t\r\n.,…。\uff0c、{_AGREEMENT_EMOJI}{_EMOJI_MODIFIERS}"

# Question and exclamation marks include the full-width, Arabic, Greek, Armenian and Ethiopic forms, and the emoji.
_QUESTION_MARK = re.compile("[?\uff1f؟\u037e՞፧⁇⁈⁉‽⸮﹖❓❔]")
_EXCLAMATION_MARK = re.compile("[!\uff01¡‼⁈⁉❗❕]")

# A question mark at the end of a URL belongs to the sentence; one inside a URL does not.
_URL = re.compile(r"(?:://|\bwww\.)\S*[^\s?\uff1f؟.,;:!)\]}>\"'*_]")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_LIST_LINE_OR_BLANK = re.compile(r"[ \t]*(?:[-*+•|]|\(?(?:\d{1,3}|[A-Za-z])[.)])(?:[ \t]|$)|\||[ \t]*$")


def is_chitchat(text: str, *, previous_reply: str, words: Set[str]) -> bool:
    """Return whether the user's text is one of ``words`` and answers no question in ``previous_reply``.

    Questions, exclamations and texts with a digit never count as chitchat.
    """
    said = " ".join(text.rstrip(_TRAILING_CHARACTERS).casefold().split())
    if said not in words or _QUESTION_MARK.search(text) or _EXCLAMATION_MARK.search(text):
        return False
    return not any(character.isnumeric() for character in text) and not ends_with_question(previous_reply)


def ends_with_question(reply: str) -> bool:
    """Return whether a reply ends with a question.

    That is a question mark in its last paragraph. If the reply ends with a list, the paragraph before the list and the
    list itself count.
    """
    if not _QUESTION_MARK.search(reply):
        return False
    end = [_CODE_SPAN.sub("", _URL.sub("", line)) for line in _last_paragraph(reply)]
    return any(_QUESTION_MARK.search(line) for line in end)


def _last_paragraph(reply: str) -> Iterator[str]:
    """Yield the lines of the last paragraph without code; a final list includes the paragraph before it."""
    lines = ["" if is_code else line for line, is_code in iter_lines_with_code_flag(reply)]
    end = len(lines)
    while end and _LIST_LINE_OR_BLANK.match(lines[end - 1]):
        end -= 1
    yield from lines[end:]
    yield from takewhile(str.strip, reversed(lines[:end]))


# Messages: acknowledgements, replies, whole turns.


def drop_chitchat(draft: PromptDraft) -> CompactionStep | None:
    """Remove all acknowledgements at once, since none of them carries information."""
    words = draft.config.extra_acknowledgements.union(draft.config.words.acknowledgements)
    removed: list[str] = []
    after = ""
    history = draft.state.history
    free = {turn.question.segment.id for turn in draft.removable_turns}
    # A pinned turn stays, but its reply is still the text that the next message acknowledges.
    shown = history.turns[history.hidden_turns : -1] if draft.prompt.pinned else draft.removable_turns
    for index, turn in enumerate(shown):
        asked = turn.question.segment
        bare = asked.id in free and not (turn.has_attachments or turn.tool_results or turn.rounds or turn.call_lines)
        # Most messages contain a question mark; this cheap test spares the full check.
        if index and bare and "?" not in asked.text and is_chitchat(asked.text, previous_reply=after, words=words):
            removed.append(asked.id)
        last = turn.joined_replies[-1] if turn.joined_replies else turn.reply
        after = last.segment.text if last.full_texts is None else last.full_texts[last.segment.id]
    return CompactionStep(name=CompactionStepName.CHITCHAT, removed=tuple(removed)) if removed else None


def outline_replies(draft: PromptDraft) -> CompactionStep | None:
    """Reduce replies to their outlines: those that a plugin chose, then the oldest. Short replies stay like messages."""
    count = draft.tokenizer.count
    replies = [
        (reply, reply.turn or one.turn_index + 1, one.question)
        for one in draft.removable_turns
        for reply in (one.reply, *one.joined_replies)
    ]
    # A last reply that was shortened to its head and tail is outlined once it is no longer the last.
    large = [
        (reply, turn, question)
        for reply, turn, question in replies
        if reply.segment.form is not ArtifactForm.HANDLE and reply.segment.tokens > SHORT_REPLY_TOKENS
    ]
    if draft.config.choose_replies is not None:
        shown = [
            ReplyInPrompt(
                id=reply.id, turn=turn, question=question.text, text=reply.original, tokens=reply.segment.tokens
            )
            for reply, turn, question in large
        ]
        chosen = {name: place for place, name in enumerate(draft.config.choose_replies(shown))}
        # The sort is stable, so the others follow in their usual order.
        large.sort(key=lambda one: chosen.get(one[0].id, len(chosen)))
    outlined = (
        (reply.segment, outline_reply(reply.original, turn, names_recall=draft.names_recall))
        for reply, turn, _ in large
        if reply.segment.form is ArtifactForm.FULL or not reply.text.startswith(OUTLINE_OPENING)
    )
    freed = ((segment.id, segment.tokens - count(text)) for segment, text in outlined if text is not None)
    # A very long reply can free everything alone; smaller ones chosen before it are then left as they are.
    taken = select_first_that_free_enough(freed, draft.excess_tokens, drop_unneeded=True)
    if not taken:
        return None
    originals = {reply.id: reply.original for reply, _, _ in large}
    return CompactionStep(
        name=CompactionStepName.REPLIES, removed=taken, outlines=tuple([reply_gist(originals[name]) for name in taken])
    )


def move_to_digest(draft: PromptDraft) -> CompactionStep | None:
    """Move the oldest turns into the digest: what the user said and short replies stay, other replies leave.

    Turns leave in order, so that the digest always comes before all turns that are still sent as messages.
    """
    if not _may_use_digest(draft):
        return None
    pinned = draft.prompt.pinned
    kept_turns = draft.leading_movable_turns
    freed = accumulate([_tokens_freed_by_digest(turn, draft) for turn in kept_turns])
    enough = next((at for at, total in enumerate(freed, start=1) if total >= draft.excess_tokens), len(kept_turns))
    moved = kept_turns[:enough]
    removed = [
        name
        for turn in moved
        for name in (
            turn.question.id,
            *(
                reply.id
                for reply in turn.replies
                if _leaves_for_digest(reply) and pinned.isdisjoint([one.id for one in turn.messages])
            ),
        )
    ]
    return CompactionStep(name=CompactionStepName.DIGEST, removed=tuple(removed)) if removed else None


def _may_use_digest(draft: PromptDraft) -> bool:
    """Return whether messages may move into the digest: not if old turns are hidden or earlier bytes must stay."""
    full = draft.turn.turn_settings.history is HistoryMode.FULL
    return full and not draft.state.history.hides_turns and not draft.turn_range.since_message


def _leaves_for_digest(reply: HistoryMessage) -> bool:
    return reply.segment.form is not ArtifactForm.FULL or reply.segment.tokens > SHORT_REPLY_TOKENS


def _tokens_freed_by_digest(turn: HistoryTurn, draft: PromptDraft) -> int:
    answer = turn.reply_message or turn.reply.message
    sent = turn.question_message.tokens + answer.tokens + 2 * draft.tokenizer.tokens_per_message
    sent += sum(message.segment.tokens + draft.tokenizer.tokens_per_message for message in turn.rounds)
    kept = [turn.question, *(reply for reply in turn.replies if not _leaves_for_digest(reply))]
    return sent - sum(message.segment.tokens + _DIGEST_LINE_TOKENS for message in kept if message.text)


def shorten_last_reply(draft: PromptDraft) -> CompactionStep | None:
    """Shorten a long last reply to its head and tail, before any words of the user leave."""
    turns = draft.state.history.turns
    if not turns or draft.turn_range.last is not None:
        return None
    turn = turns[-1]
    if not draft.prompt.pinned.isdisjoint([message.id for message in turn.messages]):
        return None
    reply = max(turn.replies, key=lambda one: one.segment.tokens)
    least = int(LAST_REPLY_SHARE * draft.window)
    if reply.segment.tokens <= least:
        return None
    max_tokens = max(reply.segment.tokens - draft.excess_tokens, least)
    number = reply.turn or turn.turn_index + 1
    text = shorten_to_ends(
        reply.original, number, max_tokens=max_tokens, count=draft.tokenizer.count, names_recall=draft.names_recall
    )
    if text is None:
        return None
    return CompactionStep(name=CompactionStepName.LAST_REPLY, removed=(reply.id,), outlines=(text,))


def drop_expendable(draft: PromptDraft) -> CompactionStep | None:
    """Remove messages of the digest in the order of their information; without a digest, replies and whole turns.

    What an earlier compaction left in the digest may also leave after the history mode or the profile was changed.
    """
    has_digest = bool(draft.state.history.digest) and not draft.turn_range.since_message
    if CompactionStepName.DIGEST in draft.config.steps:
        return (_drop_digest_messages(draft) if has_digest else None) or _drop_turns(draft)
    return _drop_turns(draft) or (_drop_digest_messages(draft) if has_digest and draft.is_last_resort else None)


def _drop_digest_messages(draft: PromptDraft) -> CompactionStep | None:
    """Remove messages of the digest; of a message with directives, these sentences stay.

    Once only such sentences are left, and they are many, the oldest of them leave first, so that whatever takes one
    back stays longer.
    """
    every = list(iter_digest_messages(draft.state.history.digest))
    pinned = draft.prompt.pinned
    kept_turns = {message.turn_index for message in every if message.id in pinned}
    free = [
        message
        for message in every
        if message.turn_index not in kept_turns
        and draft.turn_range.contains_turn(message.turn_index)
        and not (draft.config.protects_current_stage and message.id in (draft.current_stage_ids or ()))
    ]
    if not free:
        return None
    whole = {message.id: message for message in free if not message.is_excerpt}
    excerpts = draft.directives.excerpts(whole.values()) if whole else {}
    excess = draft.excess_tokens
    left: dict[str, str] = {}
    for message in rank_messages_for_removal(every, draft.config.words) if whole else ():
        if excess <= 0:
            break
        if message.id not in whole:
            continue
        text = excerpts.get(message.id, "")
        freed = message.tokens - (draft.tokenizer.count(render_digest_line(message.number, text)) if text else 0)
        if text != message.text.strip() and freed > 0:
            left[message.id] = text
            excess -= freed
    if not left:
        excess = min(excess, _removable_excerpt_tokens(free, draft))
        for message in free:
            if excess <= 0:
                break
            left[message.id] = ""
            excess -= message.tokens
    if not left:
        return None
    return CompactionStep(name=CompactionStepName.EXPENDABLE, removed=tuple(left), outlines=tuple(left.values()))


def _removable_excerpt_tokens(messages: Sequence[DigestMessage], draft: PromptDraft) -> int:
    """Return how many tokens of directives may leave: as a last resort all, else those over their share of the window."""
    tokens = sum([message.tokens for message in messages])
    return tokens if draft.is_last_resort else tokens - int(DIRECTIVES_SHARE * draft.window)


def _drop_turns(draft: PromptDraft) -> CompactionStep | None:
    """Reduce the most expendable replies to one line each; if none is left, remove whole turns.

    With ``protects_current_stage``, turns of the current stage are not considered.
    """
    free = (
        [one for one in draft.removable_turns if not draft.is_in_current_stage(one)]
        if draft.config.protects_current_stage
        else draft.removable_turns
    )
    if not free:
        return None
    turns = {turn.question.segment.id: turn for turn in free}
    candidates = _make_removable_turns(free)
    ranked = rank_by_expendability(candidates, total_turns=len(free) + 1)
    replies = select_first_that_free_enough(
        _tokens_freed_by_replies([turns[name] for name in ranked], draft), draft.excess_tokens
    )
    if replies:
        return CompactionStep(name=CompactionStepName.EXPENDABLE, removed=replies)
    if draft.turn_range.since_message:
        # The notice about removed messages would be placed before all remaining ones and change their prefix.
        return None
    overhead = 2 * draft.tokenizer.tokens_per_message
    results = [_count_tool_tokens(turn) if turn.tool_results or turn.rounds or turn.call_lines else 0 for turn in free]
    whole = zip(candidates, results, strict=True)
    weighed = {turn.id: turn.question_tokens + turn.reply_tokens + tools for turn, tools in whole}
    weights = ((name, weighed[name] + overhead) for name in ranked)
    # The notice about removed messages costs tokens too, unless the prompt already has it.
    text = render_notice(len(turns), brief=True, names_recall=draft.names_recall)
    notice = 0 if draft.prompt.preamble.notice else draft.tokenizer.count(text)
    taken = set(select_first_that_free_enough(weights, draft.excess_tokens + notice))
    return remove_turns_keeping_directives(
        draft, CompactionStepName.EXPENDABLE, [turn for name, turn in turns.items() if name in taken]
    )


def remove_turns_keeping_directives(
    draft: PromptDraft,
    name: CompactionStepName,
    turns: Sequence[HistoryTurn],
    *,
    text: str | None = None,
    content: str = "",
) -> CompactionStep | None:
    """Return the step that removes whole turns, and keeps the directives of their questions in the digest.

    A history mode that hides old turns hides their directives, too. Older turns show these, and would show one although
    the message that takes it back is hidden, so nothing is kept for them.
    """
    removed = [message.id for turn in turns for message in (turn.question, *turn.replies)]
    if not removed:
        return None
    settings = draft.turn.turn_settings
    keeps = settings.history is HistoryMode.FULL or not settings.hidden_excerpts
    kept = draft.directives.excerpts_of_turns(turns) if keeps else {}
    outlines = tuple([kept.get(message_id, "") for message_id in removed]) if kept else ()
    return CompactionStep(name=name, removed=tuple(removed), outlines=outlines, text=text, content=content)


def _tokens_freed_by_replies(ranked: Sequence[HistoryTurn], draft: PromptDraft) -> Iterator[tuple[str, int]]:
    """Yield how many tokens each reply of these turns would free as one line."""
    count = draft.tokenizer.count
    replies = (
        (reply, reply.turn or one.turn_index + 1) for one in ranked for reply in (one.reply, *one.joined_replies)
    )
    larger = ((reply.segment, turn) for reply, turn in replies if reply.segment.form is not ArtifactForm.HANDLE)
    return (
        (segment.id, segment.tokens - count(stub_reply(turn, names_recall=draft.names_recall)))
        for segment, turn in larger
    )


def _make_removable_turns(turns: Sequence[HistoryTurn]) -> list[RemovableTurn]:
    # One plan can have thousands of turns, so ``has_code`` is called only for texts that may contain code.
    said = [(one.question, one.reply, *one.joined_replies) for one in turns]
    texts = [
        [one.segment.text if one.full_texts is None else one.full_texts[one.segment.id] for one in every]
        for every in said
    ]
    coded = [[text for text in every if CODE_BLOCK_START.search(text)] for every in texts]
    return [
        RemovableTurn(
            id=turn.question.segment.id,
            position=index,
            question_tokens=turn.question.segment.tokens,
            reply_tokens=sum([one.segment.tokens for one in every[1:]]),
            has_code=any(map(has_code, coded[index])),
        )
        for index, (turn, every) in enumerate(zip(turns, said, strict=True))
    ]


def _count_tool_tokens(turn: HistoryTurn) -> int:
    """Count the tokens of the tool calls and results in a turn."""
    rounds = sum(message.segment.tokens for message in turn.rounds)
    return (
        rounds
        + sum(placed_result.tokens for placed_result in turn.tool_results)
        + sum(line.tokens for line in turn.call_lines)
    )


STEP_FUNCTIONS: Mapping[CompactionStepName, Callable[[PromptDraft], CompactionStep | None]] = {
    CompactionStepName.CHITCHAT: drop_chitchat,
    CompactionStepName.HANDLE: shrink_to_handles,
    CompactionStepName.PREVIEW: shrink_to_previews,
    CompactionStepName.TOOL_RESULTS: stub_tool_results,
    CompactionStepName.OLDEST_STAGES: drop_oldest_stages,
    CompactionStepName.REPLIES: outline_replies,
    CompactionStepName.RECENT_STAGES: shrink_recent_stages,
    CompactionStepName.DIGEST: move_to_digest,
    CompactionStepName.LAST_REPLY: shorten_last_reply,
    CompactionStepName.EXPENDABLE: drop_expendable,
}
