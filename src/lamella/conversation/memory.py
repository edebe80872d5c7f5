"""User memory: its part of the prompt, when a conversation loads it again, and one-line summaries for it."""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from lamella.conversation.turn import TurnRequest
from lamella.core.budget import Tokenizer
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.compaction.rules import SummaryConfig
from lamella.core.compaction.summaries import (
    SummaryRequest,
    SummaryResult,
    original_message_texts,
    standalone_summary_messages,
    summary_key,
)
from lamella.core.compaction.summary_checks import find_summary_problem
from lamella.core.prompt.layers.history import HistoryTurn
from lamella.core.prompt.layers.model import MEMORY_HEADING, describe_changed_fact, normalize_fact_line, render_memory
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import truncate_words
from lamella.core.values import replace
from lamella.errors import InvalidOperationError, LamellaError
from lamella.ports import FactKind, UserMemory

# Token limit of the memory in a prompt; it also gets at most one part in ``_BUDGET_DIVISOR`` of the token limit.
MAX_MEMORY_TOKENS = 1_500
_BUDGET_DIVISOR = 20
_SYSTEM_PART_NAME = "memory"
# Input and output tokens for the one-line summary of a conversation.
_MAX_SUMMARY_INPUT_TOKENS, _MAX_SUMMARY_TOKENS = 4_000, 120
_ONE_LINE_CONFIG = SummaryConfig(form="one sentence")
_MAX_QUESTION_CHARS = 160
# A title is made from this many turns.
_TITLE_TURNS, _MAX_TITLE_TOKENS, _MAX_TITLE_CHARS, _TITLE_KEY = 3, 24, 60, "title"
_TITLE_CONFIG = SummaryConfig(form="one title of at most six words")
_TITLE_FRAME = re.compile(r"""^[\s#*_"'`“”«»]+|[\s*_"'`“”«».]+$""")

# Renders the memory part of the system prompt from the files, within a token limit, for a conversation key.
RenderMemory = Callable[[Callable[[str], int], int, str], str]


def make_memory_renderer(*memories: UserMemory) -> RenderMemory:
    """Return a function that renders the facts of these memories, those of the first memory first."""

    def render(count: Callable[[str], int], limit: int, chat: str) -> str:
        # The summary of a conversation is left out of its own prompt, which has the conversation itself.
        facts = [fact for memory in memories for fact in memory.read() if fact.conversation_key != chat]
        saved, noted, recent = ([fact.text for fact in facts if fact.kind is kind] for kind in FactKind)
        return render_memory(saved, noted, recent, count=count, max_tokens=limit)

    return render


def no_memory_text(_count: Callable[[str], int], _limit: int, _chat: str) -> str:
    """Return the memory part of a prompt if memory is switched off: ""."""
    return ""


class MemoryLoadTiming:
    """Decides in which turns a conversation loads a changed memory.

    It does so once after it was opened, was compacted or was asked to. Otherwise it waits for a turn that changes the
    cached prefix anyway.
    """

    def __init__(self, render_memory: RenderMemory, *, opens_per_question: bool = False) -> None:
        self._render = render_memory
        # If every question opens the conversation again, only the first one counts as opening (None).
        self.is_due: bool | None = None if opens_per_question else True

    def with_current_memory(
        self, turn_request: TurnRequest, state: PromptState, settings: PromptSettings
    ) -> TurnRequest:
        """Return the turn request with the current memory if it is due.

        If it is not due, the memory is used only if this turn changes the cached prefix anyway. A memory part that the
        program set itself is left alone.
        """
        current = state.system.memory
        if _SYSTEM_PART_NAME in turn_request.system or (current and not current.startswith(MEMORY_HEADING)):
            return turn_request
        due = (state.last_prompt is None if self.is_due is None else self.is_due) or turn_request.fold
        try:
            text = self._render_memory(state, settings)
        except LamellaError as error:
            warning = f"The memory stays as it is in this conversation: {error.message}"
            return replace(turn_request, warnings=(*turn_request.warnings, warning)) if due else turn_request
        if due:
            return replace(turn_request, system={**turn_request.system, _SYSTEM_PART_NAME: text})
        return turn_request if text == current else replace(turn_request, deferred_system={_SYSTEM_PART_NAME: text})

    def find_first_change(self, state: PromptState, settings: PromptSettings) -> str | None:
        """Return the first line that differs between prompt and files, with what happened to it, or None."""
        return describe_changed_fact(state.system.memory, self._render_memory(state, settings))

    def _render_memory(self, state: PromptState, settings: PromptSettings) -> str:
        limit = min(MAX_MEMORY_TOKENS, settings.budget.limit // _BUDGET_DIVISOR)
        return self._render(settings.tokenizer.count, limit, state.conversation)


class OneLineSummary(NamedTuple):
    """A one-line summary: the text, its author if a model wrote it, and why the model's text was not used."""

    text: str
    author: str = ""
    rejection_reason: str = ""


def one_line_summary_request(turns: Sequence[HistoryTurn], *, tokenizer: Tokenizer) -> SummaryRequest:
    """Return the request for a one-line summary, made from as many of the last turns as its limit allows."""
    taken = _last_turns(turns, tokenizer)
    asked = standalone_summary_messages(
        taken, tokenizer=tokenizer, config=_ONE_LINE_CONFIG, max_tokens=_MAX_SUMMARY_TOKENS
    )
    return SummaryRequest(key=summary_key(taken, [_SYSTEM_PART_NAME]), messages=asked, max_tokens=_MAX_SUMMARY_TOKENS)


def title_request(turns: Sequence[HistoryTurn], *, tokenizer: Tokenizer) -> SummaryRequest:
    """Return the request for a title, made from the first turns, which say what a conversation is about."""
    taken = turns[:_TITLE_TURNS]
    asked = standalone_summary_messages(taken, tokenizer=tokenizer, config=_TITLE_CONFIG, max_tokens=_MAX_TITLE_TOKENS)
    return SummaryRequest(
        key=summary_key(taken, [_TITLE_KEY]), messages=asked, max_tokens=_MAX_TITLE_TOKENS, purpose=_TITLE_KEY
    )


def clean_title(text: str) -> str:
    """Return the title in an answer of a model: its first line, without markup and quotation marks."""
    line = next((one for one in map(str.strip, text.splitlines()) if one), "")
    return truncate_words(_TITLE_FRAME.sub("", line.removeprefix("Title:")), _MAX_TITLE_CHARS)


def build_one_line_summary(
    title: str,
    turns: Sequence[HistoryTurn],
    *,
    day: datetime | None,
    tokenizer: Tokenizer,
    model_summary: SummaryResult | None,
) -> OneLineSummary:
    """Return a one-line summary: the model's text if it passes the checks, otherwise the first question."""
    if not turns:
        raise InvalidOperationError("Nothing was said yet.", hint="Ask something first.")
    when = f"{day:%Y-%m-%d}, " if day else ""
    why = (
        ""
        if model_summary is None
        else model_summary.failure
        or _find_summary_problem(model_summary.text, _last_turns(turns, tokenizer), tokenizer)
        or ""
    )
    if model_summary is not None and not why:
        signed = f" (summarised by {model_summary.model})" if model_summary.model else ""
        return OneLineSummary(
            normalize_fact_line(f"{when}{title}{signed}: {model_summary.text}"), author=model_summary.model or "a model"
        )
    first = " ".join(turns[0].question.text.split())
    cut = first if len(first) <= _MAX_QUESTION_CHARS else f"{first[:_MAX_QUESTION_CHARS].rstrip()} …"
    begins = first.startswith(title.rstrip(" …."))
    return OneLineSummary(
        normalize_fact_line(f"{when}{cut}" if begins else f"{when}{title}: {cut}"), rejection_reason=why
    )


def _last_turns(turns: Sequence[HistoryTurn], tokenizer: Tokenizer) -> list[HistoryTurn]:
    """Return the last turns within the token limit, at least one."""
    taken: list[HistoryTurn] = []
    room = _MAX_SUMMARY_INPUT_TOKENS
    for one in reversed(turns):
        room -= sum(tokenizer.count(message.text) for message in one.messages)
        if room < 0 and taken:
            break
        taken.insert(0, one)
    return taken


def _find_summary_problem(text: str, turns: Sequence[HistoryTurn], tokenizer: Tokenizer) -> str | None:
    """Return why a summary of these turns is rejected, or None."""
    texts = original_message_texts(turns)
    return find_summary_problem(
        text,
        replaced_texts=texts,
        user_texts=[one.question.text for one in turns],
        tokens=tokenizer.count(text),
        replaced_tokens=sum(tokenizer.count(one) for one in texts),
        max_tokens=2 * _MAX_SUMMARY_TOKENS,
    )
