"""Simulate prefix caches, and detect reported cache usage that contradicts a profile.

``CacheProfile`` has the documented rules of a provider's cache, and ``CacheSimulation`` predicts what it serves;
``PerfectCache`` serves every text ever sent. Prefixes are measured in tokens, but the point where two requests differ
is found by comparing bytes. A cache either serves every prefix that was sent, or, if its profile has breakpoints, only
prefixes that end where an earlier request had a breakpoint.

``find_profile_contradictions`` compares a profile with reported usage. It uses only requests whose prefix did not change. One miss
proves nothing, since caches may drop entries at any time; two misses on the same side of every hit do.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget import (
    Tokenizer,
    can_be_counted_separately,
    count_messages_tokens,
    count_pieces_tokens,
    count_tools_tokens,
)
from lamella.core.log.call import CacheUsage
from lamella.core.messages import Message, Role, count_common_prefix
from lamella.core.values import replace

# How many earlier requests to remember. A request that no later one contains as a prefix can still be hit.
_MAX_REMEMBERED_REQUESTS = 64
_COMPARE_CHARS = 4_096
# Longer than any token of the vocabularies in use, so that a token cut off at the end of the window is never compared.
_LOOKAHEAD = 512


# The parts of a request, in the order in which caches process them.
_REQUEST_PARTS = ("tools", "system", "messages")
# The position at which two requests begin to differ: the number of equal messages, of equal pieces in the next
# one, and of equal characters in the next piece. Tuples compare so that the larger one shares more.
DivergencePoint = tuple[int, int, int]
NO_COMMON_PREFIX: DivergencePoint = (0, 0, 0)
# The end of a prefix: a number of messages, and of pieces of the next one. (0, 0) is the end of the tool definitions.
PrefixEnd = tuple[int, int]


class CacheProfile(Struct, frozen=True, kw_only=True):
    """Documented behaviour of a provider's prefix cache.

    Attributes:
        minimum: Shortest prefix in tokens that is cached.
        granularity: Cached prefixes are multiples of this many tokens.
        lifetime: Seconds until an entry expires; None for no expiry.
        bills_writes: Whether writing to the cache has a price of its own.
        invalidates: Pairs of a change and the first part (tools, system, messages) whose cache it invalidates. Changes
            without changed bytes are ``effort``, and whether there are ``images`` at all.
        read: Price of a cached token as a factor of plain input.
        write: Price of a written token as a factor of plain input.
        marks: Breakpoints per request; such a cache keeps only what a breakpoint marks. 0 if it keeps every prefix.
        lookback: How many blocks before a breakpoint the cache searches; None for no limit.
        longer: Another lifetime in seconds and the price of writing with it; None if there is none.
    """

    name: str
    minimum: int = 0
    granularity: int = 1
    lifetime: int | None = None
    bills_writes: bool = False
    invalidates: tuple[tuple[str, str], ...] = ()
    read: float = 0.1
    write: float = 1.0
    marks: int = 0
    lookback: int | None = None
    longer: tuple[float, float] | None = None


GENERIC_PROFILE = CacheProfile(name="generic")


class BreakpointCandidates(Struct, frozen=True, kw_only=True, gc=False):
    """The prefixes of a request after which a breakpoint is worth most, in the order of their worth.

    - ``requested``: those that the layout plan asks for; they always get one.
    - ``tail``, ``previous_tail``: the end of what the next request repeats, and the same end of the request before. The
      latter needs a breakpoint only if the search back from the tail does not reach it.
    - ``sections``: the ends of the system message, of its most stable part, and of the tool definitions.
    """

    requested: tuple[PrefixEnd, ...] = ()
    tail: PrefixEnd | None = None
    previous_tail: PrefixEnd | None = None
    sections: tuple[PrefixEnd, ...] = ()


class CacheRequest(Struct, frozen=True, kw_only=True, gc=False):
    """The properties of a request that a cache depends on.

    ``breakpoints`` matter only to caches that keep nothing but what a breakpoint marks. ``entries`` are the prefixes
    that such a cache has of this request once it was sent.
    """

    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    total: int
    at: datetime | None
    effort: str
    has_images: bool
    breakpoints: BreakpointCandidates = BreakpointCandidates()
    entries: tuple[PrefixEnd, ...] = ()


class CacheSimulation(Struct, frozen=True, kw_only=True, gc=False):
    """A simulated cache: the requests of a conversation that can still be hit.

    Each is stored with the point where it differs from the newest one. ``serve`` returns a new value.
    """

    requests: tuple[tuple[CacheRequest, DivergencePoint], ...] = ()

    def simulate_request(
        self, request: CacheRequest, *, profile: CacheProfile, tokenizer: Tokenizer
    ) -> tuple[CacheUsage, "CacheSimulation"]:
        """Return what the cache serves of a request, and the cache afterwards."""
        # Compare before dropping expired requests: the stored forks refer to the newest request, expired or not.
        forks = _find_divergence_points(self.requests, request, profile)
        if profile.lifetime is not None and request.at is not None:
            forks = [pair for pair in forks if not _is_expired(pair[1], request.at, profile.lifetime)]
        if profile.marks:
            usage, request = _simulate_cache_with_breakpoints(forks, request, profile, tokenizer)
        else:
            _, best_entry = max(forks, key=lambda pair: pair[0], default=(NO_COMMON_PREFIX, None))
            shared = count_shared_prefix_tokens(best_entry, request, tokenizer, profile=profile) if best_entry else 0
            usage = split_by_price_class(shared, request.total, profile)
        # A request that the new one contains as a prefix cannot serve more than the new one, unless a later request is
        # cut before the entries of the new one.
        kept = [(one, fork) for fork, one in forks if profile.marks or fork[0] < len(one.messages)]
        remembered = (*kept[-_MAX_REMEMBERED_REQUESTS + 1 :], (request, NO_COMMON_PREFIX))
        return usage, CacheSimulation(requests=remembered)


def _simulate_cache_with_breakpoints(
    forks: Sequence[tuple[DivergencePoint, CacheRequest]],
    request: CacheRequest,
    profile: CacheProfile,
    tokenizer: Tokenizer,
) -> tuple[CacheUsage, CacheRequest]:
    """Return what a cache with breakpoints serves, and the request with the entries that it leaves there."""
    breakpoints = choose_breakpoints(request, profile, tokenizer)
    # If the model or the tools differ, nothing is shared, not even the tool definitions.
    same = [(fork, one) for fork, one in forks if one.model == request.model and one.tools == request.tools]
    known = {end for fork, one in same for end in _cached_prefixes(one, profile, tokenizer) if (*end, 0) <= fork}
    found = max((end for end in known if _is_reached_by_lookback(request, end, breakpoints, profile)), default=None)
    read = 0 if found is None else count_prefix_tokens(request, found, tokenizer)
    last = count_prefix_tokens(request, breakpoints[-1], tokenizer) if breakpoints else 0
    entries = breakpoints if found is None or found in breakpoints else tuple(sorted((*breakpoints, found)))
    usage = split_by_price_class(read, request.total, profile)
    left = max(0, min(usage.write, last - usage.read))
    usage = replace(usage, write=left, uncached=usage.uncached + usage.write - left)
    return usage, replace(request, entries=entries)


def _cached_prefixes(request: CacheRequest, profile: CacheProfile, tokenizer: Tokenizer) -> Sequence[PrefixEnd]:
    """Return the prefixes of an earlier request that have an entry.

    A request that was sent before the conversation was opened has none recorded. It left those at its breakpoints, and
    it renewed that of the request before it.
    """
    if request.entries:
        return request.entries
    chosen, previous = choose_breakpoints(request, profile, tokenizer), request.breakpoints.previous_tail
    return (*chosen, previous) if chosen and previous else chosen


def choose_breakpoints(request: CacheRequest, profile: CacheProfile, tokenizer: Tokenizer) -> tuple[PrefixEnd, ...]:
    """Return the ends of the prefixes after which a request gets a breakpoint, shortest first.

    A prefix below the cache minimum gets none.
    """
    wanted, tail, previous = request.breakpoints, request.breakpoints.tail, request.breakpoints.previous_tail
    if tail and previous and _is_reached_by_lookback(request, previous, (tail,), profile):
        previous = None
    ends = dict.fromkeys((*wanted.requested, tail, previous, *wanted.sections))
    long_enough = (
        end for end in ends if end is not None and count_prefix_tokens(request, end, tokenizer) >= profile.minimum
    )
    return tuple(sorted(list(long_enough)[: profile.marks]))


def _is_reached_by_lookback(
    request: CacheRequest, end: PrefixEnd, breakpoints: Iterable[PrefixEnd], profile: CacheProfile
) -> bool:
    """Return whether the search back from one of the breakpoints reaches the end of a prefix."""
    behind = [one for one in breakpoints if one >= end]
    if not behind or profile.lookback is None:
        return bool(behind)
    return _count_blocks_between(request, end, min(behind), limit=profile.lookback) < profile.lookback


def _count_blocks_between(request: CacheRequest, start: PrefixEnd, end: PrefixEnd, *, limit: int) -> int:
    """Return how many blocks are between the ends of two prefixes; counting stops at the limit.

    Each tool, each piece of the system message, each text, image and tool call is a block.
    """
    (at, piece), (last, last_piece) = start, end
    if at == last:
        return last_piece - piece
    blocks = -piece
    while at < last and blocks < limit:
        message = request.messages[at]
        is_system = message.role is Role.SYSTEM
        blocks += len(message.pieces) if is_system else 1 + len(message.images) + len(message.calls)
        at += 1
    return blocks + (last_piece if at == last else 0)


def count_prefix_tokens(request: CacheRequest, end: PrefixEnd, tokenizer: Tokenizer) -> int:
    """Return the tokens of a prefix, with the tool definitions."""
    messages, pieces = end
    if messages == len(request.messages):
        return request.total
    if 2 * messages > len(request.messages):
        # Most prefixes that matter end near the end of a long request: count what is left instead.
        rest = count_messages_tokens(request.messages[messages:], tokenizer)
        tokens = request.total - tokenizer.tokens_per_request - rest
    else:
        tokens = count_messages_tokens(request.messages[:messages], tokenizer)
        tokens += count_tools_tokens(request.tools, tokenizer.count) if request.tools else 0
    if not pieces:
        return tokens
    message = request.messages[messages]
    counts = message.piece_token_counts
    known = len(counts) == len(message.pieces)
    return tokens + (sum(counts[:pieces]) if known else count_pieces_tokens(message.pieces[:pieces], tokenizer.count))


def _find_divergence_points(
    remembered: Sequence[tuple[CacheRequest, DivergencePoint]], now: CacheRequest, profile: CacheProfile
) -> list[tuple[DivergencePoint, CacheRequest]]:
    """Return where each remembered request differs from this one, oldest first.

    If A and B differ earlier than B and C do, then A and C differ where A and B do. So only the newest request is
    compared byte for byte; the others were compared with it before, and only a tie needs a comparison.
    """
    if not remembered:
        return []
    newest, _ = remembered[-1]
    latest = _find_divergence_point(newest, now, profile)
    forks: list[tuple[DivergencePoint, CacheRequest]] = []
    for one, fork in remembered[:-1]:
        forks.append((min(fork, latest) if fork != latest else _find_divergence_point(one, now, profile), one))
    return [*forks, (latest, newest)]


def count_shared_prefix_tokens(
    before: CacheRequest, now: CacheRequest, tokenizer: Tokenizer, *, profile: CacheProfile = GENERIC_PROFILE
) -> int:
    """Return the tokens of the common prefix; 0 if the model or the tools differ.

    Parts that the profile invalidates by a change without changed bytes do not count.
    """
    valid_count = _count_valid_messages(before, now, profile)
    if before.model != now.model or before.tools != now.tools or valid_count == 0:
        return 0
    shared = count_common_message_tokens(before.messages[:valid_count], now.messages[:valid_count], tokenizer)
    if shared and now.tools:
        shared += count_tools_tokens(now.tools, tokenizer.count)
    return min(shared, now.total)


def split_by_price_class(shared: int, total: int, profile: CacheProfile) -> CacheUsage:
    """Split a request's tokens by price class, given how many a valid cache entry shares."""
    read = shared - shared % profile.granularity
    if read < max(profile.minimum, 1):
        read = 0
    rest = total - read
    if profile.bills_writes and total >= profile.minimum:
        return CacheUsage(read=read, write=rest, uncached=0)
    return CacheUsage(read=read, write=0, uncached=rest)


def _is_expired(earlier: CacheRequest, now: datetime, lifetime: int) -> bool:
    return earlier.at is not None and (now - earlier.at).total_seconds() > lifetime


def _find_divergence_point(earlier: CacheRequest, now: CacheRequest, profile: CacheProfile) -> DivergencePoint:
    """Return where two requests differ, by bytes or by a change that invalidates the cache."""
    if earlier.model != now.model or earlier.tools != now.tools:
        return NO_COMMON_PREFIX
    fork = common_prefix_end(earlier.messages, now.messages)
    valid_count = _count_valid_messages(earlier, now, profile) if profile.invalidates else None
    return fork if valid_count is None else min(fork, (valid_count, 0, 0))


def find_cache_reset(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> tuple[str, str] | None:
    """Return the change without changed bytes that invalidates the cache, and the first part it affects.

    None if there is no such change. If there are several, the one that affects the earliest part counts.
    """
    changes = dict(profile.invalidates)
    changed = {
        "effort": "effort" in changes and before.effort != now.effort,
        "images": "images" in changes and before.has_images != now.has_images,
    }
    reset_fields = [(name, changes[name]) for name, differs in changed.items() if differs]
    return min(reset_fields, key=lambda one: _REQUEST_PARTS.index(one[1]), default=None)


def _count_valid_messages(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> int | None:
    """Return how many messages stay valid in spite of such a change; None if there is no such change."""
    cooled = find_cache_reset(before, now, profile)
    if cooled is None:
        return None
    return int(cooled[1] == _REQUEST_PARTS[-1] and bool(now.messages) and now.messages[0].role is Role.SYSTEM)


class PerfectCache(Struct, frozen=True, kw_only=True, gc=False):
    """A cache that serves every piece of text ever sent, at any position and without expiry.

    ``levels`` have the tokens of each piece as the tokenizer with this name counts them. Each level is at least twice
    as large as the next one, so that a request copies only a little of them.
    """

    levels: tuple[Mapping[str, int], ...] = ()
    tokenizer_name: str = ""

    def simulate_request(
        self, messages: Iterable[Message], usage: CacheUsage, *, profile: CacheProfile, tokenizer: Tokenizer
    ) -> tuple[CacheUsage, "PerfectCache"]:
        """Return the lowest cost of the same text in any arrangement, and the cache afterwards.

        Known text is read, the rest is plain input. ``usage`` is what the real cache served; a perfect one serves at
        least as much, including message overhead.
        """
        # A message with a single piece has its token count already.
        pieces = [
            (piece, message.tokens if len(message.pieces) == 1 else None)
            for message in messages
            for piece in message.pieces
        ]
        token_counts = dict(pieces)
        repeated = Counter([piece for piece, _ in pieces]) if len(token_counts) < len(pieces) else Counter[str]()
        levels = self.levels
        if levels and self.tokenizer_name != tokenizer.name:
            # The counts of two tokenizers do not add up: after a change of model, count every piece again.
            levels = ({piece: tokenizer.count(piece) for level in levels for piece in level},)
        # A request has thousands of pieces, and set operations look at them without a loop.
        left, known = set(token_counts), 0
        for level in levels:
            hits = level.keys() & left
            known += sum(map(level.__getitem__, hits))
            # A question may be asked twice in the same words. Then the request has the text twice, and pays for both.
            known += sum([level[piece] * (repeated[piece] - 1) for piece in hits.intersection(repeated)])
            left -= hits
        # In the order of the request, so that equal requests give equal caches.
        counts = [(piece, token_counts[piece]) for piece in token_counts if piece in left] if left else []
        new = {piece: tokenizer.count(piece) if tokens is None else tokens for piece, tokens in counts}
        ideal = replace(profile, minimum=0, granularity=1, bills_writes=False)
        total = usage.read + usage.write + usage.uncached
        served = split_by_price_class(min(max(known, usage.read), total), total, ideal)
        return served, PerfectCache(levels=_merge_into_levels(levels, new), tokenizer_name=tokenizer.name)


def _merge_into_levels(levels: tuple[Mapping[str, int], ...], new: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
    """Return the levels with new pieces, merged until each is at least twice as large as the next one."""
    if not new:
        return levels
    grown = [*levels, new]
    while len(grown) > 1 and len(grown[-2]) < 2 * len(grown[-1]):
        last = grown.pop()
        grown[-1] = {**grown[-1], **last}
    return tuple(grown)


def common_prefix_end(before: Sequence[Message], now: Sequence[Message]) -> DivergencePoint:
    """Return where two requests begin to differ; a larger result shares more tokens."""
    same = count_common_prefix(before, now)
    for index, (old, new) in enumerate(zip(before[same:], now[same:], strict=False), start=same):
        if not old.has_same_content(new):
            if old.role != new.role:
                return (index, 0, 0)
            shared = count_common_prefix(old.pieces, new.pieces)
            rest = _count_common_characters(
                "".join(old.pieces[shared : shared + 1]), "".join(new.pieces[shared : shared + 1])
            )
            return (index, shared, rest)
    return (min(len(before), len(now)), 0, 0)


def count_common_message_tokens(before: Sequence[Message], now: Sequence[Message], tokenizer: Tokenizer) -> int:
    """Return how many tokens two requests share from the start."""
    same = count_common_prefix(before, now)
    total = count_messages_tokens(before[:same], tokenizer)
    for old, new in zip(before[same:], now[same:], strict=False):
        if not old.has_same_content(new):
            return total + (_common_tokens_in_message(old, new, tokenizer) if old.role == new.role else 0)
        total += count_messages_tokens((old,), tokenizer)
    return total


def _common_tokens_in_message(old: Message, new: Message, tokenizer: Tokenizer) -> int:
    shared = count_common_prefix(old.pieces, new.pieces)
    # Go back to a piece boundary at which both texts split into the same tokens.
    while shared and not (_ends_at_token_boundary(old.pieces, shared) and _ends_at_token_boundary(new.pieces, shared)):
        shared -= 1
    is_counted = len(old.piece_token_counts) == len(old.pieces)
    known = (
        sum(old.piece_token_counts[:shared])
        if is_counted
        else count_pieces_tokens(old.pieces[:shared], tokenizer.count)
    )
    return known + _common_tokens_in_text("".join(old.pieces[shared:]), "".join(new.pieces[shared:]), tokenizer)


def _ends_at_token_boundary(pieces: Sequence[str], at: int) -> bool:
    return at >= len(pieces) or can_be_counted_separately(pieces[at - 1], pieces[at])


def _common_tokens_in_text(old: str, new: str, tokenizer: Tokenizer) -> int:
    same = _count_common_characters(old, new)
    clean = _find_last_token_boundary(old, same)
    common_count = tokenizer.count(old[:clean])
    tail_old = tokenizer.encode(old[clean : same + _LOOKAHEAD])
    tail_new = tokenizer.encode(new[clean : same + _LOOKAHEAD])
    return common_count + int(_common_prefix_length(tail_old, tail_new) * tokenizer.count_factor)


def _common_prefix_length(old: Sequence[int], new: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))


def _count_common_characters(old: str, new: str) -> int:
    limit = min(len(old), len(new))
    at = 0
    # Compare slices first, which is fast, and single characters only in the slice that differs.
    while at < limit and old[at : at + _COMPARE_CHARS] == new[at : at + _COMPARE_CHARS]:
        at += _COMPARE_CHARS
    at = min(at, limit)
    while at < limit and old[at] == new[at]:
        at += 1
    return at


def _find_last_token_boundary(text: str, before: int) -> int:
    """Return the last index up to ``before`` at which a cut does not change how either side is tokenized."""
    at = text.rfind("\n", 0, max(0, before - 1))
    while at > 0 and not can_be_counted_separately(text[at], text[at + 1 : at + 2]):
        at = text.rfind("\n", 0, at)
    return at + 1 if at > 0 else 0


# Contradictions between reported usage and a profile.

# Token counts of models without a public vocabulary are estimates. Smaller differences than this prove nothing.
_TOLERANCE = 0.05
_MIN_MISSES = 2
_MIN_EQUAL_COUNTS = 3
_GROWTH_FACTOR = 2


class CacheObservation(NamedTuple):
    """A request with an unchanged prefix: its turn, its tokens, the cached ones, and those of the one before.

    ``pause`` is the number of seconds between the two requests; None if it is not known to the second.
    """

    turn: int
    prompt_tokens: int
    cached_tokens: int
    previous_prompt_tokens: int
    pause: float | None


class ProfileContradiction(NamedTuple):
    """A contradiction: the turns, a description, and the facts that would fit, named as in a facts file."""

    turns: tuple[int, ...]
    description: str
    facts: tuple[tuple[str, int | bool], ...]


def find_profile_contradictions(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> list[ProfileContradiction]:
    """Return the contradictions between requests and a profile, at most one of each kind.

    The result is empty if the profile says that there is no cache.
    """
    if profile.read >= profile.write:
        return []
    constant = _check_constant_count(observations, profile)
    if constant is not None:
        return [constant]
    floor = _check_minimum_too_high(observations, profile) or _check_minimum_too_low(observations, profile)
    lifetime = _check_lifetime_too_short(observations, profile) or (
        None if floor else _check_lifetime_too_long(observations, profile)
    )
    return [one for one in (floor, lifetime) if one is not None]


def _check_constant_count(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check for the same cached count in several requests although each sent more than the one before."""
    for at in range(len(observations) - _MIN_EQUAL_COUNTS, -1, -1):
        run = observations[at : at + _MIN_EQUAL_COUNTS]
        grows = all(one.prompt_tokens < other.prompt_tokens for one, other in pairwise(run))
        short = all(
            one.previous_prompt_tokens * (1 - _TOLERANCE) - one.cached_tokens > profile.granularity for one in run
        )
        if run[0].cached_tokens > 0 and grows and short and len({one.cached_tokens for one in run}) == 1:
            cached_tokens = run[0].cached_tokens
            problem = f"{cached_tokens:,} tokens came from the cache each time, while requests grew to {run[-1].prompt_tokens:,}"
            # A granularity of this size explains the count as long as no second step would have fit.
            stepped = run[-1].previous_prompt_tokens < _GROWTH_FACTOR * cached_tokens
            facts = (("granularity", cached_tokens),) if stepped else (("implicit", False), ("breakpoints", 0))
            return ProfileContradiction(_turn_numbers(run), problem, facts)
    return None


def _check_minimum_too_high(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check for cached prefixes that are shorter than the profile's minimum."""
    below = [one for one in observations if 0 < one.cached_tokens < profile.minimum]
    if not below:
        return None
    least = min(one.cached_tokens for one in below)
    problem = f"{least:,} tokens came from the cache, which should keep nothing below {profile.minimum:,}"
    return ProfileContradiction(_turn_numbers(below), problem, (("minimum", least),))


def _check_minimum_too_low(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check whether short prefixes were never cached and all longer ones were."""
    misses, hits = _list_misses(observations, profile), [one for one in observations if one.cached_tokens]
    if len(misses) < _MIN_MISSES or not hits:
        return None
    longest, least = max(one.previous_prompt_tokens for one in misses), min(one.cached_tokens for one in hits)
    if longest >= least:
        return None
    problem = (
        f"nothing of up to {longest:,} tokens came from the cache, which should keep {max(profile.minimum, 1):,}; "
        f"{least:,} did"
    )
    return ProfileContradiction(_turn_numbers(misses), problem, (("minimum", least),))


def _check_lifetime_too_short(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check for full hits after a pause longer than the profile's lifetime."""
    if profile.lifetime is None:
        return None
    lasts = max(profile.lifetime, profile.longer[0] if profile.longer else 0)
    late = [one for one in observations if one.pause is not None and one.pause > lasts and _is_full_hit(one, profile)]
    if not late:
        return None
    longest = ceil(max(one.pause or 0 for one in late))
    problem = f"the cache still had all of it after {longest:,} s, and should keep it for {lasts:,.0f} s"
    return ProfileContradiction(_turn_numbers(late), problem, (("lifetime", longest),))


def _check_lifetime_too_long(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check whether entries expired after pauses within the profile's lifetime, but not after shorter ones."""
    if profile.lifetime is None:
        return None
    misses = [one for one in _list_misses(observations, profile) if one.pause is not None]
    served = [one.pause for one in observations if one.cached_tokens and one.pause is not None]
    if len(misses) < _MIN_MISSES or not served:
        return None
    longest, shortest_miss = max(served), min(one.pause or 0 for one in misses)
    if shortest_miss <= longest:
        return None
    problem = (
        f"nothing was left in the cache after {shortest_miss:,.0f} s, and it should keep it for {profile.lifetime:,} s; "
        f"after {longest:,.0f} s it was there"
    )
    return ProfileContradiction(_turn_numbers(misses), problem, (("lifetime", max(1, int(longest))),))


def _list_misses(observations: Sequence[CacheObservation], profile: CacheProfile) -> list[CacheObservation]:
    """List the requests that got nothing from the cache although the profile predicts a hit."""
    lasts = profile.lifetime
    return [
        one
        for one in observations
        if not one.cached_tokens
        and one.previous_prompt_tokens - one.previous_prompt_tokens % profile.granularity >= max(profile.minimum, 1)
        and (lasts is None or (one.pause is not None and one.pause <= lasts))
    ]


def _is_full_hit(one: CacheObservation, profile: CacheProfile) -> bool:
    return (
        one.cached_tokens > 0
        and one.cached_tokens >= one.previous_prompt_tokens * (1 - _TOLERANCE) - profile.granularity
    )


def _turn_numbers(observations: Sequence[CacheObservation]) -> tuple[int, ...]:
    return tuple(one.turn for one in observations)
