"""Caches: what a provider that keeps prefixes would have served by its documented rules, and what a perfect one would.

A prefix is measured in tokens; where two requests part is found by comparing them byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lamella.core.artifacts.model import ToolDefinition
from lamella.core.budget.counting import Measure, count_pieces, count_tools, meets_cleanly, weigh_messages
from lamella.core.log.call import CacheUse
from lamella.core.messages.model import Message, Role, count_shared
from lamella.core.values import replace

# A request that shares less than its whole with every later one can still be hit; past this many it is forgotten.
_REMEMBERED = 64
_STRIDE = 4_096
# Longer than any token of the vocabularies in use, so a token cut by the window's end is never compared.
_LOOKAHEAD = 512


# The parts of a request, in the order in which caches see them.
_PARTS = ("tools", "system", "messages")
# Where two requests part: after so many equal messages, so many equal pieces of the next one, so many characters.
Fork = tuple[int, int, int]
NO_FORK: Fork = (0, 0, 0)


class CacheProfile(Struct, frozen=True, kw_only=True):
    """What a provider's prefix cache does. ``lifetime`` in seconds, none for no expiry.

    Each of ``invalidates`` is a change and the first part that it makes cold, of tools, system and messages. What
    changes no byte is among them: ``effort``, and whether there are ``images`` at all. ``read`` and ``write`` are what
    a token costs as a factor of plain input. One with ``marks`` keeps only what was marked, so many times in a request,
    and looks at most ``lookback`` blocks back from a mark. ``longer`` is another lifetime and what writing costs then.
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
    """One request as a cache sees it."""

    model: str | None
    tools: tuple[ToolDefinition, ...]
    messages: tuple[Message, ...]
    total: int
    at: datetime | None
    effort: str
    has_images: bool


class CacheModel(Struct, frozen=True, kw_only=True, gc=False):
    """The requests of one conversation that can still be hit, each with where it parts from the newest of them.

    Answering gives a new model.
    """

    requests: tuple[tuple[CacheRequest, Fork], ...] = ()

    def answer(
        self, request: CacheRequest, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "CacheModel"]:
        """What the cache serves of a request, and the cache afterwards."""
        # Compared before they are forgotten: what is kept of the others is where they part from the newest of all.
        forks = _part(self.requests, request, profile)
        if profile.lifetime is not None and request.at is not None:
            forks = [pair for pair in forks if not _expired(pair[1], request.at, profile.lifetime)]
        _, nearest = max(forks, key=lambda pair: pair[0], default=(NO_FORK, None))
        shared = shared_tokens(nearest, request, measure, profile=profile) if nearest else 0
        # A request that the newer one starts with can serve nothing that the newer one cannot.
        kept = [(one, fork) for fork, one in forks if fork[0] < len(one.messages)]
        remembered = (*kept[-_REMEMBERED + 1 :], (request, NO_FORK))
        return split_use(shared, request.total, profile), CacheModel(requests=remembered)


def _part(
    held: Sequence[tuple[CacheRequest, Fork]], now: CacheRequest, profile: CacheProfile
) -> list[tuple[Fork, CacheRequest]]:
    """Where each request parts from this one, oldest first.

    Where two of three texts part earlier than the other two do, the third parts there as well. So only the newest is
    compared byte for byte; the others were compared with it before.
    """
    if not held:
        return []
    newest, _ = held[-1]
    latest = _fork(newest, now, profile)
    forks: list[tuple[Fork, CacheRequest]] = []
    for one, fork in held[:-1]:
        forks.append((min(fork, latest) if fork != latest else _fork(one, now, profile), one))
    return [*forks, (latest, newest)]


def shared_tokens(
    before: CacheRequest, now: CacheRequest, measure: Measure, *, profile: CacheProfile = GENERIC_PROFILE
) -> int:
    """The common prefix of two requests; another model or other tools share nothing.

    Nor does what the cache of a profile makes cold by a change that moves no byte.
    """
    warm = _count_warm(before, now, profile)
    if before.model != now.model or before.tools != now.tools or warm == 0:
        return 0
    shared = common_tokens(before.messages[:warm], now.messages[:warm], measure)
    if shared and now.tools:
        shared += count_tools(now.tools, measure.count)
    return min(shared, now.total)


def split_use(shared: int, total: int, profile: CacheProfile) -> CacheUse:
    """Tokens by price class, given how many of them a live entry shares."""
    read = shared - shared % profile.granularity
    if read < max(profile.minimum, 1):
        read = 0
    rest = total - read
    if profile.bills_writes and total >= profile.minimum:
        return CacheUse(read=read, write=rest, uncached=0)
    return CacheUse(read=read, write=0, uncached=rest)


def _expired(earlier: CacheRequest, now: datetime, lifetime: int) -> bool:
    return earlier.at is not None and (now - earlier.at).total_seconds() > lifetime


def _fork(earlier: CacheRequest, now: CacheRequest, profile: CacheProfile) -> Fork:
    if earlier.model != now.model or earlier.tools != now.tools:
        return NO_FORK
    fork = find_fork(earlier.messages, now.messages)
    warm = _count_warm(earlier, now, profile) if profile.invalidates else None
    return fork if warm is None else min(fork, (warm, 0, 0))


def find_cooled(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> tuple[str, str] | None:
    """What changed between two requests that moves no byte and makes a part of the cache cold, and that part."""
    changes = dict(profile.invalidates)
    changed = {
        "effort": "effort" in changes and before.effort != now.effort,
        "images": "images" in changes and before.has_images != now.has_images,
    }
    cold = [(name, changes[name]) for name, differs in changed.items() if differs]
    return min(cold, key=lambda one: _PARTS.index(one[1]), default=None)


def _count_warm(before: CacheRequest, now: CacheRequest, profile: CacheProfile) -> int | None:
    """How many messages stay warm whatever their bytes are; none if all may."""
    cooled = find_cooled(before, now, profile)
    if cooled is None:
        return None
    return int(cooled[1] == _PARTS[-1] and bool(now.messages) and now.messages[0].role is Role.SYSTEM)


class PerfectCache(Struct, frozen=True, kw_only=True, gc=False):
    """A cache that serves every piece of text ever sent, wherever it stood and however long ago."""

    seen: Mapping[str, int] = {}

    def answer(
        self, messages: Iterable[Message], use: CacheUse, *, profile: CacheProfile, measure: Measure
    ) -> tuple[CacheUse, "PerfectCache"]:
        """The least that any arrangement of the same text could cost: what is known is read, the rest is plain.

        ``use`` is what the real cache served of it; a perfect one serves no less, overhead of messages included.
        """
        # A message of one piece was weighed when it was made.
        weighed = {
            piece: message.tokens if len(message.pieces) == 1 else None
            for message in messages
            for piece in message.pieces
        }
        seen = self.seen
        new = {
            piece: measure.count(piece) if tokens is None else tokens
            for piece, tokens in weighed.items()
            if piece not in seen
        }
        known = sum([seen[piece] for piece in weighed if piece in seen])
        ideal = replace(profile, minimum=0, granularity=1, bills_writes=False)
        total = use.read + use.write + use.uncached
        served = split_use(min(max(known, use.read), total), total, ideal)
        return served, PerfectCache(seen={**seen, **new})


def find_fork(before: Sequence[Message], now: Sequence[Message]) -> Fork:
    """Where the newer request parts from the earlier; the later fork of two shares more tokens."""
    same = count_shared(before, now)
    for index, (old, new) in enumerate(zip(before[same:], now[same:], strict=False), start=same):
        if not old.extends_to(new):
            if old.role != new.role:
                return (index, 0, 0)
            shared = count_shared(old.pieces, new.pieces)
            rest = _common_characters(
                "".join(old.pieces[shared : shared + 1]), "".join(new.pieces[shared : shared + 1])
            )
            return (index, shared, rest)
    return (min(len(before), len(now)), 0, 0)


def common_tokens(before: Sequence[Message], now: Sequence[Message], measure: Measure) -> int:
    """How many tokens the two requests share from the start."""
    same = count_shared(before, now)
    total = weigh_messages(before[:same], measure)
    for old, new in zip(before[same:], now[same:], strict=False):
        if not old.extends_to(new):
            return total + (_common_in_message(old, new, measure) if old.role == new.role else 0)
        total += weigh_messages((old,), measure)
    return total


def _common_in_message(old: Message, new: Message, measure: Measure) -> int:
    shared = count_shared(old.pieces, new.pieces)
    while shared and not (_ends_apart(old.pieces, shared) and _ends_apart(new.pieces, shared)):
        shared -= 1
    weighed = len(old.weights) == len(old.pieces)
    known = sum(old.weights[:shared]) if weighed else count_pieces(old.pieces[:shared], measure.count)
    return known + _common_in_text("".join(old.pieces[shared:]), "".join(new.pieces[shared:]), measure)


def _ends_apart(pieces: Sequence[str], at: int) -> bool:
    return at >= len(pieces) or meets_cleanly(pieces[at - 1], pieces[at])


def _common_in_text(old: str, new: str, measure: Measure) -> int:
    same = _common_characters(old, new)
    clean = _last_clean_break(old, same)
    sure = measure.count(old[:clean])
    tail_old = measure.encode(old[clean : same + _LOOKAHEAD])
    tail_new = measure.encode(new[clean : same + _LOOKAHEAD])
    return sure + int(_common_start(tail_old, tail_new) * measure.factor)


def _common_start(old: Sequence[int], new: Sequence[int]) -> int:
    for index, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return index
    return min(len(old), len(new))


def _common_characters(old: str, new: str) -> int:
    limit = min(len(old), len(new))
    at = 0
    while at < limit and old[at : at + _STRIDE] == new[at : at + _STRIDE]:
        at += _STRIDE
    at = min(at, limit)
    while at < limit and old[at] == new[at]:
        at += 1
    return at


def _last_clean_break(text: str, before: int) -> int:
    """The last place at or before which the text can be cut without changing how either side tokenises."""
    at = text.rfind("\n", 0, max(0, before - 1))
    while at > 0 and not meets_cleanly(text[at], text[at + 1 : at + 2]):
        at = text.rfind("\n", 0, at)
    return at + 1 if at > 0 else 0
