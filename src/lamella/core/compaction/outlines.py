"""Shorten attachments of the current turn that do not fit.

``outline_attachments`` reduces them to outlines, or to one line that names them, without a model.
``summarize_attachments`` replaces the longest by summaries, and returns the summaries that are still needed. Pinned
artifacts, tool results, images and text that cannot be read again stay as they are. Outlines and summaries keep the id
of their artifact.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import ceil

from lamella.core.artifacts.blocks import render_block, render_summary, text_for_model
from lamella.core.artifacts.model import NAMED_ONLY, Artifact, ArtifactKind
from lamella.core.budget import TokenBudget, Tokenizer, exceeds_share
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.compaction.summaries import Summaries, SummaryRequest, prepend_summary_author
from lamella.core.compaction.summary_checks import find_summary_problem
from lamella.core.log.turn import ArtifactForm, Turn
from lamella.core.messages import Message, Role
from lamella.core.prompt.advance import get_pending_prompt
from lamella.core.prompt.attachments import warn_about_attachments_only_named
from lamella.core.prompt.envelope import count_prompt_tokens, make_envelope
from lamella.core.prompt.layers.library import MAX_HANDLE_LIST_TOKENS, can_shrink
from lamella.core.prompt.layers.model import LayerId, TokenCounter
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.text.content import hash_text
from lamella.core.text.exact_terms import render_exact_strings
from lamella.core.text.outline import SECTION_CHARS, build_outline
from lamella.core.values import replace

# Characters shown of each section, tried from the longest down. 0 means headings only.
_SECTION_CHAR_LIMITS = (SECTION_CHARS, 250, 120, 60, 0)
# Spare tokens for a count with more digits and for the line break between outline and notice.
_SPARE_TOKENS = 8
# Minimum tokens of an outline. A shorter one says no more than the name of the artifact.
_MIN_OUTLINE_TOKENS = 30
# Maximum number of shortened attachments that are listed one by one in the warnings.
_MAX_LISTED_WARNINGS = 10


def fixed_parts_exceed_hard_threshold(pending_state: PromptState, budget: TokenBudget) -> bool:
    """Return whether the parts that compaction cannot remove are over the hard threshold on their own."""
    return exceeds_share(_count_unremovable_tokens(get_pending_prompt(pending_state), budget), budget.hard, budget)


def outline_attachments(
    turn: Turn, pending_state: PromptState, budget: TokenBudget, *, compacted_state: PromptState | None = None
) -> Turn:
    """Return the turn with large attachments as outlines that share the free tokens, or as one line each.

    An attachment becomes one line if its share is too small for an outline. ``compacted_state`` is the state after
    everything earlier was compacted; the prompt of that state must fit too.
    """
    prompt = get_pending_prompt(pending_state)
    weights = _count_tokens_of_large_attachments(prompt)
    room = budget.current_turn_limit - (_count_unremovable_tokens(prompt, budget) - sum(weights.values()))
    if compacted_state is not None:
        left = get_pending_prompt(compacted_state)
        room = min(
            room,
            int(budget.hard * budget.limit) - (left.total - sum(_count_tokens_of_large_attachments(left).values())),
        )
    brought: dict[str, Artifact] = {one.id: one for one in prompt.attached}
    floors = {name: _count_outline_frame_tokens(brought[name], prompt.tokenizer.count) for name in weights}
    caps, named = _allocate_tokens_or_one_line(weights, floors, max_tokens=room)
    texts = {
        name: _build_outline_within(brought[name], cap - floors[name], prompt.tokenizer.count)
        for name, cap in caps.items()
    }
    told = _limit_number_of_warnings(
        [f"{name} is sent as its outline: its {weights[name]:,} tokens do not fit." for name in texts]
    )
    return _replace_attachment_texts(
        turn, {**texts, **dict.fromkeys(named, NAMED_ONLY)}, (*told, *warn_about_attachments_only_named(named))
    )


def stub_attachments(turn: Turn, pending_state: PromptState, *, only_ids: Collection[str] | None = None) -> Turn:
    """Return the turn with one line per attachment that may be shortened, or for those in ``only_ids``."""
    small = [one.id for one in get_pending_prompt(pending_state).attached if may_be_sent_shorter(one)]
    named = [name for name in small if only_ids is None or name in only_ids]
    return _replace_attachment_texts(turn, dict.fromkeys(named, NAMED_ONLY), warn_about_attachments_only_named(named))


def _replace_attachment_texts(turn: Turn, texts: Mapping[str, str], new_warnings: Sequence[str]) -> Turn:
    """Return the turn with these texts instead of its attachments, and with more warnings."""
    if not texts:
        return turn

    def lessen(every: Sequence[Artifact]) -> tuple[Artifact, ...]:
        less = [replace(one, condensed=texts[one.id], is_outlined=False) if one.id in texts else one for one in every]
        return tuple(less)

    return replace(
        turn,
        attached=lessen(turn.attached),
        tool_results=lessen(turn.tool_results),
        warnings=(*turn.warnings, *new_warnings),
    )


def _limit_number_of_warnings(sentences: Sequence[str]) -> tuple[str, ...]:
    more = len(sentences) - _MAX_LISTED_WARNINGS
    return (*sentences[:_MAX_LISTED_WARNINGS], *((f"So are {more:,} more.",) if more > 0 else ()))


def _count_unremovable_tokens(prompt: Prompt, budget: TokenBudget) -> int:
    """Count the tokens of a request that no compaction of earlier messages can remove."""
    by_layer = count_prompt_tokens(prompt, budget).by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept + sum(segment.tokens for segment in prompt.moved_attachments)


def may_be_sent_shorter(artifact: Artifact) -> bool:
    """Return whether an attachment of the current turn may be sent in a shorter form."""
    return can_shrink(artifact) and artifact.kind is not ArtifactKind.IMAGE


def _count_tokens_of_large_attachments(prompt: Prompt) -> Mapping[str, int]:
    """Return the attachments of this turn that may be shortened, with their token counts."""
    shrinks = {one.id for one in prompt.attached if may_be_sent_shorter(one)}
    return {
        segment.id: segment.tokens
        for segment in (*prompt.rendered_attachments[0], *prompt.moved_attachments)
        if segment.id in shrinks and segment.form is not ArtifactForm.REFERENCE
    }


def _allocate_tokens_or_one_line(
    token_counts: Mapping[str, int], min_tokens: Mapping[str, int], *, max_tokens: int
) -> tuple[Mapping[str, int], Sequence[str]]:
    """Return a token limit for each attachment that must be shortened, and the ids that only get one line.

    Short attachments are preferred when there is not enough space for all of them.
    """
    names = sorted(token_counts, key=token_counts.__getitem__)

    def share(shown: int) -> Mapping[str, int]:
        left = max_tokens if shown == len(names) else max_tokens - MAX_HANDLE_LIST_TOKENS
        return _allocate_tokens({name: token_counts[name] for name in names[:shown]}, max_tokens=left)

    def is_too_many(shown: int) -> bool:
        return any(cap < min_tokens[name] + _MIN_OUTLINE_TOKENS for name, cap in share(shown).items())

    # The more attachments are shown, the fewer tokens each has, so a binary search finds the highest number.
    shown = len(names) if not is_too_many(len(names)) else bisect_left(range(len(names)), x=True, key=is_too_many) - 1
    left = {*names[max(shown, 0) :]}
    return share(max(shown, 0)), [name for name in token_counts if name in left]


def _allocate_tokens(token_counts: Mapping[str, int], *, max_tokens: int) -> dict[str, int]:
    """Return a token limit for each attachment that is too long to be kept in full.

    Short attachments stay as they are. The others share the remaining tokens equally.
    """
    left, caps = dict(token_counts), dict[str, int]()
    while left:
        share = max(max_tokens, 0) // len(left)
        short = {name for name, tokens in left.items() if tokens <= share}
        if not short:
            caps = dict.fromkeys(left, share)
            break
        max_tokens -= sum(left.pop(name) for name in short)
    return caps


def _count_outline_frame_tokens(artifact: Artifact, count: TokenCounter) -> int:
    """Count the tokens of an artifact's outline block without any outline text."""
    return count(render_summary(artifact, _format_remaining_chars(len(text_for_model(artifact))))) + _SPARE_TOKENS


def _format_remaining_chars(chars: int) -> str:
    return f"[Made without a model: the beginning of each part. {chars:,} characters are left out.]"


def _build_outline_within(artifact: Artifact, max_tokens: int, count: TokenCounter) -> str:
    """Return the outline of an artifact within ``max_tokens`` tokens, and a line saying how much is missing."""
    text = text_for_model(artifact)
    # A text without headings has an empty outline at 0 characters per section.
    outlines = [outline for chars in _SECTION_CHAR_LIMITS if (outline := build_outline(text, section_chars=chars))]
    outline = next((one for one in outlines if count(one) <= max_tokens), outlines[-1] if outlines else "")
    while outline and count(outline) > max_tokens:
        # Dense text has more tokens per character, so a proportional cut is an estimate and is repeated until it fits.
        outline = outline[: min(len(outline) * max_tokens // count(outline), len(outline) - 1)]
    told = _format_remaining_chars(len(text) - len(outline))
    return f"{outline}\n{told}" if outline else told


# Summaries instead of the longest attachments.

_SUMMARY_TASK = (
    "Summarise this part of a document that was attached to a question. Keep what it claims, its names, numbers and "
    "headings; invent nothing; write it in {language}; answer with the summary only.\n\n"
)
_DOCUMENT_LANGUAGE = "the language of the document"


def summarize_attachments(
    state: PromptState,
    turn: Turn,
    pending_state: PromptState,
    *,
    config: CompactionConfig,
    budget: TokenBudget,
    summaries: Summaries | None,
) -> tuple[Turn, tuple[SummaryRequest, ...]]:
    """Return the turn with its long attachments summarised, and the summaries that are still needed.

    The same turn object is returned if the turn is short enough, if no summaries are available (``summaries`` is
    None), if nothing in it may be summarised, or if summaries must be fetched first.
    """
    prompt = get_pending_prompt(pending_state)
    tokenizer = prompt.tokenizer
    if summaries is None or not _exceeds_turn_share(prompt, budget):
        return turn, ()
    long = _list_long_attachments(prompt, config)
    same = dict(_iter_reusable_summaries(state, long))
    fresh = {name: one for name, one in long.items() if name not in same}
    needs = tuple(
        request
        for one in fresh.values()
        for request in _iter_summary_requests(one, config, tokenizer, summaries=summaries)
    )
    if needs:
        return turn, needs
    texts, warnings = dict(same), list[str]()
    for name, artifact in fresh.items():
        text, why = _build_summary(artifact, config, tokenizer, summaries=summaries)
        texts.update({name: text} if text else {})
        warnings.append(why)
    if not texts:
        return turn, ()
    attached = tuple(replace(a, condensed=texts[a.id]) if a.id in texts else a for a in turn.attached)
    return replace(turn, attached=attached, warnings=(*turn.warnings, *warnings)), ()


def _iter_reusable_summaries(state: PromptState, attachments: Mapping[str, Artifact]) -> Iterator[tuple[str, str]]:
    """Yield summaries that an earlier turn made of the same texts, so that they are not requested again."""
    for name, artifact in attachments.items():
        entry = state.library.get(name)
        known = None if entry is None else entry.artifact
        if known is not None and known.condensed is not None and known.hash == artifact.hash:
            yield name, known.condensed


def _exceeds_turn_share(prompt: Prompt, budget: TokenBudget) -> bool:
    """Return whether the parts that compaction cannot remove exceed the turn's own share of the budget.

    If they do, removing earlier messages would not free enough.
    """
    by_layer = make_envelope(prompt, budget).tokens.by_layer
    kept = sum(by_layer[layer] for layer in (LayerId.L1, LayerId.L3, LayerId.L5)) + by_layer["tools"]
    return kept + sum(segment.tokens for segment in prompt.moved_attachments) > budget.current_turn_limit


def _list_long_attachments(prompt: Prompt, config: CompactionConfig) -> Mapping[str, Artifact]:
    shown = {
        segment.id
        for segment in (*prompt.segments(LayerId.L3), *prompt.moved_attachments)
        if segment.form in (ArtifactForm.FULL, ArtifactForm.UPDATE) and segment.tokens > config.summary.item
    }
    return {
        artifact.id: artifact
        for artifact in prompt.attached
        if artifact.id in shown
        and can_shrink(artifact)
        and artifact.kind not in (ArtifactKind.TOOL, ArtifactKind.IMAGE)
    }


def _iter_summary_requests(
    artifact: Artifact, config: CompactionConfig, tokenizer: Tokenizer, *, summaries: Summaries
) -> Iterator[SummaryRequest]:
    for part in _split_text(artifact, config, tokenizer):
        key = _summary_key(part, config)
        if key not in summaries:
            text = _summary_instruction(config) + render_block(replace(artifact, text=part))
            message = Message(role=Role.USER, pieces=(text,), tokens=tokenizer.count(text))
            yield SummaryRequest(key=key, messages=(message,), max_tokens=config.summary.max_output_tokens)


def _build_summary(
    artifact: Artifact, config: CompactionConfig, tokenizer: Tokenizer, *, summaries: Summaries
) -> tuple[str, str]:
    """Return the summary of an artifact and a warning for the user.

    The summary is empty if the summary of one of its parts was rejected or is missing.
    """
    count, caps = tokenizer.count, config.summary
    answers: list[str] = []
    for part in _split_text(artifact, config, tokenizer):
        answer = summaries[_summary_key(part, config)]
        why = answer.failure or find_summary_problem(
            answer.text,
            replaced_texts=[part],
            user_texts=[],
            tokens=count(answer.text),
            replaced_tokens=count(part),
            max_tokens=caps.max_output_tokens,
            translated=bool(caps.language),
        )
        if why is not None:
            return "", f"{artifact.id} could not be summarised: {why}"
        answers.append(answer.text.strip() if answers else prepend_summary_author(answer).strip())
    exact = render_exact_strings([artifact.text], max_tokens=caps.max_exact_tokens, count=count)
    text = "\n\n".join((*answers, *((exact,) if exact else ())))
    return text, f"{artifact.id} is sent as a summary: its {count(artifact.text):,} tokens do not fit beside the rest."


def _split_text(artifact: Artifact, config: CompactionConfig, tokenizer: Tokenizer) -> Sequence[str]:
    """Split the text into parts of about equal length that a summary model can read.

    The parts end at line breaks where possible.
    """
    reads, text = config.summary.max_input_tokens, text_for_model(artifact)
    parts = ceil(tokenizer.count(text) / reads)
    while True:
        size = ceil(len(text) / parts)
        found = list(_split_by_size(text, size))
        # A dense part can exceed the limit although the text as a whole, on average, does not.
        if size <= 1 or all(tokenizer.count(part) <= reads for part in found):
            return found
        parts *= 2


def _split_by_size(text: str, size: int) -> Iterator[str]:
    start = 0
    # A part ends at the last line break in its second half, so that no part becomes very short.
    while len(text) - start > size:
        end = text.rfind("\n", start + size // 2, start + size) + 1 or start + size
        yield text[start:end]
        start = end
    yield text[start:]


def _summary_instruction(config: CompactionConfig) -> str:
    return _SUMMARY_TASK.format(language=config.summary.language or _DOCUMENT_LANGUAGE)


def _summary_key(part: str, config: CompactionConfig) -> str:
    return hash_text(_summary_instruction(config) + part)
