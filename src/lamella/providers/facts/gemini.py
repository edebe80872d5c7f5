"""Profiles of Google's Gemini models."""

from decimal import Decimal

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.values import replace
from lamella.profiles import CacheLifetime, ImageProfile, ImageTokenRule, LifetimeStart, ModelProfile, UsageFields
from lamella.providers.facts.others import FACTS_DATE

_GEMINI = ModelProfile(
    provider="google",
    as_of=FACTS_DATE,
    sees=True,
    read=Decimal("0.1"),
    order=("system", "tools", "messages"),
    usage=UsageFields(
        input="prompt_token_count",
        output="candidates_token_count",
        includes_cached=True,
        read="cached_content_token_count",
    ),
    window=1_000_000,
)
# Gemini's stored caches: the caller chooses the lifetime, starting at creation. The provider's default is one hour.
_GEMINI_WITH_STORED_CACHE = replace(
    _GEMINI,
    cached_content=True,
    clock=LifetimeStart.CREATION,
    lifetimes=(CacheLifetime(name="1h", seconds=3_600, write=Decimal(1)),),
)


_FLAT_PRICED_IMAGES = ImageProfile(
    name="gemini",
    rule=ImageTokenRule.FLAT,
    weight=1_120,
    types=("image/png", "image/jpeg", "image/webp"),
    count=3_000,
    payload=100 * 1_024 * 1_024,
)
_CROPPED_IMAGES = replace(
    _FLAT_PRICED_IMAGES, name="gemini-2", rule=ImageTokenRule.CROPS, weight=258, unit=768, fit=384, short=256
)


# The first matching prefix wins, so special cases come before their family.
MODEL_PROFILES: tuple[tuple[str, ModelProfile], ...] = (
    ("gemini-2.5-pro", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("4.50"))),
    ("gemini-2.5-flash", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("1.00"))),
    ("gemini-3.1-pro", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("4.50"))),
    ("gemini-3.5-flash-lite", _GEMINI_WITH_STORED_CACHE),
    ("gemini-3.5-flash", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("1.00"))),
    ("gemini-3.6-flash", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("0.50"))),
    ("gemini-3.7-flash", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("0.50"))),
    ("gemini-3.8-flash", replace(_GEMINI_WITH_STORED_CACHE, storage=Decimal("0.50"))),
    ("gemini-2.5", _GEMINI_WITH_STORED_CACHE),
    ("gemini-3", _GEMINI_WITH_STORED_CACHE),
    ("gemini-4-argon", replace(_GEMINI, read=Decimal("0.05"))),
    ("gemini", _GEMINI),
)
CACHE_PROFILES: tuple[tuple[str, CacheProfile], ...] = (
    ("gemini-2.5", CacheProfile(name="gemini-2.5", minimum=2_048)),
    ("gemini", CacheProfile(name="gemini", minimum=4_096)),
)
# Requests set no resolution, so the model's default applies.
IMAGE_PROFILES: tuple[tuple[str, ImageProfile], ...] = (
    ("gemini-1", _CROPPED_IMAGES),
    ("gemini-2", _CROPPED_IMAGES),
    ("gemini", _FLAT_PRICED_IMAGES),
)
