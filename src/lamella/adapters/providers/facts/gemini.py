"""Facts about Gemini."""

from decimal import Decimal

from lamella.adapters.providers.facts.day import FACTS_DATE
from lamella.core.ledger.cache import CacheProfile
from lamella.core.values import replace
from lamella.profiles import Lifetime, LifetimeClock, ModelProfile, PictureProfile, PictureRule, UsageFields

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
# Gemini's own caches: the lifetime is freely chosen and runs from the creation; one hour is the provider's default.
_STORED_GEMINI = replace(
    _GEMINI,
    cached_content=True,
    clock=LifetimeClock.CREATION,
    lifetimes=(Lifetime(name="1h", seconds=3_600, write=Decimal(1)),),
)


_FLAT = PictureProfile(
    name="gemini",
    rule=PictureRule.FLAT,
    weight=1_120,
    types=("image/png", "image/jpeg", "image/webp"),
    count=3_000,
    payload=100 * 1_024 * 1_024,
)
_CROPPED = replace(_FLAT, name="gemini-2", rule=PictureRule.CROPS, weight=258, unit=768, fit=384, short=256)


# The first beginning that fits decides, so special cases stand before their family.
MODELS: tuple[tuple[str, ModelProfile], ...] = (
    ("gemini-2.5-pro", replace(_STORED_GEMINI, storage=Decimal("4.50"))),
    ("gemini-2.5-flash", replace(_STORED_GEMINI, storage=Decimal("1.00"))),
    ("gemini-3.1-pro", replace(_STORED_GEMINI, storage=Decimal("4.50"))),
    ("gemini-3.5-flash-lite", _STORED_GEMINI),
    ("gemini-3.5-flash", replace(_STORED_GEMINI, storage=Decimal("1.00"))),
    ("gemini-3.6-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-3.7-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-3.8-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-2.5", _STORED_GEMINI),
    ("gemini-3", _STORED_GEMINI),
    ("gemini-4-argon", replace(_GEMINI, read=Decimal("0.05"))),
    ("gemini", _GEMINI),
)
CACHES: tuple[tuple[str, CacheProfile], ...] = (
    ("gemini-2.5", CacheProfile(name="gemini-2.5", minimum=2_048)),
    ("gemini", CacheProfile(name="gemini", minimum=4_096)),
)
# The resolution is left to the model.
PICTURES: tuple[tuple[str, PictureProfile], ...] = (
    ("gemini-1", _CROPPED),
    ("gemini-2", _CROPPED),
    ("gemini", _FLAT),
)
