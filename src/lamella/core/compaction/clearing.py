"""Clear tool results that are no longer in use, once reading them has cost as much as removing them will.

A result is unused if the same call was made again, or if it belongs to an earlier turn. In a long turn it is also unused
some results after the last call that named its file, and sooner if it names none, as search results and test logs.
Each request reads an unused result again and pays for it. ``plan_clearing`` adds up what has been paid so far. It clears
the unused results behind some message as soon as that sum is larger than the cost of a cut there: everything behind
the cut has to be written to the cache again. If the cache has expired, a cut costs nothing.

A cleared result becomes a handle in its place. Its call stays, and recall returns the text word for word.
"""

import json
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate
from typing import NamedTuple

from lamella.core.budget import Tokenizer
from lamella.core.layout.layouts import count_message_tokens
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.receipts import CompactionReceipt, CompactionStep, CompactionStepName, make_receipt
from lamella.core.log.turn import ArtifactForm, HistoryMode, Turn
from lamella.core.messages import Message, ProviderReply, ToolCall
from lamella.core.prompt.advance import LayoutPlanner, advance_by_turn, get_pending_prompt
from lamella.core.prompt.layers.history import HistoryMessage
from lamella.core.prompt.layers.tool_rounds import group_rounds, stub_result_message
from lamella.core.prompt.prompt import Prompt
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

# A cut must remove at least this many tokens. Without a lower bound short conversations with tools cost 9 % more.
MIN_CLEARED_TOKENS = 4_000
# Results of this many tokens together are worth the cost of a new tool, which changes every byte of a request.
RESULTS_WORTH_RECALL = 4 * MIN_CLEARED_TOKENS
# A turn with more results than this is long. All results of a shorter one stay in use until the turn ends.
MAX_RESULTS_IN_USE = 20
# In a long turn, a result is in use until more than this many results follow the last call that names its file; those
# that name no file, until more than this many follow it. Tuned on the even seeds of `python -m bench agents`.
_FILE_STAYS_FOR, _OTHERS_STAY_FOR = 40, 3
# A handle must be at least this much shorter than the result.
MIN_FREED_TOKENS = 10
# The results of the last tool rounds of the turn under way are always kept.
_PROTECTED_ROUNDS = 2
# Arguments that name what a tool reads. A later call with only such an argument returns all of it again.
_PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file")
# Names of fields, in any provider's wire format, that contain signed or encrypted reasoning.
_SIGNATURE_FIELDS = ("signature", "encrypted_content", "redacted_thinking")
# The tool by which a model reads what is not in the prompt.
RECALL_TOOL = "recall"
# The runner that calls tools until a task is done.
_AGENT_RUNNER = "agent"


class ClearableResult(NamedTuple):
    """A tool result in the request that can be cleared.

    Attributes:
        message_index: Index of its message in the request.
        freed_tokens: Tokens that clearing it frees.
        requests_since_unused: How many requests have read it since it is unused; None if it is still in use.
    """

    id: str
    message_index: int
    freed_tokens: int
    requests_since_unused: int | None


class ClearingCut(NamedTuple):
    """A place to cut: all unused results from ``message_index`` on are cleared.

    ``paid`` is what reading them has cost so far and ``cost`` what the cut costs, in tokens of plain input.
    """

    message_index: int
    results: tuple[ClearableResult, ...]
    reading_cost: float
    cost: float

    @property
    def freed_tokens(self) -> int:
        return sum(result.freed_tokens for result in self.results)


def plan_clearing(
    state: PromptState,
    turn: Turn,
    pending_state: PromptState,
    profile: CacheProfile,
    *,
    tokenizer: Tokenizer,
    plan_layout: LayoutPlanner,
    kept_ids: Set[str] = frozenset(),
    kept_tools: Set[str] = frozenset(),
) -> tuple[CompactionReceipt, PromptState] | None:
    """Return the receipt of a cut that pays, and the state that waits for the reply after it; None if none pays.

    ``state`` is the state before the turn and ``pending_state`` the state that waits for its reply now. ``kept_ids`` are
    results that must not be cleared, and ``kept_tools`` the names of tools whose results must not. Results are cleared only
    if the request has the recall tool.
    """
    prompt = get_pending_prompt(pending_state)
    if not _may_clear(prompt):
        return None
    results = list_clearable_results(prompt, tokenizer, kept_ids, kept_tools)
    cut = choose_cut(prompt, pending_state, profile, results)
    if cut is None:
        return None
    removed = tuple([result.id for result in cut.results])
    step = CompactionStep(
        name=CompactionStepName.TOOL_RESULTS,
        removed=removed,
        tokens_before=prompt.total,
        tokens_after=prompt.total - cut.freed_tokens,
    )
    receipt = replace(
        make_receipt(
            state.conversation,
            parent=state.head,
            steps=(step,),
            skipped=(),
            tokens=(step.tokens_before, step.tokens_after),
            target=step.tokens_after,
            automatic=True,
            since_message=removed[0],
        ),
        clears_in_place=True,
        why=_explain(cut),
    )
    cleared = advance_by_turn(state, replace(turn, receipts=(receipt,)), plan_layout, tokenizer=tokenizer)
    return (receipt, cleared) if get_pending_prompt(cleared).total < prompt.total else None


def _may_clear(prompt: Prompt) -> bool:
    return (
        prompt.layout_plan.priced
        and prompt.turn_settings.history is HistoryMode.FULL
        and any(tool.name == RECALL_TOOL for tool in prompt.tools)
        # A signature covers everything in front of it, so nothing may change in front of a signed message of this turn.
        and not any(has_signed_reasoning(message.message.provider_reply) for message in prompt.rounds)
    )


def may_clear_later(prompt: Prompt, *, changes_prefix_anyway: bool) -> bool:
    """Return whether tool results of this request, or of the turn that it begins, may become worth clearing.

    That is so for an agent, and once the results of earlier turns have some size. Short conversations with a few calls
    never clear anything, and would only pay for the definition of the recall tool. ``is_rewritten`` says that the cache
    serves nothing of this request anyway, so that a new tool costs only its own tokens.
    """
    settings = prompt.turn_settings
    if not prompt.layout_plan.priced or settings.history is not HistoryMode.FULL or not prompt.tools:
        return False
    if settings.runner == _AGENT_RUNNER:
        return True
    sizes = (
        message.segment.tokens
        for turn in prompt.history.shown
        for message in turn.rounds
        if message.message.call_id is not None
    )
    return sum(sizes) >= (MIN_CLEARED_TOKENS if changes_prefix_anyway else RESULTS_WORTH_RECALL)


def has_signed_reasoning(provider_reply: ProviderReply | None) -> bool:
    """Return whether a stored reply contains reasoning that is signed or encrypted."""
    return provider_reply is not None and any(name in provider_reply.json for name in _SIGNATURE_FIELDS)


def _explain(cut: ClearingCut) -> str:
    count = f"{len(cut.results):,} {'tool result' if len(cut.results) == 1 else 'tool results'}"
    if not cut.cost:
        return f"{count} cleared: unused, and clearing costs nothing now ({cut.freed_tokens:,} tokens leave)"
    return (
        f"{count} cleared: reading them since they are unused has cost {cut.reading_cost:,.0f} tokens of plain input, "
        f"removing them costs {cut.cost:,.0f} ({cut.freed_tokens:,} tokens leave)"
    )


def choose_cut(
    prompt: Prompt, state: PromptState, profile: CacheProfile, results: Sequence[ClearableResult]
) -> ClearingCut | None:
    """Return the cut that pays most, or None if none pays."""
    unused = [result for result in results if result.requests_since_unused is not None]
    if sum([result.freed_tokens for result in unused]) < MIN_CLEARED_TOKENS:
        return None
    offsets = _token_offsets(prompt)
    served = _last_served_message(prompt)
    best: tuple[float, int] | None = None
    paid, freed, freed_in_cache = 0.0, 0, 0
    cuts: dict[int, tuple[float, float]] = {}
    for at in range(len(unused) - 1, -1, -1):
        result = unused[at]
        paid += profile.read * result.freed_tokens * (result.requests_since_unused or 0)
        freed += result.freed_tokens
        in_cache = served is not None and result.message_index <= served
        freed_in_cache += result.freed_tokens if in_cache else 0
        cost = 0.0
        if served is not None and in_cache:
            still_served = _served_after_cut(prompt, state, profile, result.message_index)
            rewritten = offsets[served + 1] - (0 if still_served is None else offsets[still_served + 1])
            cost = max(0.0, (profile.write - profile.read) * (rewritten - freed_in_cache))
        cuts[at] = (paid, cost)
        gain = paid - cost
        if freed >= MIN_CLEARED_TOKENS and (gain > 0 or not cost) and (best is None or gain >= best[0]):
            best = (gain, at)
    if best is None:
        return None
    at = best[1]
    return ClearingCut(unused[at].message_index, tuple(unused[at:]), *cuts[at])


def list_clearable_results(
    prompt: Prompt, tokenizer: Tokenizer, kept_ids: Set[str] = frozenset(), kept_tools: Set[str] = frozenset()
) -> list[ClearableResult]:
    """List the tool results of a request that are longer than their handle and may be cleared, in order."""
    found = list(_iter_results(prompt))
    now = _count_requests(prompt)
    unused_since = _unused_since(found)
    protected = {one.message.id for one in found[-1:]} | kept_ids
    rounds = group_rounds(prompt.rounds)
    protected |= {message.id for _, results in rounds[-_PROTECTED_ROUNDS:] for message in results}
    results: list[ClearableResult] = []
    for one, since in zip(found, unused_since, strict=True):
        if one.message.id in protected or one.message.segment.form is ArtifactForm.HANDLE or one.is_pinned:
            continue
        if one.call.name in kept_tools:
            continue
        stub = stub_result_message(one.message, tokenizer, names_recall=prompt.turn_settings.names_recall)
        freed = one.message.segment.tokens - stub.segment.tokens
        if freed >= MIN_FREED_TOKENS:
            paid = None if since is None else now - since
            results.append(ClearableResult(one.message.id, one.message_index, freed, paid))
    return results


class _FoundResult(NamedTuple):
    """A tool result of the request.

    ``request`` is the number of the first request that had it, ``next_turn`` that of the first request of the next
    turn; None for the turn under way.
    """

    message: HistoryMessage
    call: ToolCall
    message_index: int
    request: int
    next_turn: int | None
    is_pinned: bool


def _iter_results(prompt: Prompt) -> Iterator[_FoundResult]:
    at, request = prompt.first_message, 0
    for turn in prompt.history.shown:
        groups = group_rounds(turn.rounds)
        pinned = not prompt.pinned.isdisjoint([message.id for message in turn.messages]) if prompt.pinned else False
        yield from _iter_round_results(
            groups, at=at + 1, request=request, next_turn=request + 1 + len(groups), is_pinned=pinned
        )
        at += 2 + len(turn.rounds)
        request += 1 + len(groups)
    groups = group_rounds(prompt.rounds)
    yield from _iter_round_results(
        groups, at=prompt.question_index + 1, request=request, next_turn=None, is_pinned=False
    )


def _iter_round_results(
    groups: Sequence[tuple[HistoryMessage, tuple[HistoryMessage, ...]]],
    *,
    at: int,
    request: int,
    next_turn: int | None,
    is_pinned: bool,
) -> Iterator[_FoundResult]:
    for number, (calling, results) in enumerate(groups, start=1):
        calls = {call.id: call for call in calling.message.calls}
        for offset, message in enumerate(results, start=1):
            call = calls.get(message.message.call_id or "")
            if call is not None:
                yield _FoundResult(message, call, at + offset, request + number, next_turn, is_pinned)
        at += 1 + len(results)


def _count_requests(prompt: Prompt) -> int:
    """Return the number of requests before this one, as far as the request shows them."""
    turns = prompt.history.shown
    return sum([1 + len(group_rounds(turn.rounds)) for turn in turns]) + len(group_rounds(prompt.rounds))


def _unused_since(found: Sequence[_FoundResult]) -> list[int | None]:
    """Return for each result the first request in which it was unused; None if it is in use."""
    since: list[int | None] = [one.next_turn for one in found]
    newest: dict[tuple[str, str], int] = {}
    for index in range(len(found) - 1, -1, -1):
        one = found[index]
        for key in _result_keys(one.call):
            if key in newest:
                since[index] = _earlier(since[index], newest[key])
        for key in _superseded_keys(one.call):
            newest[key] = one.request
    first = next((index for index, one in enumerate(found) if one.next_turn is None), len(found))
    for index, request in enumerate(_unused_in_long_turn(found[first:]), start=first):
        since[index] = since[index] if request is None else _earlier(since[index], request)
    return since


def _unused_in_long_turn(found: Sequence[_FoundResult]) -> Iterator[int | None]:
    """Yield for each result of the turn under way since when it is unused because the turn is long."""
    if len(found) <= MAX_RESULTS_IN_USE:
        return
    paths = [_find_path(one.call)[0] for one in found]
    named_last = {path: index for index, path in enumerate(paths)}
    for index, (one, path) in enumerate(zip(found, paths, strict=True)):
        # What the model asked for a second time is as much in use as a file.
        stays_for = _OTHERS_STAY_FOR if path is None and one.call.name != RECALL_TOOL else _FILE_STAYS_FOR
        last = index if path is None else named_last[path]
        end = max(last + stays_for + 1, MAX_RESULTS_IN_USE)
        yield found[end].request if end < len(found) else None


def _earlier(one: int | None, other: int) -> int:
    return other if one is None else min(one, other)


def _result_keys(call: ToolCall) -> list[tuple[str, str]]:
    """Return the keys by which a later call makes this result unused: the same call, or one for the whole file."""
    path = _find_path(call)[0]
    same = (call.name, call.arguments)
    return [same] if path is None else [same, (call.name, f"path:{path}")]


def _superseded_keys(call: ToolCall) -> list[tuple[str, str]]:
    path, is_whole = _find_path(call)
    same = (call.name, call.arguments)
    return [same, (call.name, f"path:{path}")] if path is not None and is_whole else [same]


def _find_path(call: ToolCall) -> tuple[str | None, bool]:
    """Return the file that a call names, and whether it names nothing else, such as a range of lines."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        return None, False
    if not isinstance(arguments, dict):
        return None, False
    for name in _PATH_ARGUMENTS:
        path = arguments.get(name)
        if isinstance(path, str):
            return path, len(arguments) == 1
    return None, False


def _token_offsets(prompt: Prompt) -> list[int]:
    """Return the tokens before each message and, as the last one, those of the whole request."""
    sizes = [count_message_tokens(message, prompt.tokenizer) for message in prompt.messages]
    return list(accumulate(sizes, initial=prompt.total - sum(sizes)))


def _last_served_message(prompt: Prompt) -> int | None:
    """Return the index of the last message that the cache would serve without a cut; None if it serves none."""
    groups = group_rounds(prompt.rounds)
    if groups:
        # The request before the last tool round ended right before it.
        return len(prompt.messages) - 1 - len(groups[-1][1]) - 1
    return prompt.layout_plan.cached_message


def _served_after_cut(prompt: Prompt, state: PromptState, profile: CacheProfile, message_index: int) -> int | None:
    """Return the index of the last message that the cache still serves after a cut at ``message_index``."""
    last = message_index - 1
    if not profile.marks:
        return last
    positions = [one.position for one in state.cache_history.entries if one.position <= last]
    positions += [at for at in _cached_request_ends(prompt, state) if at <= last]
    served = max(positions, default=None)
    if served is None:
        return None
    if profile.lookback is None or _count_blocks(prompt.messages[served + 1 : last + 1]) < profile.lookback:
        return served
    # The system message always has a breakpoint of its own.
    return 0 if prompt.first_message and 0 in positions else None


def _cached_request_ends(prompt: Prompt, state: PromptState) -> Iterator[int]:
    """Yield the index of the last message of each earlier request of the turn under way that the cache has as it is.

    A cut changed everything behind it, so only what was sent since then is of use, and what is before the cut. A request
    that was sent since has at least the tokens of the one with the cut.
    """
    since_cut = 0
    if any(one.id == prompt.cleared_since for one in prompt.rounds):
        yield max(prompt.breakpoints)
        since_cut = state.last_compacted_total or 0
    offsets, at = _token_offsets(prompt), prompt.question_index
    for _, results in group_rounds(prompt.rounds):
        if offsets[at + 1] >= since_cut:
            yield at
        at += 1 + len(results)


def _count_blocks(messages: Sequence[Message]) -> int:
    return sum([1 + len(message.images) + len(message.calls) for message in messages])
