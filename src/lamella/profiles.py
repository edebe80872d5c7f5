"""Facts about a model beyond its cache profile: window, price factors, breakpoints, images, and usage fields."""

from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from lamella.core.ledger.cache_profile import GENERIC_PROFILE, CacheProfile
from lamella.core.values import replace


class LifetimeStart(StrEnum):
    """The event at which the lifetime of a cache entry starts."""

    REQUEST_START = "request_start"
    LAST_USE = "last_use"
    CREATION = "creation"


class CacheLifetime(Struct, frozen=True, kw_only=True):
    """A cache lifetime that a request can ask for.

    ``write`` is the price of writing with it as a factor of plain input, or None if unknown.
    """

    name: str
    seconds: int
    write: Decimal | None


class UsageFields(Struct, frozen=True, kw_only=True):
    """Dotted paths of the usage fields in a provider's response.

    ``includes_cached`` says whether the input count includes cached tokens.
    """

    input: str
    output: str
    includes_cached: bool
    read: str | None = None
    write: str | None = None


class ImageTokenRule(StrEnum):
    """The rule by which the tokens of an image follow from its width and height."""

    PATCHES = "patches"
    TILES = "tiles"
    CROPS = "crops"
    FLAT = "flat"


class ImageProfile(Struct, frozen=True, kw_only=True):
    """The rules of a model for images: how they are counted, and which are accepted. None means unknown, or no limit.

    ``weight`` is the cost of a square of ``unit`` pixels, and ``base`` is added to it. The rules:

    - ``patches``: the image is scaled down to ``fit`` on its long side, and to at most ``budget`` squares.
    - ``tiles``: the image is scaled to fit into ``fit``, and its short side into ``short``.
    - ``crops``: an image of at most ``fit`` pixels a side is one square. A larger one is cut into
      squares of two thirds of its short side, between ``short`` and ``unit`` pixels.
    - ``flat``: an image of any size costs ``weight``.

    A request may have ``count`` images of the media types ``types``, each with at most ``size`` bytes in base64 and
    ``edge`` pixels a side, and at most ``payload`` bytes in all. With more than ``crowd`` images, each may have
    ``crowd_edge`` pixels a side.
    """

    name: str
    rule: ImageTokenRule
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


# For models without documentation: about one token per 784 pixels and at most 1,568, which most models accept.
GENERIC_IMAGE_PROFILE = ImageProfile(name="generic", rule=ImageTokenRule.PATCHES, unit=28, fit=1_568, budget=1_568)


class ModelProfile(Struct, frozen=True, kw_only=True):
    """Dated facts about a model. None means unknown.

    - ``read``: the price of cached input as a factor of plain input.
    - ``lifetimes``: cache lifetimes, shortest first.
    - ``implicit``: whether the provider caches prefixes without breakpoints.
    - ``breakpoints``: how many cache breakpoints a request may have.
    - ``lookback``: how many blocks before a breakpoint the provider searches for a cache entry.
    - ``keyed``: whether the cache takes the conversation's name as a key.
    - ``caches_replies``: whether the cache has the model's own replies before they are sent back once.
    - ``order``: the order of the parts of the prefix.
    - ``cached_content``: whether caches can be created as objects of their own. ``storage`` is their price in
      dollars per million tokens and hour.
    - ``sees``: whether the model accepts images, as ``pictures`` describes.
    - ``calls_tools``: whether the model accepts tool definitions and calls tools by itself.
    - ``reserve``, ``warn``, ``target``, ``trigger``, ``hard``: budget settings to use with this model, if any.
    """

    cache: CacheProfile = GENERIC_PROFILE
    provider: str = "generic"
    as_of: str = ""
    window: int | None = None
    read: Decimal | None = None
    lifetimes: tuple[CacheLifetime, ...] = ()
    clock: LifetimeStart | None = None
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
    pictures: ImageProfile = GENERIC_IMAGE_PROFILE
    reserve: int | None = None
    warn: float | None = None
    target: float | None = None
    trigger: float | None = None
    hard: float | None = None


GENERIC_MODEL = ModelProfile()


class ModelPrices(Struct, frozen=True, kw_only=True):
    """Prices in dollars per million tokens, now."""

    input: Decimal
    cached: Decimal
    cache_write: Decimal
    output: Decimal


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What people want to know before they choose a model. None means unknown.

    ``cache_lifetime`` is in seconds, and None also for a cache that does not expire. ``is_local`` models run on this
    machine.
    """

    window: int | None = None
    prices: ModelPrices | None = None
    accepts_images: bool | None = None
    calls_tools: bool | None = None
    cache_minimum: int = 0
    cache_lifetime: int | None = None
    is_local: bool = False


def get_cache_profile(model: ModelProfile) -> CacheProfile:
    """Return the cache profile of a model, with its prices as factors of plain input.

    Unknown factors are the usual 0.1 for reading and 1 for writing. A cache that also stores prefixes without
    breakpoints serves every prefix, so breakpoints make no difference there. A model without such a cache and without
    breakpoints has no cache at all: all input costs the plain price.
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


def choose_lifetime(pause: float | None, lifetimes: tuple[CacheLifetime, ...]) -> CacheLifetime | None:
    """Return the shortest lifetime that is longer than a pause.

    If none is, or ``pause`` is None, return the cheapest one to write. Lifetimes without a known price are never
    chosen; None if there is no other.
    """
    priced = [lifetime for lifetime in lifetimes if lifetime.write is not None]
    long_enough = (lifetime for lifetime in priced if pause is not None and lifetime.seconds > pause)
    return next(long_enough, priced[0] if priced else None)
