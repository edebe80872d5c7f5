"""What is known of a model beyond its cache's arithmetic: window, price factors, breakpoints, where usage stands."""

from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from lamella.core.ledger.cache import GENERIC_PROFILE, CacheProfile
from lamella.core.values import replace


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


class PictureRule(StrEnum):
    """What a picture's tokens are counted by, from its width and height."""

    PATCHES = "patches"
    TILES = "tiles"
    CROPS = "crops"
    FLAT = "flat"


class PictureProfile(Struct, frozen=True, kw_only=True):
    """How a model counts pictures, and which it takes. None is unknown, or no limit.

    ``weight`` is what a square of ``unit`` pixels costs, and ``base`` what is added. With ``patches`` the long side is
    scaled down to ``fit`` and all of it to a ``budget`` of squares. With ``tiles`` it is fitted into ``fit``, and its
    short side into ``short``. With ``crops`` one of at most ``fit`` pixels a side is one square, a larger one squares
    of two thirds of its short side, between ``short`` and ``unit``. A ``flat`` one costs its weight, whatever its size.

    A request takes ``count`` pictures of these ``types``, each of ``size`` bytes in base64 and of ``edge`` pixels a
    side, and all of them of ``payload`` bytes. With more than ``crowd`` of them each may have ``crowd_edge`` pixels.
    """

    name: str
    rule: PictureRule
    weight: float = 1.0
    unit: int = 0
    fit: int | None = None
    short: int | None = None
    budget: int | None = None
    base: int = 0
    types: tuple[str, ...] = ()
    count: int | None = None
    size: int | None = None
    edge: int | None = None
    crowd: int | None = None
    crowd_edge: int | None = None
    payload: int | None = None


# Of a model that nobody documents: about a token for 784 pixels, and 1,568 at most, which is what most of them take.
GENERIC_PICTURES = PictureProfile(name="generic", rule=PictureRule.PATCHES, unit=28, fit=1_568, budget=1_568)


class ModelProfile(Struct, frozen=True, kw_only=True):
    """Dated facts about a model. None is unknown; ``read`` is a factor of plain input.

    ``lifetimes`` go from the shortest to the longest. ``breakpoints`` is how many marks a request may carry, and
    ``lookback`` how many blocks up to a mark are searched for an entry. A ``keyed`` cache takes a conversation's name.
    One that ``caches_replies`` serves what the model itself said as well, without its being sent once before.
    ``order`` is that of the prefix.
    ``cached_content`` says whether caches can be made as objects of their own, and ``storage`` what keeping them costs,
    in dollars per million tokens and hour. A model that ``sees`` takes pictures, as ``pictures`` say; one that
    ``calls_tools`` can be told of tools and asks for them by itself. ``reserve`` and the shares are how the window is
    used with it, where somebody says so.
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
    calls_tools: bool | None = None
    pictures: PictureProfile = GENERIC_PICTURES
    reserve: int | None = None
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None


GENERIC_MODEL = ModelProfile()


def find_cache(model: ModelProfile) -> CacheProfile:
    """What its cache does, with what that costs as factors of plain input; unknown ones are the usual .1 and 1.

    Caches that also keep what nobody marked serve every prefix, so that marks decide nothing in them. One that keeps
    nothing by itself and takes no marks is none: everything costs as plain input does.
    """
    cache = model.cache
    if not model.implicit and not model.breakpoints:
        return replace(cache, read=1.0, write=1.0, bills_writes=False)
    priced = [one for one in model.lifetimes if one.write is not None]
    fits = [one for one in priced if cache.lifetime is None or one.seconds <= cache.lifetime]
    shortest = next(iter(fits or priced), None)
    longer = next((one for one in priced if shortest is not None and one.seconds > shortest.seconds), None)
    return replace(
        cache,
        read=cache.read if model.read is None else float(model.read),
        write=float(shortest.write) if shortest and shortest.write is not None and cache.bills_writes else 1.0,
        marks=0 if model.implicit else model.breakpoints,
        lookback=model.lookback,
        longer=(float(longer.seconds), float(longer.write)) if longer and longer.write is not None else None,
    )


def choose_lifetime(pause: float | None, lifetimes: tuple[Lifetime, ...]) -> Lifetime | None:
    """The shortest lifetime that outlasts a pause; where none does, or the pause is unknown, the cheapest to write.

    A lifetime of which nobody knows the price is not chosen.
    """
    priced = [lifetime for lifetime in lifetimes if lifetime.write is not None]
    lasting = (lifetime for lifetime in priced if pause is not None and lifetime.seconds > pause)
    return next(lasting, priced[0] if priced else None)
