"""Simulate prefix caches, and detect reported cache usage that contradicts a profile.

``CacheProfile`` has the documented rules of a provider's cache, and ``CacheSimulation`` predicts what it serves;
``PerfectCache`` serves every text ever sent. Prefixes are measured in tokens, but the point where two requests differ
is found by comparing bytes.

``check_profile`` compares a profile with reported usage. It uses only requests whose prefix did not change. One miss
proves nothing, since caches may drop entries at any time; two misses on the same side of every hit do.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget import (
    Tokenizer,
    count_messages_tokens,
    count_pieces_tokens,
    count_tools_tokens,
    tokenizes_separately,
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
# Where two requests begin to differ: the number of equal messages, of equal pieces in the next one, and of equal
# characters in the next piece. Tuples compare so that the larger one shares more.
DivergencePoint = tuple[int, int, int]
NO_COMMON_PREFIX: DivergencePoint = (0, 0, 0)


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


class CacheRequest(Struct, frozen=True, kw_only=True, gc=False):
    """The properties of a request that a cache depends on."""

    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    total: int
    at: datetime | None
    effort: str
    has_images: bool


class CacheSimulation(Struct, frozen=True, kw_only=True, gc=False):
    """A simulated cache: the requests of a conversation that can still be hit.

    Each is stored with the point where it differs from the newest one. ``serve`` returns a new value.
    """

    requests: tuple[tuple[CacheRequest, DivergencePoint], ...] = ()

    def serve(
        self, request: CacheRequest, *, profile: CacheProfile, tokenizer: Tokenizer
    ) -> tuple[CacheUsage, "CacheSimulation"]:
        """Return what the cache serves of a request, and the cache afterwards."""
        # Compare before dropping expired requests: the stored forks refer to the newest request, expired or not.
        forks = _divergence_points(self.requests, request, profile)
        if profile.lifetime is not None and request.at is not None:
            forks = [pair for pair in forks if not _is_expired(pair[1], request.at, profile.lifetime)]
        _, nearest = max(forks, key=lambda pair: pair[0], default=(NO_COMMON_PREFIX, None))
        shared = shared_tokens(nearest, request, tokenizer, profile=profile) if nearest else 0
        # A request that the new one contains as a prefix cannot serve more than the new one.
        kept = [(one, fork) for fork, one in forks if fork[0] < len(one.messages)]
        remembered = (*kept[-_MAX_REMEMBERED_REQUESTS + 1 :], (request, NO_COMMON_PREFIX))
        return split_by_price_class(shared, request.total, profile), CacheSimulation(requests=remembered)


def _divergence_points(
    remembered: Sequence[tuple[CacheRequest, DivergencePoint]], now: CacheRequest, profile: CacheProfile
) -> list[tuple[DivergencePoint, CacheRequest]]:
    """Return where each remembered request differs from this one, oldest first.

    If A and B differ earlier than B and C do, then A and C differ where A and B do. So only the newest request is
    compared byte for byte; the others were compared with it before, and only a tie needs a comparison.
    """
    if not remembered:
        return []
    newest, _ = remembered[-1]
    latest = _divergence_point(newest, now, profile)
    forks: list[tuple[DivergencePoint, CacheRequest]] = []
    for one, fork in remembered[:-1]:
        forks.append((min(fork, latest) if fork != latest else _divergence_point(one, now, profile), one))
    return [*forks, (latest, newest)]


def shared_tokens(
    before: CacheRequest, now: CacheRequest, tokenizer: Tokenizer, *, profile: CacheProfile = GENERIC_PROFILE
) -> int:
    """Return the tokens of the common prefix; 0 if the model or the tools differ.

    Parts that the profile invalidates by a change without changed bytes do not count.
    """
    warm = _count_valid_messages(before, now, profile)
    if before.model != now.model or before.tools != now.tools or warm == 0:
        return 0
    shared = common_tokens(before.messages[:warm], now.messages[:warm], tokenizer)
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


def _divergence_point(earlier: CacheRequest, now: CacheRequest, profile: CacheProfile) -> DivergencePoint:
    """Return where two requests differ, by bytes or by a change that invalidates the cache."""
    if earlier.model != now.model or earlier.tools != now.tools:
        return NO_COMMON_PREFIX
    fork = common_prefix_end(earlier.messages, now.messages)
    warm = _count_valid_messages(earlier, now, profile) if profile.invalidates else None
    return fork if warm is None else min(fork, (warm, 0, 0))


def cache_reset_reason(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> tuple[str, str] | None:
    """Return the change without changed bytes that invalidates the cache, and the first part it affects.

    None if there is no such change. If there are several, the one that affects the earliest part counts.
    """
    changes = dict(profile.invalidates)
    changed = {
        "effort": "effort" in changes and before.effort != now.effort,
        "images": "images" in changes and before.has_images != now.has_images,
    }
    cold = [(name, changes[name]) for name, differs in changed.items() if differs]
    return min(cold, key=lambda one: _REQUEST_PARTS.index(one[1]), default=None)


def _count_valid_messages(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> int | None:
    """Return how many messages stay valid in spite of such a change; None if there is no such change."""
    cooled = cache_reset_reason(before, now, profile)
    if cooled is None:
        return None
    return int(cooled[1] == _REQUEST_PARTS[-1] and bool(now.messages) and now.messages[0].role is Role.SYSTEM)


class PerfectCache(Struct, frozen=True, kw_only=True, gc=False):
    """A cache that serves every piece of text ever sent, at any position and without expiry."""

    seen: Mapping[str, int] = {}

    def serve(
        self, messages: Iterable[Message], usage: CacheUsage, *, profile: CacheProfile, tokenizer: Tokenizer
    ) -> tuple[CacheUsage, "PerfectCache"]:
        """Return the lowest cost of the same text in any arrangement, and the cache afterwards.

        Known text is read, the rest is plain input. ``usage`` is what the real cache served; a perfect one serves at
        least as much, including message overhead.
        """
        # A message with a single piece has its token count already.
        weighed = {
            piece: message.tokens if len(message.pieces) == 1 else None
            for message in messages
            for piece in message.pieces
        }
        seen = self.seen
        new = {
            piece: tokenizer.count(piece) if tokens is None else tokens
            for piece, tokens in weighed.items()
            if piece not in seen
        }
        known = sum([seen[piece] for piece in weighed if piece in seen])
        ideal = replace(profile, minimum=0, granularity=1, bills_writes=False)
        total = usage.read + usage.write + usage.uncached
        served = split_by_price_class(min(max(known, usage.read), total), total, ideal)
        return served, PerfectCache(seen={**seen, **new})


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


def common_tokens(before: Sequence[Message], now: Sequence[Message], tokenizer: Tokenizer) -> int:
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
    weighed = len(old.piece_token_counts) == len(old.pieces)
    known = (
        sum(old.piece_token_counts[:shared]) if weighed else count_pieces_tokens(old.pieces[:shared], tokenizer.count)
    )
    return known + _common_tokens_in_text("".join(old.pieces[shared:]), "".join(new.pieces[shared:]), tokenizer)


def _ends_at_token_boundary(pieces: Sequence[str], at: int) -> bool:
    return at >= len(pieces) or tokenizes_separately(pieces[at - 1], pieces[at])


def _common_tokens_in_text(old: str, new: str, tokenizer: Tokenizer) -> int:
    same = _count_common_characters(old, new)
    clean = _last_clean_break(old, same)
    sure = tokenizer.count(old[:clean])
    tail_old = tokenizer.encode(old[clean : same + _LOOKAHEAD])
    tail_new = tokenizer.encode(new[clean : same + _LOOKAHEAD])
    return sure + int(_common_prefix_length(tail_old, tail_new) * tokenizer.count_factor)


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


def _last_clean_break(text: str, before: int) -> int:
    """Return the last index up to ``before`` at which a cut does not change how either side is tokenized."""
    at = text.rfind("\n", 0, max(0, before - 1))
    while at > 0 and not tokenizes_separately(text[at], text[at + 1 : at + 2]):
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


def check_profile(observations: Sequence[CacheObservation], profile: CacheProfile) -> list[ProfileContradiction]:
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
            held = run[0].cached_tokens
            says = f"{held:,} tokens came from the cache each time, while requests grew to {run[-1].prompt_tokens:,}"
            # A granularity of this size explains the count as long as no second step would have fit.
            stepped = run[-1].previous_prompt_tokens < _GROWTH_FACTOR * held
            facts = (("granularity", held),) if stepped else (("implicit", False), ("breakpoints", 0))
            return ProfileContradiction(_turn_numbers(run), says, facts)
    return None


def _check_minimum_too_high(
    observations: Sequence[CacheObservation], profile: CacheProfile
) -> ProfileContradiction | None:
    """Check for cached prefixes that are shorter than the profile's minimum."""
    below = [one for one in observations if 0 < one.cached_tokens < profile.minimum]
    if not below:
        return None
    least = min(one.cached_tokens for one in below)
    says = f"{least:,} tokens came from the cache, which should keep nothing below {profile.minimum:,}"
    return ProfileContradiction(_turn_numbers(below), says, (("minimum", least),))


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
    says = (
        f"nothing of up to {longest:,} tokens came from the cache, which should keep {max(profile.minimum, 1):,}; "
        f"{least:,} did"
    )
    return ProfileContradiction(_turn_numbers(misses), says, (("minimum", least),))


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
    says = f"the cache still had all of it after {longest:,} s, and should keep it for {lasts:,.0f} s"
    return ProfileContradiction(_turn_numbers(late), says, (("lifetime", longest),))


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
    longest, gone = max(served), min(one.pause or 0 for one in misses)
    if gone <= longest:
        return None
    says = (
        f"nothing was left in the cache after {gone:,.0f} s, and it should keep it for {profile.lifetime:,} s; "
        f"after {longest:,.0f} s it was there"
    )
    return ProfileContradiction(_turn_numbers(misses), says, (("lifetime", max(1, int(longest))),))


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
