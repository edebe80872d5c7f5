"""Choose the layout plan of a turn, and collect what a cost-based plan depends on.

``choose_layout`` calls the planner of the layout mode: ``library`` moves attachments into the system message after
each turn, ``in_place`` only appends until an epoch ends, and ``auto`` follows the plan that costs decided when the
turn was asked; that plan is stored with the turn. ``collect_layout_inputs`` collects the inputs of a cost-based plan,
and ``estimate_reuse_probabilities`` estimates from the history of a conversation how often caches expire and artifacts leave or
return. A new conversation starts from typical values. ``is_keep_alive_worth_it`` decides about keep-alives.
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from itertools import accumulate, takewhile
from typing import NamedTuple

from lamella.core.artifacts.blocks import render_block, render_update, text_for_model
from lamella.core.artifacts.model import Artifact, ArtifactKind
from lamella.core.budget import Tokenizer, count_images_tokens, count_tools_tokens
from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.turn import ArtifactForm, HistoryMode, LayoutMode, LayoutPlan, Turn, TurnSettings
from lamella.core.messages import QUERY_LABEL, Message
from lamella.core.prompt.advance import LayoutPlanner, with_turn_overrides
from lamella.core.prompt.attachments import (
    collect_attachments,
    detach_from_working_set,
    drop_from_library,
    is_in_working_set,
)
from lamella.core.prompt.cache_history import (
    AttachmentStats,
    CacheEntry,
    CacheHistory,
    age_bucket_index,
    sum_attachment_stats,
)
from lamella.core.prompt.cutting import has_no_attachments, must_stay_readable, to_call_line
from lamella.core.prompt.layers.history import history_messages
from lamella.core.prompt.layers.library import (
    LibraryEntry,
    PlacedArtifact,
    attachment_age,
    can_shrink,
    choose_carried_form,
    count_repeats,
)
from lamella.core.prompt.layers.model import build_system_layer, message_position
from lamella.core.prompt.prompt import MAX_PLANNED_BREAKPOINTS, has_system_message
from lamella.core.prompt.receipts import UNDO_CAUSE
from lamella.core.prompt.rules import rules_change_prompt
from lamella.core.prompt.state import PromptState, get_index
from lamella.core.text.diff import build_short_diff
from lamella.core.values import replace

# Typical values before anything was observed, and how many observations each counts for. Tuned on the even seeds of
# `python -m bench layouts`.
_PRIOR_EXPIRY, _PRIOR_EXPIRY_WEIGHT = 0.06, 8
_PRIOR_REQUESTS_TO_END = 20
_PRIOR_REATTACH, _PRIOR_REATTACH_WEIGHT = 0.05, 6
_PRIOR_DROP, _PRIOR_DROP_WEIGHT = 0.2, 5
_MIN_REQUESTS_AHEAD = 10
# The probability per request that a later cut removes the same text. Waiting pays, because one later cut removes more
# at once. The more reading costs relative to writing again, the sooner that cut comes: by the square root of the ratio.
_LATER_CUT_PROBABILITY = 0.45


class ReuseProbabilities(NamedTuple):
    """Probabilities per request: that the cache expires or the conversation ends, and per artifact.

    ``mean_reattach`` and ``mean_drop`` are the averages over all artifacts of the conversation.
    """

    expiry: float
    mean_reattach: float
    mean_drop: float
    cache_history: CacheHistory

    def reattach_probability(self, name: str) -> float:
        """Return the probability that an artifact outside the working set is attached again."""
        stats = self.cache_history.attachment_stats.get(name, AttachmentStats())
        return (stats.returned + _PRIOR_REATTACH_WEIGHT * self.mean_reattach) / (stats.absent + _PRIOR_REATTACH_WEIGHT)

    def leave_probability(self, name: str) -> float:
        """Return the probability that an artifact leaves the working set."""
        stats = self.cache_history.attachment_stats.get(name, AttachmentStats())
        return (stats.dropped + _PRIOR_DROP_WEIGHT * self.mean_drop) / (stats.stayed + _PRIOR_DROP_WEIGHT)

    def is_likely_to_leave(self, age: int) -> bool:
        """Return whether artifacts attached this many turns ago leave with twice the usual odds."""
        ages = self.cache_history.age_counts
        usual = sum([left for _, left in ages]) / max(1, sum([seen for seen, _ in ages]))
        seen, left = ages[age_bucket_index(age)]
        leaves = (left + _PRIOR_DROP_WEIGHT * usual) / (seen + _PRIOR_DROP_WEIGHT)
        return leaves * (1 - usual) > 2 * usual * (1 - leaves)

    def saving_of_removed_artifact(self, name: str, read: float, write: float) -> float:
        """Return the expected saving per token of removing an unused artifact.

        It is the saved reading, less the cost of writing the text again if the artifact comes back.
        """
        back = self.reattach_probability(name)
        return (
            (1 - self.expiry)
            * (read - write * back)
            / (back + self.expiry + _estimate_saving_of_later_cut(read, write))
        )

    def cost_of_cut_next_turn(
        self, read: float, write: float, *, tokens_after_cut: int, leaving_tokens: float
    ) -> float:
        """Return the most that a cut now can save: the cost of the same cut one turn later.

        By then some artifacts in use have left by themselves. ``tokens_after_cut`` is the number of tokens after the
        cut (``leaving_tokens`` of them are of such artifacts); the later cut need not write them again.
        """
        return (1 - self.expiry) * max(0.0, (write - read) * tokens_after_cut - write * leaving_tokens)

    def saving_of_removed_text(self, read: float, write: float) -> float:
        """Return the expected saving per token of removing text that never comes back."""
        return (1 - self.expiry) * read / (self.expiry + _estimate_saving_of_later_cut(read, write))


def _estimate_saving_of_later_cut(read: float, write: float) -> float:
    return min(1.0, _LATER_CUT_PROBABILITY * math.sqrt(read / (write - read))) if write > read else 1.0


def estimate_reuse_probabilities(cache_history: CacheHistory) -> ReuseProbabilities:
    """Estimate the probabilities from the cache history of a branch."""
    lapses, seen = cache_history.short_expiries + cache_history.long_expiries, cache_history.requests
    stayed, dropped, absent, returned = sum_attachment_stats(cache_history.attachment_stats)
    # Observed rates, smoothed with the typical values. The last term of the first one is the chance that the
    # conversation ends, which makes later savings as worthless as an expiry does.
    return ReuseProbabilities(
        expiry=(lapses + _PRIOR_EXPIRY * _PRIOR_EXPIRY_WEIGHT) / (seen + _PRIOR_EXPIRY_WEIGHT)
        + 1 / (seen + _PRIOR_REQUESTS_TO_END),
        mean_reattach=(returned + _PRIOR_REATTACH * _PRIOR_REATTACH_WEIGHT) / (absent + _PRIOR_REATTACH_WEIGHT),
        mean_drop=(dropped + _PRIOR_DROP * _PRIOR_DROP_WEIGHT) / (stayed + _PRIOR_DROP_WEIGHT),
        cache_history=cache_history,
    )


def return_probability(cache_history: CacheHistory) -> float:
    """Return the probability that a user whose cache expires comes back within the hour, not later or never."""
    seen = cache_history.requests
    hour = (cache_history.short_expiries + cache_history.kept_alive_pauses + _PRIOR_EXPIRY * _PRIOR_EXPIRY_WEIGHT) / (
        seen + _PRIOR_EXPIRY_WEIGHT
    )
    later = cache_history.long_expiries / (seen + _PRIOR_EXPIRY_WEIGHT)
    return hour / (hour + later + 1 / (seen + _PRIOR_REQUESTS_TO_END))


def expected_short_expiries(cache_history: CacheHistory) -> float:
    """Return the expected number of further expiries after pauses of at most an hour."""
    seen = cache_history.requests
    rate = (cache_history.short_expiries + _PRIOR_EXPIRY * _PRIOR_EXPIRY_WEIGHT) / (seen + _PRIOR_EXPIRY_WEIGHT)
    return (
        rate
        * max(_MIN_REQUESTS_AHEAD, seen)
        * (cache_history.short_expiries + 2)
        / (cache_history.short_expiries + cache_history.long_expiries + 2)
    )


# Inputs of a cost-based plan: what was sent, what is in use, what is new, and what caches still have.

# Estimated tokens of one handle in the list of removed artifacts, and of the lines that state the working set.
HANDLE_TOKENS = 12
_EXTRA_LINE_TOKENS = 50


class MessageWithAttachments(NamedTuple):
    """A turn whose question contains more than the typed text.

    Attributes:
        message_index: Index of the question's message.
        unused: Unused artifacts in it, with their tokens.
        in_use: Artifacts in use, with their tokens.
        obsolete_tokens: Tokens of text that is no longer needed: copies replaced by newer text, reference lines, and old
            tool results that were sent as text.
        head: Artifacts in use at the beginning of the message; they can stay although the text after them goes.
    """

    message_index: int
    unused: tuple[tuple[str, int], ...]
    in_use: tuple[tuple[str, int], ...]
    obsolete_tokens: int
    head: tuple[tuple[str, int], ...] = ()


class LayoutInputs(NamedTuple):
    """The inputs of a plan.

    Attributes:
        first_message: Index of the first message after the system message.
        cumulative_tokens: Tokens of the request up to and including each message.
        carriers: Turns whose questions contain attachments, in order.
        cache_entries: Cache entries that have not expired.
        stable_message: Index of the last message before the question of the last fold.
        probabilities: Probabilities of expiry, return and removal.
        profile: The cache profile of the model.
        full_tokens: Tokens of each artifact in use if it is shown again.
        update_tokens: Tokens of each artifact with a new text if it is shown as an update of its copy.
        leaving: Artifacts that are in the working set for the last turn.
        in_use_order: Artifacts in use, those due to leave last; empty if the cache serves only whole messages.
        label_tokens: Tokens of the label before the typed text, which are part of the rest of each carrier; 0 if no
            artifact can stay at the head of a message.
    """

    first_message_after_system: int
    cumulative_tokens: Sequence[int]
    carriers: Sequence[MessageWithAttachments]
    cache_entries: Sequence[CacheEntry]
    stable_message: int | None
    probabilities: ReuseProbabilities
    profile: CacheProfile
    full_tokens: Mapping[str, int]
    update_tokens: Mapping[str, int]
    leaving: Set[str]
    in_use_order: Sequence[str]
    label_tokens: int

    def reusable_message_head(self, carrier: MessageWithAttachments) -> Sequence[tuple[str, int]]:
        """Return the artifacts that can stay at the head of a message.

        It ends at the first artifact that changed and is shown in full again, since its old copy becomes unused.
        """
        return [*takewhile(lambda one: self.update_tokens.get(one[0], 0) < self.full_tokens[one[0]], carrier.head)]

    @property
    def total_update_tokens(self) -> int:
        return sum(self.update_tokens.values())


def collect_layout_inputs(
    state: PromptState,
    turn: Turn,
    profile: CacheProfile,
    *,
    probabilities: ReuseProbabilities,
    tokenizer: Tokenizer,
    at: datetime | None,
) -> tuple[LayoutInputs, Mapping[str, ArtifactForm]]:
    """Collect the inputs of a plan, and the changed artifacts to show in full if every message stays."""
    now = with_turn_overrides(state, turn)
    first = int(has_system_message(now.system, {}))
    messages = history_messages(state.history.shown)
    overhead = tokenizer.tokens_per_message
    sizes = [
        count_message_tokens(message, tokenizer) if message.images else message.tokens + overhead
        for message in messages
    ]
    head = build_system_layer(now.system, count=tokenizer.count).tokens + tokenizer.tokens_per_message if first else 0
    base = head + (count_tools_tokens(now.tools, tokenizer.count) if now.tools else 0)
    ends = list(accumulate(sizes, initial=base))
    ends = ends if first else ends[1:]
    library = drop_from_library(state.library, turn.drop)[0] if turn.drop else state.library
    library = detach_from_working_set(library, turn.detach) if turn.detach else library
    attached: dict[str, Artifact] = {artifact.id: artifact for artifact in collect_attachments(turn, library)[0]}
    index = get_index(state)
    placed = index.active_placed
    if index.suffices_for_turn(linger=turn.turn_settings.linger, turn_number=state.turn_count, names=attached):
        # Nothing that is only counted in the list of handles matters.
        library = (
            {name: library[name] for name in index.active_library if name in library}
            if turn.drop or turn.detach
            else index.active_library
        )
    alive = {
        name
        for name, entry in library.items()
        if name in attached or must_stay_readable(entry, turn.turn_settings, turn_number=state.turn_count)
    }
    # A cache with explicit breakpoints serves a message as a whole or not at all. While turns are hidden, a cut in the
    # first shown message can change the messages before it: the history mode then chooses again which turns to show.
    shows_all = turn.turn_settings.history is HistoryMode.FULL and not state.history.hides_turns
    heads = not profile.marks and shows_all
    order = (
        _order_library_entries(
            library, alive, attached, turn.turn_settings, probabilities=probabilities, turn=state.turn_count
        )
        if heads
        else []
    )
    # Handles in the list of removed artifacts move with a cut, so removing them saves nothing.
    alive |= {name for name, one in placed.items() if one.form is ArtifactForm.HANDLE and name in library}
    entries = [one for one in state.cache_history.entries if _is_unexpired(one, profile, at)]
    kept_placed = {name: one for name, one in placed.items() if name in alive and one.is_full} if heads else {}
    inputs = LayoutInputs(
        first_message_after_system=first,
        cumulative_tokens=ends,
        carriers=_list_messages_with_attachments(state, placed, alive, kept_placed, first=first, tokenizer=tokenizer),
        cache_entries=entries,
        stable_message=state.cache_history.stable_message,
        probabilities=probabilities,
        profile=profile,
        full_tokens={
            name: _count_full_tokens(one, tokenizer) for name, one in placed.items() if name in alive and one.pieces
        },
        update_tokens={},
        leaving={
            name
            for name in alive - attached.keys()
            if _leaves_working_set_after(library[name], turn.turn_settings, turn=state.turn_count)
        },
        in_use_order=order,
        label_tokens=tokenizer.count(QUERY_LABEL) if kept_placed else 0,
    )
    return _count_update_tokens(inputs, state, attached, tokenizer=tokenizer)


def _order_library_entries(
    library: Mapping[str, LibraryEntry],
    in_use: Set[str],
    attached: Mapping[str, Artifact],
    turn_settings: TurnSettings,
    *,
    probabilities: ReuseProbabilities,
    turn: int,
) -> list[str]:
    """Return the artifacts in use in first-seen order, those due to leave last."""
    texts = [name for name, one in attached.items() if one.kind not in (ArtifactKind.TOOL, ArtifactKind.IMAGE)]
    names = dict.fromkeys([*(name for name in library if name in in_use), *texts])

    def next_age(name: str) -> int:
        if name not in attached:
            return attachment_age(library[name], turn_settings, turn_number=turn + 1)
        repeats = count_repeats(library.get(name), attached[name], turn_number=turn)
        return 1 if turn_settings.linger else 1 + repeats

    ages = {name: next_age(name) for name in names}
    due = {age: probabilities.is_likely_to_leave(age) for age in set(ages.values())}
    return sorted(names, key=lambda name: due[ages[name]])


def _leaves_working_set_after(entry: LibraryEntry, turn_settings: TurnSettings, *, turn: int) -> bool:
    """Return whether this is the last turn in which an entry is in the working set."""
    stays = is_in_working_set(entry, turn_settings, turn_number=turn + 1)
    return is_in_working_set(entry, turn_settings, turn_number=turn) and not stays and can_shrink(entry.artifact)


def _count_full_tokens(placed: PlacedArtifact, tokenizer: Tokenizer) -> int:
    """Return the tokens of an artifact if it is shown again; several pieces become one full block."""
    is_single = placed.is_listed or len(placed.pieces) == 1
    return placed.tokens if is_single else tokenizer.count(render_block(placed.artifact))


def count_message_tokens(message: Message, tokenizer: Tokenizer) -> int:
    """Return the token count of a message with its images and overhead."""
    images = count_images_tokens(message.images, tokenizer) if message.images else 0
    return message.tokens + images + tokenizer.tokens_per_message


def estimate_question_tokens(state: PromptState, turn: Turn, tokenizer: Tokenizer) -> int:
    """Estimate the tokens of the question: the typed text and new attachments, whichever plan is chosen."""
    text_tokens = tokenizer.count(turn.text) + tokenizer.tokens_per_message + _EXTRA_LINE_TOKENS
    for artifact in collect_attachments(turn, state.library)[0]:
        old = state.placed.get(artifact.id)
        # A repeated tool result or image is in the request until a cut removes it, and is then sent again: count it.
        if old is None or not old.is_full or artifact.kind in (ArtifactKind.TOOL, ArtifactKind.IMAGE):
            text_tokens += count_images_tokens(artifact.images, tokenizer) if artifact.kind is ArtifactKind.IMAGE else 0
            text_tokens += tokenizer.count(render_block(artifact)) if artifact.text else 0
    return text_tokens


def _is_unexpired(entry: CacheEntry, profile: CacheProfile, at: datetime | None) -> bool:
    """Return whether a cache entry has not expired at ``at``; True if that cannot be known."""
    if at is None or entry.at is None or profile.lifetime is None:
        return True
    lasts = profile.longer[0] if entry.has_long_lifetime and profile.longer else profile.lifetime
    return (at - entry.at).total_seconds() <= lasts


def _list_messages_with_attachments(
    state: PromptState,
    placed: Mapping[str, PlacedArtifact],
    in_use: set[str],
    reusable: Mapping[str, PlacedArtifact],
    *,
    first: int,
    tokenizer: Tokenizer,
) -> list[MessageWithAttachments]:
    """List the turns whose questions contain attachments; those in ``reusable`` may stay at the head of one."""
    owners = {piece: name for name, one in placed.items() for piece in one.pieces if name in state.library}
    carriers: list[MessageWithAttachments] = []
    at = first
    for turn in state.history.shown:
        if turn.question_message is not turn.question.message and not has_no_attachments(turn):
            tokens = {True: dict[str, int](), False: dict[str, int]()}
            for piece in turn.question_message.pieces:
                name = owners.get(piece)
                if name is not None:
                    sizes = tokens[name in in_use]
                    one = state.placed[name]
                    weight = one.tokens if len(one.pieces) == 1 else tokenizer.count(piece)
                    sizes[name] = sizes.get(name, 0) + weight
            known = sum(sum(sizes.values()) for sizes in tokens.values())
            known += sum([to_call_line(placed_result, tokenizer).tokens for placed_result in turn.tool_results])
            rest = max(0, turn.question_message.tokens - turn.question.message.tokens - known)
            head = _list_artifacts_at_message_head(turn.question_message, owners, reusable, at=at) if reusable else ()
            carriers.append(
                MessageWithAttachments(at, tuple(tokens[False].items()), tuple(tokens[True].items()), rest, head)
            )
        at += 2 + len(turn.rounds)
    return carriers


def _list_artifacts_at_message_head(
    sent: Message, owners: Mapping[str, str], reusable: Mapping[str, PlacedArtifact], *, at: int
) -> tuple[tuple[str, int], ...]:
    """Return the artifacts at the beginning of a message that have their only copy there."""
    known = takewhile(bool, (reusable.get(owners.get(piece, "")) for piece in sent.pieces))
    position = message_position(at)
    texts = takewhile(lambda one: len(one.pieces) == 1 and one.place == position, filter(None, known))
    return () if sent.images else tuple([(one.artifact.id, one.tokens) for one in texts])


def _count_update_tokens(
    inputs: LayoutInputs, state: PromptState, attached: Mapping[str, Artifact], *, tokenizer: Tokenizer
) -> tuple[LayoutInputs, Mapping[str, ArtifactForm]]:
    """Decide for each changed attachment whether it is shown as a diff or in full, and count its tokens.

    A diff is read in every request together with the copy that it changes. A full text makes that copy unused; it is
    read until the next fold, or cut out at the cost of writing everything after it again.
    """
    if not attached:
        return inputs, {}
    profile, probabilities, forms = inputs.profile, inputs.probabilities, dict[str, ArtifactForm]()
    wholes, changed = dict(inputs.full_tokens), dict[str, int]()
    for name, artifact in attached.items():
        old = state.placed.get(name)
        if old is None or not old.is_full or old.artifact.hash == artifact.hash or not old.pieces:
            continue
        diff = build_short_diff(text_for_model(old.artifact), text_for_model(artifact))
        full = wholes[name] = tokenizer.count(render_update(artifact, diff=None))
        if diff is None:
            changed[name] = full
            continue
        short = tokenizer.count(render_update(artifact, diff=diff))
        start = next(
            (
                one.message_index
                for one in inputs.carriers
                if any(name == updated_name for updated_name, _ in one.in_use)
            ),
            None,
        )
        behind = (
            0
            if start is None
            else inputs.cumulative_tokens[-1] - inputs.cumulative_tokens[min(start, len(inputs.cumulative_tokens) - 1)]
        )
        stays = probabilities.leave_probability(name) + probabilities.expiry
        differs = short * (profile.write + profile.read / stays)
        reattach_cost = profile.write * full + min(
            profile.read * full / probabilities.expiry, (profile.write - profile.read) * behind
        )
        if reattach_cost < differs:
            forms[name] = ArtifactForm.FULL
        changed[name] = full if reattach_cost < differs else short
    return inputs._replace(full_tokens=wholes, update_tokens=changed), forms


# Keep-alives: whether to send the last request again so that the cache entry does not expire.

# The share of the lifetime after which a keep-alive is due: late, but early enough to reach the provider in time.
_KEEP_ALIVE_LIFETIME_SHARE = 0.95
_HOUR = 3_600.0


def keep_alive_interval(profile: CacheProfile) -> float | None:
    """Return after how many seconds a keep-alive is due; None if the cache needs none.

    A cache needs none if its entries do not expire by time, or if reading is not cheaper than writing.
    """
    return (
        None
        if profile.lifetime is None or profile.read >= profile.write
        else _KEEP_ALIVE_LIFETIME_SHARE * profile.lifetime
    )


def return_probability_in_next_lifetime(cache_history: CacheHistory, idle: float, profile: CacheProfile) -> float:
    """Return the probability that an idle user comes back while one more keep-alive covers the pause.

    The model: of the users who come back within the hour, equally many come back in each doubling of the idle time.
    """
    if profile.lifetime is None or idle >= _HOUR or idle <= 0:
        return 0.0
    within = min(1.0, math.log((idle + profile.lifetime) / idle) / math.log(_HOUR / idle))
    return return_probability(cache_history) * within


def is_keep_alive_worth_it(return_probability: float, profile: CacheProfile, *, cached_tokens: int, total: int) -> bool:
    """Return whether a keep-alive is expected to cost less than writing ``cached_tokens`` tokens again.

    A keep-alive reads the whole request once. ``cached_tokens`` are the tokens that no entry with the longer lifetime
    covers, and ``return_probability`` is the probability that the user comes back in time.
    """
    if total < profile.minimum or keep_alive_interval(profile) is None:
        return False
    return return_probability * (profile.write - profile.read) * cached_tokens > profile.read * total


# The planners of the layout modes.

_KEEP_ALL_PLAN = LayoutPlan(why="nothing that was sent has to move")
_KEEP_ALL_PRICED_PLAN = replace(_KEEP_ALL_PLAN, priced=True)
_FOLD_INTO_LIBRARY_PLAN = LayoutPlan(
    keep_messages=0, promotes=True, why="what earlier turns attached goes into the system message"
)


def plan_library_layout(_state: PromptState, turn: Turn) -> LayoutPlan:
    """Plan the ``library`` layout: every turn folds, and earlier attachments go into the system message.

    A stored plan names the artifacts whose full text the library gets back. Those that the turn shows shortened, because
    their text does not fit, are left out.
    """
    forms = _restored_forms(turn)
    return replace(_FOLD_INTO_LIBRARY_PLAN, forms=forms) if forms else _FOLD_INTO_LIBRARY_PLAN


def _restored_forms(turn: Turn) -> Mapping[str, ArtifactForm]:
    """Return the forms of the stored plan for artifacts that the turn shows in full."""
    if turn.layout_plan is None or not turn.layout_plan.forms:
        return {}
    whole = {one.id for one in turn.attached if _is_attached_in_full(one)}
    return {name: form for name, form in turn.layout_plan.forms.items() if name in whole}


def plan_restored_texts(state: PromptState, turn: Turn) -> LayoutPlan | None:
    """Return the plan of a turn that folds and attaches outlined artifacts again; None if there is none to store.

    The library gets their full text back. Otherwise the request would have both the outline and the text. A turn in
    ``auto`` has a plan of its own.
    """
    if turn.turn_settings.layout not in (LayoutMode.LIBRARY, LayoutMode.IN_PLACE):
        return None
    plan = choose_layout(state, replace(turn, layout_plan=None))
    if plan.keep_messages != 0:
        return None
    forms = {
        str(artifact.id): ArtifactForm.FULL
        for artifact in turn.attached
        if (entry := state.library.get(artifact.id)) is not None
        and entry.artifact.hash == artifact.hash
        and artifact.id not in turn.drop
        and _is_attached_in_full(artifact)
        and choose_carried_form(entry, turn.turn_settings) is ArtifactForm.PREVIEW
    }
    return replace(plan, forms=forms) if forms else None


def _is_attached_in_full(artifact: Artifact) -> bool:
    return artifact.condensed is None and not artifact.is_outlined


def plan_in_place_layout(state: PromptState, turn: Turn) -> LayoutPlan:
    """Plan the ``in_place`` layout: earlier messages stay as sent until an epoch ends.

    As in ``library``, a stored plan of such a turn names the artifacts whose full text the library gets back.
    """
    why = _find_fold_reason(state, turn)
    return _KEEP_ALL_PLAN if why is None else LayoutPlan(keep_messages=0, why=why, forms=_restored_forms(turn))


def _find_fold_reason(state: PromptState, turn: Turn) -> str | None:
    if state.turn_settings is None:
        return "nothing was sent before"
    if state.turn_settings.layout is not turn.turn_settings.layout:
        return "the layout changed"
    if turn.history_rewrite is not None and not turn.prefix_unchanged:
        return "what was said before was rewritten"
    return _find_settings_fold_reason(state, turn) or requested_fold_reason(turn)


def _find_settings_fold_reason(state: PromptState, turn: Turn) -> str | None:
    system = turn.system
    if system is not None and tuple(state.system.non_empty_parts()) != tuple(system.non_empty_parts()):
        return "the system prompt changed"
    if turn.tools is not None and state.tools != turn.tools:
        return "the tools changed"
    if turn.model is not None and state.model != turn.model:
        return "the model changed"
    if turn.rules is not None and rules_change_prompt(state, turn.rules, system=turn.system):
        return "the rules changed"
    return None


def requested_fold_reason(turn: Turn) -> str | None:
    """Return why a turn folds although every message could stay; None if it does not."""
    if turn.drop:
        names = [_strip_hash_from_id(one) for one in turn.drop]
        shown = names if len(names) <= _MAX_NAMED_DROPS else names[: _MAX_NAMED_DROPS - 1]
        shown += [f"{len(names) - len(shown):,} more"] if len(names) > len(shown) else []
        listed = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
        return f"{listed} {'was' if len(names) == 1 else 'were'} dropped"
    return "a fold was asked for" if turn.fold else None


def _strip_hash_from_id(name: str) -> str:
    """Return an artifact id without the hash that ids of images, selections and queries contain.

    The reason of a plan is stored. An id says no more than the stored command does, but a title could outlive an erasure.
    """
    return "an image" if name.startswith("sha256:") else _HASH_IN_ID.sub("", name)


def plan_auto_layout(state: PromptState, turn: Turn) -> LayoutPlan:
    """Plan the ``auto`` layout: follow the stored plan, unless something forces a fold.

    Without a stored plan, or after a compaction, only what must fold is folded.
    """
    # Stored plans leave out ``priced``, since it is true for every plan of this layout.
    layout_plan = None if turn.layout_plan is None else replace(turn.layout_plan, priced=True)
    if layout_plan is not None and layout_plan.keep_messages == 0:
        # A full fold is possible in any state, so nothing can invalidate it.
        return layout_plan
    if layout_plan is not None and state.compaction_step == UNDO_CAUSE:
        # Replaying this turn later must give the same plan, and a replay does not know that a compaction was undone.
        state = replace(state, compaction_step=None)
    # On another branch a turn before this one may be deleted. The settings it changed then change with this turn.
    forced = why_no_earlier_message_can_stay(state, turn)
    if layout_plan is not None and forced is None and not _was_compacted(state):
        return layout_plan
    if state.cleared_from is not None and forced is None:
        return adapt_plan_to_clearing(layout_plan or _KEEP_ALL_PRICED_PLAN, state.cleared_from)
    if state.kept_messages is not None and forced is None:
        return keep_compacted_prefix(state, layout_plan or _KEEP_ALL_PRICED_PLAN)
    why = forced or (requested_fold_reason(turn) if layout_plan is None else None)
    stays = layout_plan or _KEEP_ALL_PRICED_PLAN
    return stays if why is None else _plan_full_fold(stays, why)


def _plan_full_fold(layout_plan: LayoutPlan, why: str) -> LayoutPlan:
    # The final positions of messages are not known yet, so only the system message can get a breakpoint.
    marks = tuple([mark for mark in layout_plan.breakpoints if mark == 0])
    return replace(
        layout_plan,
        keep_messages=0,
        within=0,
        order=(),
        forms={},
        breakpoints=marks,
        cached_message=None,
        long_lifetime_until=None,
        why=why,
    )


def why_no_earlier_message_can_stay(state: PromptState, turn: Turn) -> str | None:
    """Return why no earlier message can stay as sent, at any cost; None if some can."""
    if state.turn_settings is None:
        return "nothing was sent before"
    if state.turn_settings.layout is not turn.turn_settings.layout:
        return "the layout changed"
    if turn.history_rewrite is not None and not turn.prefix_unchanged:
        return "what was said before was rewritten"
    if _was_compacted(state) and state.kept_messages is None and state.cleared_from is None:
        return "what was said before was compacted"
    return _find_settings_fold_reason(state, turn)


def keep_compacted_prefix(state: PromptState, layout_plan: LayoutPlan) -> LayoutPlan:
    """Return a plan that keeps the messages before a compacted range and starts an epoch after them."""
    why = "what was said before was compacted from some message on"
    return replace(_plan_full_fold(layout_plan, why), keep_messages=state.kept_messages, breakpoints=())


# Dropped attachments that the reason of a plan names, at most.
_MAX_NAMED_DROPS = 3
_HASH_IN_ID = re.compile(r":[0-9a-f]{8,}$")


def adapt_plan_to_clearing(layout_plan: LayoutPlan, cleared_from: int) -> LayoutPlan:
    """Return a plan for a request in which tool results were cleared in place, from message ``cleared_from`` on.

    The plan stays as it is, with one more breakpoint at the end of what the cache can still serve. If it cuts after that
    message, it cuts there instead: everything behind it is written again anyway.
    """
    if layout_plan.keep_messages is not None and layout_plan.keep_messages > cleared_from:
        layout_plan = replace(layout_plan, keep_messages=cleared_from, within=0, order=())
    last = cleared_from - 1
    others = [mark for mark in layout_plan.breakpoints if mark != last]
    # The system message comes first, then breakpoints before the results, since those have an entry already.
    others.sort(key=lambda mark: (mark > last, mark))
    marks = tuple(sorted([last, *others[: MAX_PLANNED_BREAKPOINTS - 1]]))
    return replace(layout_plan, breakpoints=marks)


def _was_compacted(state: PromptState) -> bool:
    """Return whether a compaction, a trial of one, or an undo folded the prompt since the last request."""
    return state.compaction_step is not None or (
        state.last_prompt is not None and state.last_prompt.epoch != state.epoch
    )


LAYOUT_PLANNERS: Mapping[LayoutMode, LayoutPlanner] = {
    LayoutMode.LIBRARY: plan_library_layout,
    LayoutMode.IN_PLACE: plan_in_place_layout,
    LayoutMode.AUTO: plan_auto_layout,
}


def choose_layout(state: PromptState, turn: Turn) -> LayoutPlan:
    """Return the layout plan of a turn, from the planner of its layout mode."""
    return LAYOUT_PLANNERS[turn.turn_settings.layout](state, turn)
