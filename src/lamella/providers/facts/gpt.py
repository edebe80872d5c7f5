"""Profiles of OpenAI's models."""

from decimal import Decimal

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.values import replace
from lamella.profiles import CacheLifetime, ImageProfile, ImageTokenRule, LifetimeStart, ModelProfile, UsageFields
from lamella.providers.facts.others import FACTS_DATE

_HALF_HOUR = 1_800

_GPT_USAGE = UsageFields(
    input="input_tokens",
    output="output_tokens",
    includes_cached=True,
    read="input_tokens_details.cached_tokens",
    write="input_tokens_details.cache_write_tokens",
)
_GPT_CACHE_INVALIDATIONS = (
    ("model", "tools"),
    ("tools", "tools"),
    ("parallel_tool_calls", "tools"),
    ("text.format", "tools"),
    ("effort", "tools"),
    ("text.verbosity", "tools"),
    ("service_tier", "tools"),
    ("prompt_cache_key", "tools"),
    ("instructions", "system"),
)
_OLD_GPT = ModelProfile(
    provider="openai",
    as_of=FACTS_DATE,
    sees=True,
    clock=LifetimeStart.LAST_USE,
    keyed=True,
    usage=_GPT_USAGE,
)
_GPT = replace(
    _OLD_GPT,
    read=Decimal("0.1"),
    lifetimes=(
        CacheLifetime(name="30m", seconds=1_800, write=Decimal("1.25")),
        CacheLifetime(name="12h", seconds=43_200, write=None),
    ),
    breakpoints=4,
    lookback=1,
    diagnostics=True,
    window=1_050_000,
)


def _gpt_cache_profile(name: str, *, granularity: int, lifetime: int, bills_writes: bool) -> CacheProfile:
    return CacheProfile(
        name=name,
        minimum=1_024,
        granularity=granularity,
        lifetime=lifetime,
        bills_writes=bills_writes,
        invalidates=_GPT_CACHE_INVALIDATIONS,
    )


_EXACT_PREFIX_CACHE = _gpt_cache_profile("openai", granularity=1, lifetime=_HALF_HOUR, bills_writes=True)


_TILED_IMAGES = ImageProfile(
    name="gpt-4o",
    rule=ImageTokenRule.TILES,
    weight=170,
    unit=512,
    fit=2_048,
    short=768,
    base=85,
    types=("image/png", "image/jpeg", "image/gif", "image/webp"),
    count=500,
    size=20 * 1_024 * 1_024,
    payload=50 * 1_024 * 1_024,
)


def _patch_image_profile(name: str, *, weight: float, budget: int = 1_536, fit: int = 2_048) -> ImageProfile:
    patches = replace(_TILED_IMAGES, rule=ImageTokenRule.PATCHES, unit=32, short=None, base=0)
    return replace(patches, name=name, weight=weight, budget=budget, fit=fit)


# Requests leave the detail at ``auto``. From GPT-5.5 on that means the image in its original size.
_ORIGINAL_SIZE_IMAGES = _patch_image_profile("gpt-5.5", weight=1.2, budget=10_000, fit=6_000)


# The first matching prefix wins, so special cases come before their family.
MODEL_PROFILES: tuple[tuple[str, ModelProfile], ...] = (
    ("gpt-6.1", replace(_GPT, read=Decimal("0.05"))),
    ("gpt-6", _GPT),
    ("gpt-5.6", _GPT),
    ("gpt-5.5", replace(_OLD_GPT, read=Decimal("0.1"), window=1_050_000)),
    ("gpt-5", replace(_OLD_GPT, read=Decimal("0.1"))),
    ("gpt-4.1", replace(_OLD_GPT, read=Decimal("0.25"))),
    ("gpt-4o", replace(_OLD_GPT, read=Decimal("0.5"))),
    ("gpt", _OLD_GPT),
    ("chatgpt", _OLD_GPT),
    ("o1", _OLD_GPT),
    ("o3", _OLD_GPT),
    ("o4", _OLD_GPT),
)
CACHE_PROFILES: tuple[tuple[str, CacheProfile], ...] = (
    ("gpt-6", _EXACT_PREFIX_CACHE),
    ("gpt-5.6", _EXACT_PREFIX_CACHE),
    ("gpt-5.5", _gpt_cache_profile("openai-5.5", granularity=2_048, lifetime=_HALF_HOUR, bills_writes=False)),
    ("gpt", _gpt_cache_profile("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("chatgpt", _gpt_cache_profile("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o1", _gpt_cache_profile("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o3", _gpt_cache_profile("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o4", _gpt_cache_profile("openai-older", granularity=128, lifetime=600, bills_writes=False)),
)
IMAGE_PROFILES: tuple[tuple[str, ImageProfile], ...] = (
    ("gpt-6", _ORIGINAL_SIZE_IMAGES),
    ("gpt-5.6", _ORIGINAL_SIZE_IMAGES),
    ("gpt-5.5", _ORIGINAL_SIZE_IMAGES),
    ("gpt-5.4-mini", _patch_image_profile("gpt-mini", weight=1.62)),
    ("gpt-5.4-nano", _patch_image_profile("gpt-nano", weight=2.46)),
    ("gpt-5.4", _patch_image_profile("gpt-5.4", weight=1.2, budget=2_500)),
    ("gpt-5.3", _patch_image_profile("gpt-5.2", weight=1.2)),
    ("gpt-5.2", _patch_image_profile("gpt-5.2", weight=1.2)),
    ("gpt-5-mini", _patch_image_profile("gpt-mini", weight=1.62)),
    ("gpt-5-nano", _patch_image_profile("gpt-nano", weight=2.46)),
    ("gpt-5", replace(_TILED_IMAGES, name="gpt-5", base=70, weight=140)),
    ("gpt-4.1-mini", _patch_image_profile("gpt-mini", weight=1.62)),
    ("gpt-4.1-nano", _patch_image_profile("gpt-nano", weight=2.46)),
    ("gpt-4o-mini", replace(_TILED_IMAGES, name="gpt-4o-mini", base=2_833, weight=5_667)),
    ("gpt", _TILED_IMAGES),
    ("chatgpt", _TILED_IMAGES),
    ("o4-mini", _patch_image_profile("o4-mini", weight=1.72)),
    ("o1", replace(_TILED_IMAGES, name="o1", base=75, weight=150)),
    ("o3", replace(_TILED_IMAGES, name="o1", base=75, weight=150)),
)
