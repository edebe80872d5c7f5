"""What is known of a model beyond its cache's arithmetic: window, price factors, breakpoints, where usage stands."""

from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from lamella.core.ledger.cache import GENERIC_PROFILE, CacheProfile


class LifetimeClock(StrEnum):
    """From when on a cache entry's lifetime runs."""

    REQUEST_START = "request_start"
    LAST_USE = "last_use"
    CREATION = "creation"


class Lifetime(Struct, frozen=True, kw_only=True):
    """A lifetime that can be asked for, and what writing with it costs as a factor of plain input; none if unknown."""

    name: str
    seconds: int
    write: Decimal | None


class UsageFields(Struct, frozen=True, kw_only=True):
    """Where a provider reports usage, as dotted paths; ``includes_cached`` says what its input count means."""

    input: str
    output: str
    includes_cached: bool
    read: str | None = None
    write: str | None = None


class ModelProfile(Struct, frozen=True, kw_only=True):
    """Dated facts about a model. None is unknown; ``read`` is a factor of plain input.

    ``lifetimes`` go from the shortest to the longest. ``breakpoints`` is how many marks a request may carry, and
    ``lookback`` how many blocks up to a mark are searched for an entry. A ``keyed`` cache takes a conversation's name.
    One that ``caches_replies`` serves what the model itself said as well, without its being sent once before.
    ``order`` is that of the prefix.
    ``cached_content`` says whether caches can be made as objects of their own, and ``storage`` what keeping them costs,
    in dollars per million tokens and hour. A model that ``sees`` takes pictures. ``reserve`` and the shares are how the
    window is used with it, where somebody says so.
    """

    cache: CacheProfile = GENERIC_PROFILE
    provider: str = "generic"
    as_of: str = ""
    window: int | None = None
    read: Decimal | None = None
    lifetimes: tuple[Lifetime, ...] = ()
    clock: LifetimeClock | None = None
    implicit: bool = True
    breakpoints: int = 0
    lookback: int | None = None
    keyed: bool = False
    caches_replies: bool = False
    order: tuple[str, ...] = ("tools", "system", "messages")
    usage: UsageFields | None = None
    diagnostics: bool = False
    cached_content: bool = False
    storage: Decimal | None = None
    sees: bool | None = None
    reserve: int | None = None
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None


GENERIC_MODEL = ModelProfile()


def choose_lifetime(pause: float | None, lifetimes: tuple[Lifetime, ...]) -> Lifetime | None:
    """The shortest lifetime that outlasts a pause; where none does, or the pause is unknown, the cheapest to write.

    A lifetime of which nobody knows the price is not chosen.
    """
    priced = [lifetime for lifetime in lifetimes if lifetime.write is not None]
    lasting = (lifetime for lifetime in priced if pause is not None and lifetime.seconds > pause)
    return next(lasting, priced[0] if priced else None)
