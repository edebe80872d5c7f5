"""The planner of ``auto``: append while the cache is valid, fold when it expired, cut where that pays.

It compares the cost of a few options. Prices are factors of the plain input price, from the cache profile. The cost
now is counted on the tokens sent. The later cost is an expectation from how often the cache expired and artifacts
came back in this conversation.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from lamella.core.budget import Tokenizer, count_tools_tokens
from lamella.core.layout.layouts import (
    HANDLE_TOKENS,
    LayoutInputs,
    collect_layout_inputs,
    count_message_tokens,
    estimate_question_tokens,
    estimate_reuse_probabilities,
    expected_short_expiries,
    keep_compacted_prefix,
    requested_fold_reason,
    why_no_earlier_message_can_stay,
)
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import CacheStateAfterPause, HistoryMode, LayoutMode, LayoutPlan, Turn
from lamella.core.prompt.cache_history import CacheEntry, CacheHistory, record_keep_alive, record_pause
from lamella.core.prompt.layers.library import max_handle_list_tokens
from lamella.core.prompt.prompt import Prompt, has_system_message
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace

_HOUR = 3_600.0
_EXPIRED = (CacheStateAfterPause.SHORT, CacheStateAfterPause.LONG)


class LayoutOption(NamedTuple):
    """One layout option with its cost.

    Attributes:
        keep_messages: How many messages stay as sent; None for all.
        keep_pieces: How many pieces of the next message stay as well.
        breakpoints: Indices of the messages with a cache breakpoint.
        cached_message: Index of the last message that the cache is expected to serve.
        total_tokens: Tokens of the earlier messages under this option.
        cost: Cost of this request in tokens of plain input.
        expected_cost: ``cost`` less the expected later savings.
    """

    keep_messages: int | None
    keep_pieces: int
    breakpoints: tuple[int, ...]
    cached_message: int | None
    earlier_tokens: int
    cost: float
    expected_cost: float


def plan_by_cost(
    state: PromptState,
    turn: Turn,
    profile: CacheProfile,
    *,
    tokenizer: Tokenizer,
    max_tokens: float,
    at: datetime | None,
    target: float | None = None,
    kept_alive_at: datetime | None = None,
) -> LayoutPlan:
    """Plan the layout of a turn by cost; ``max_tokens`` is the token limit of the request.

    If the request is over that limit, a cut brings it down to ``target`` if it can. ``kept_alive_at`` is when a
    keep-alive last renewed the cache, if one did.
    """
    expires_at = _classify_cache_expiry(state, profile, at, kept_alive_at=kept_alive_at)
    is_cached = (
        state
        if kept_alive_at is None
        else replace(state, cache_history=record_keep_alive(state.cache_history, kept_alive_at))
    )
    target = max_tokens if target is None else target
    layout_plan = _plan_after_expiry(
        is_cached, turn, profile, tokenizer=tokenizer, max_tokens=max_tokens, target=target, at=at, expiry=expires_at
    )
    return replace(layout_plan, at=at, expiry=expires_at, kept_alive_at=kept_alive_at)


def _plan_after_expiry(
    state: PromptState,
    turn: Turn,
    profile: CacheProfile,
    *,
    tokenizer: Tokenizer,
    max_tokens: float,
    target: float,
    at: datetime | None,
    expiry: CacheStateAfterPause,
) -> LayoutPlan:
    forced = why_no_earlier_message_can_stay(state, turn)
    asked_at = int(has_system_message(turn.system or state.system, {})) + state.history.shown_message_count
    if forced is None and state.kept_messages is not None and state.tokenizer_name == tokenizer.name:
        return keep_compacted_prefix(state, LayoutPlan())
    if forced is not None or state.tokenizer_name != tokenizer.name:
        # The cache cannot serve anything of this request. The breakpoints are for the next turn.
        first = asked_at - state.history.shown_message_count
        talk = asked_at > first and turn.turn_settings.history is HistoryMode.FULL
        marks = tuple(sorted({*((0,) if first else ()), *((asked_at - 1,) if talk else ())}))
        why = forced or "another model counts otherwise"
        why += ", after the cache lapsed" if expiry in _EXPIRED else ""
        return LayoutPlan(keep_messages=0, why=why, breakpoints=marks if profile.marks else ())
    cache_history = record_pause(state.cache_history, expiry)
    inputs, forms = collect_layout_inputs(
        state, turn, profile, probabilities=estimate_reuse_probabilities(cache_history), tokenizer=tokenizer, at=at
    )
    candidates = list_layout_options(inputs, asked_at)
    reason = requested_fold_reason(turn)
    if reason is not None:
        candidates = _filter_for_fold_request(candidates, inputs, asked_at)
    asks = estimate_question_tokens(state, turn, tokenizer) if len(candidates) > 1 else 0
    chosen, other = _choose_option(candidates, inputs, max_tokens=max_tokens - asks, target=target - asks)
    if (
        chosen.keep_messages is not None
        and turn.turn_settings.history is not HistoryMode.FULL
        and _is_cache_useless(candidates[0], inputs)
    ):
        # The history mode may choose again which turns to show, since nothing of them is cached.
        chosen = _build_option(
            inputs,
            inputs.first_message_after_system,
            question_index=asked_at,
            total=chosen.earlier_tokens,
            expected_saving=chosen.cost - chosen.expected_cost,
        )
        # How many messages will remain is not known yet, so breakpoints after the system message are left out.
        chosen = chosen._replace(
            breakpoints=tuple(mark for mark in chosen.breakpoints if mark < inputs.first_message_after_system)
        )
    return LayoutPlan(
        keep_messages=chosen.keep_messages,
        within=chosen.keep_pieces,
        order=_moved_artifact_order(inputs, chosen),
        forms=forms if chosen.keep_messages is None else {},
        why=reason or _describe_choice(chosen, other, inputs, expiry=expiry),
        breakpoints=chosen.breakpoints,
        long_lifetime_until=_long_lifetime_position(cache_history, chosen, asked_at, profile=profile),
        cached_message=chosen.cached_message,
        cost=round(chosen.expected_cost, 1),
        other=round(other.expected_cost, 1),
    )


def _moved_artifact_order(inputs: LayoutInputs, chosen: LayoutOption) -> tuple[str, ...]:
    """Return the order of artifacts that a cut shows in the question; empty for the usual order.

    Artifacts due to leave come last, so that the next cut can leave the others in place.
    """
    keep = chosen.keep_messages
    if keep is None or not inputs.in_use_order:
        return ()
    behind = [one for one in inputs.carriers if one.message_index >= keep]
    moved = {name for one in behind for name, _ in one.in_use}
    moved -= {name for one in behind[:1] for name, _ in one.head[: chosen.keep_pieces]}
    listed = [name for name in inputs.in_use_order if name in moved or name not in inputs.full_tokens]
    return tuple(listed) if len(listed) > 1 else ()


def changes_prefix_anyway(prompt: Prompt, profile: CacheProfile) -> bool:
    """Return whether the system prompt may change with a planned request although that changes every byte.

    It may if the cache serves none of the messages anyway, if the token limit forces a cut, or if the cut still pays
    when nothing before it is served.
    """
    layout_plan = prompt.layout_plan
    if layout_plan.keep_messages == 0:
        return True
    if layout_plan.keep_messages is None and layout_plan.expiry not in _EXPIRED:
        return False
    if layout_plan.cached_message is None or layout_plan.cached_message < prompt.first_message:
        return True
    if layout_plan.keep_messages is None or layout_plan.cost is None or layout_plan.other is None:
        return False
    served = sum(
        count_message_tokens(message, prompt.tokenizer) for message in prompt.messages[: layout_plan.cached_message + 1]
    )
    again = (profile.write - profile.read) * (served + count_tools_tokens(prompt.tools, prompt.tokenizer.count))
    # An option that costs more than the next one was chosen because of the token limit.
    return layout_plan.cost > layout_plan.other or layout_plan.cost + again <= layout_plan.other


def _classify_cache_expiry(
    state: PromptState, profile: CacheProfile, at: datetime | None, *, kept_alive_at: datetime | None
) -> CacheStateAfterPause:
    """Return what the pause before this request did to the cache."""
    before = state.cache_history.at
    if at is None or before is None:
        return CacheStateAfterPause.UNKNOWN
    pause = (at - before).total_seconds()
    if profile.lifetime is None or pause <= profile.lifetime:
        return CacheStateAfterPause.NONE
    if kept_alive_at is not None and (at - kept_alive_at).total_seconds() <= profile.lifetime:
        return CacheStateAfterPause.KEPT_ALIVE
    return CacheStateAfterPause.SHORT if pause <= _HOUR else CacheStateAfterPause.LONG


def list_layout_options(inputs: LayoutInputs, question_index: int) -> list[LayoutOption]:
    """List the options: append, or cut before each turn with attachments; the cut before the first folds all."""
    stays = inputs.cumulative_tokens[-1] if inputs.cumulative_tokens else 0
    candidates = [
        _build_option(
            inputs, None, question_index=question_index, total=stays + inputs.total_update_tokens, expected_saving=0.0
        )
    ]
    probabilities, read, write = inputs.probabilities, inputs.profile.read, inputs.profile.write
    removed_tokens, copies, again, worth, removal_gain = 0, 0, 0, 0.0, 0.0
    # Changed artifacts need an update unless the cut shows them again in full.
    update_tokens = inputs.total_update_tokens
    # An artifact in use is shown once after the cut, however many pieces it had before.
    shown: set[str] = set()
    listed: set[str] = set()
    unused_names = {name for carrier in inputs.carriers for name, _ in carrier.unused}
    for carrier in reversed(inputs.carriers):
        removed_tokens += carrier.obsolete_tokens + sum([tokens for _, tokens in (*carrier.unused, *carrier.in_use)])
        worth += carrier.obsolete_tokens * probabilities.saving_of_removed_text(read, write)
        worth += sum(
            [tokens * probabilities.saving_of_removed_artifact(name, read, write) for name, tokens in carrier.unused]
        )
        listed.update(name for name, _ in carrier.unused)
        new = {name for name, _ in carrier.in_use} - shown
        shown |= new
        moved = sum([inputs.full_tokens[name] for name in new])
        copies += sum([tokens for _, tokens in carrier.in_use]) - moved
        again += moved
        update_tokens -= sum([inputs.update_tokens[name] for name in new if name in inputs.update_tokens])
        total = stays - removed_tokens + again + update_tokens
        total += min(max_handle_list_tokens(total), HANDLE_TOKENS * len(listed))
        # Artifacts that stay readable above the cut but are no longer attached must be named again.
        handle_tokens = HANDLE_TOKENS * (len(unused_names) - len(listed))
        total += handle_tokens
        saved = worth + (copies - handle_tokens) * probabilities.saving_of_removed_text(read, write)
        removal_gain += sum(
            [inputs.full_tokens[name] * (1 - probabilities.reattach_probability(name)) for name in new & inputs.leaving]
        )
        if removal_gain:
            behind = total - (inputs.cumulative_tokens[carrier.message_index - 1] if carrier.message_index else 0)
            saved = min(
                saved,
                probabilities.cost_of_cut_next_turn(read, write, tokens_after_cut=behind, leaving_tokens=removal_gain),
            )
        head = inputs.reusable_message_head(carrier)
        if head and carrier.message_index:
            # A label is needed after the pieces that stay. A cut before the message would have removed it.
            placed_tokens = total + min(carrier.obsolete_tokens, inputs.label_tokens)
            placed_tokens += sum(
                [tokens - inputs.full_tokens[name] + inputs.update_tokens.get(name, 0) for name, tokens in head]
            )
            less = saved - min(carrier.obsolete_tokens, inputs.label_tokens) * probabilities.saving_of_removed_text(
                read, write
            )
            candidates.append(
                _build_option(
                    inputs,
                    carrier.message_index,
                    question_index=question_index,
                    total=placed_tokens,
                    expected_saving=less,
                    head=head,
                )
            )
        candidates.append(
            _build_option(
                inputs, carrier.message_index, question_index=question_index, total=total, expected_saving=saved
            )
        )
    return candidates


def _build_option(
    inputs: LayoutInputs,
    keep_messages: int | None,
    *,
    question_index: int,
    total: int,
    expected_saving: float,
    head: Sequence[tuple[str, int]] = (),
) -> LayoutOption:
    """Build an option from its token total and its expected savings ``expected_saving``."""
    profile, kept = inputs.profile, len(inputs.cumulative_tokens) if keep_messages is None else keep_messages
    marks = _choose_breakpoints(inputs, keep_messages, question_index=question_index)
    served, read = estimate_cached_prefix(
        inputs.cache_entries, inputs.cumulative_tokens, (*marks, question_index), profile=profile, keep_messages=kept
    )
    if head and any(one.position >= kept for one in inputs.cache_entries):
        read = inputs.cumulative_tokens[kept - 1] + sum([tokens for _, tokens in head])
        read -= read % profile.granularity
        served, read = (kept - 1, read) if read >= max(profile.minimum, 1) else (None, 0)
    cost = profile.read * read + profile.write * (total - read)
    return LayoutOption(
        keep_messages=keep_messages,
        keep_pieces=len(head),
        breakpoints=marks,
        cached_message=served,
        earlier_tokens=total,
        cost=cost,
        expected_cost=cost - expected_saving,
    )


def estimate_cached_prefix(
    entries: Iterable[CacheEntry],
    cumulative_tokens: Sequence[int],
    breakpoints: Sequence[int],
    *,
    profile: CacheProfile,
    keep_messages: int,
) -> tuple[int | None, int]:
    """Return the last message that the cache serves if ``keep_messages`` messages stay, and the tokens up to it."""
    if profile.marks:
        lookback = profile.lookback or len(cumulative_tokens) + 1
        positions = [one.position for one in entries if one.position < keep_messages]
        positions = [one for one in positions if any(0 <= mark - one < lookback for mark in breakpoints)]
    else:
        # A cache without breakpoints keeps every prefix, so a longer entry serves up to the last kept message.
        positions = [min(one.position, keep_messages - 1) for one in entries]
    last = max(positions, default=-1)
    read = cumulative_tokens[last] if last >= 0 else 0
    read -= read % profile.granularity
    return (last, read) if read >= max(profile.minimum, 1) else (None, 0)


def _choose_breakpoints(inputs: LayoutInputs, keep_messages: int | None, *, question_index: int) -> tuple[int, ...]:
    """Choose the messages that get a cache breakpoint, beside the question.

    For a cut: the last message before the question, which is stable from now on, and the last message that the cache
    still has. Otherwise: the last message before the latest fold, and the last cached message if it is too far back
    for any other breakpoint to find. The system message comes last in both cases.
    """
    profile, kept = inputs.profile, len(inputs.cumulative_tokens) if keep_messages is None else keep_messages
    if not profile.marks:
        return ()
    cached_position = max((one.position for one in inputs.cache_entries if one.position < kept), default=None)
    if keep_messages is not None:
        positions = [question_index - 1, cached_position]
    else:
        far = (
            cached_position is not None
            and profile.lookback is not None
            and question_index - cached_position >= profile.lookback
        )
        positions = [cached_position if far else None, inputs.stable_message]
    positions.append(0 if inputs.first_message_after_system else None)
    # ``wanted`` is in order of importance. One breakpoint is reserved for the question.
    chosen = dict.fromkeys(one for one in positions if one is not None and 0 <= one < question_index)
    return tuple(sorted(list(chosen)[: profile.marks - 1]))


def _choose_option(
    options: Sequence[LayoutOption], inputs: LayoutInputs, *, max_tokens: float, target: float
) -> tuple[LayoutOption, LayoutOption]:
    """Return the option with the lowest expected cost and the next best one.

    Only options that fit are considered, if any fits. On equal cost appending wins, then the later cut.
    """
    append, fold = options[0], options[-1]
    # If appending does not fit, come down to the target: an option that barely fits would be repeated next turn.
    most = max_tokens if append.earlier_tokens <= max_tokens else target
    fitting = [one for one in options if one.earlier_tokens <= most] or [fold]
    is_expired = _is_cache_useless(append, inputs)
    # If nothing is cached either way, fold: artifacts in use then come after the history, where the next cut is cheap.
    best = fold if is_expired and fold.expected_cost <= append.expected_cost else min(fitting, key=_expected_cost)
    others = [one for one in options if one is not best]
    return best, min(others, key=_expected_cost, default=best)


def _is_cache_useless(append: LayoutOption, inputs: LayoutInputs) -> bool:
    """Return whether the cache would serve at most L1 even if every message stays."""
    return append.cached_message is None or append.cached_message < inputs.first_message_after_system


def _filter_for_fold_request(
    options: Sequence[LayoutOption], inputs: LayoutInputs, question_index: int
) -> list[LayoutOption]:
    """Return the options for a requested fold: fold everything, or start an epoch if there is nothing to fold."""
    if len(options) > 1:
        return [options[-1]]
    append = options[0]
    return [
        _build_option(
            inputs, question_index, question_index=question_index, total=append.earlier_tokens, expected_saving=0.0
        )
    ]


def _expected_cost(option: LayoutOption) -> float:
    return option.expected_cost


def _long_lifetime_position(
    cache_history: CacheHistory, chosen: LayoutOption, question_index: int, *, profile: CacheProfile
) -> int | None:
    """Return the message up to which breakpoints should use the longer lifetime; None if none should.

    That is the history before the question of a fold, for as long as it stays unchanged.
    """
    longer = profile.longer
    if longer is None:
        return None
    long_positions = {one.position for one in cache_history.entries if one.has_long_lifetime}
    longest_kept = max(
        (mark for mark in chosen.breakpoints if mark in long_positions and mark <= (chosen.cached_message or -1)),
        default=None,
    )
    is_expired = chosen.cached_message is None or (longest_kept is not None and chosen.cached_message == longest_kept)
    stable = question_index - 1
    if chosen.keep_messages is None or not is_expired or stable not in chosen.breakpoints:
        return longest_kept
    saved = expected_short_expiries(cache_history) * (profile.write - profile.read)
    return stable if saved > longer[1] - profile.write else longest_kept


def _describe_choice(
    chosen: LayoutOption, other: LayoutOption, inputs: LayoutInputs, *, expiry: CacheStateAfterPause
) -> str:
    """Describe the choice in one sentence."""
    saved = f"about {max(0.0, other.expected_cost - chosen.expected_cost):,.0f} tokens of plain input less than the next best"
    if chosen.keep_messages is None:
        return f"appended: {saved}" if inputs.carriers else "appended: nothing carries what could go"
    removed_tokens = max(0, inputs.cumulative_tokens[-1] - chosen.earlier_tokens)
    if expiry in _EXPIRED:
        return f"folded: the cache lapsed, and {removed_tokens:,} tokens need not be written again"
    if chosen.keep_pieces:
        where = f"cut in message {chosen.keep_messages}"
    elif inputs.carriers and chosen.keep_messages <= inputs.carriers[0].message_index:
        where = "folded"
    else:
        where = f"cut before message {chosen.keep_messages}"
    return f"{where}: {removed_tokens:,} tokens leave, {saved}"


# The layout modes whose plan costs decide, once, when the turn is asked.
ADVANCE_PLANNERS = {LayoutMode.AUTO: plan_by_cost}
