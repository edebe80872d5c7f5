"""Profiles of Anthropic's Claude models."""

from decimal import Decimal

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.values import replace
from lamella.profiles import CacheLifetime, ImageProfile, ImageTokenRule, LifetimeStart, ModelProfile, UsageFields
from lamella.providers.facts.others import FACTS_DATE

_MILLION = 1_000_000
_FIVE_MINUTES = 300

# A change of effort always invalidates the messages. Its effect on tools and system depends on the model.
_CACHE_INVALIDATIONS = (
    ("model", "tools"),
    ("tools", "tools"),
    ("system", "system"),
    ("tool_choice", "messages"),
    ("images", "messages"),
    ("effort", "messages"),
)
_CLAUDE = ModelProfile(
    provider="anthropic",
    as_of=FACTS_DATE,
    sees=True,
    read=Decimal("0.1"),
    lifetimes=(
        CacheLifetime(name="5m", seconds=300, write=Decimal("1.25")),
        CacheLifetime(name="1h", seconds=3_600, write=Decimal(2)),
    ),
    clock=LifetimeStart.REQUEST_START,
    implicit=False,
    breakpoints=4,
    lookback=20,
    usage=UsageFields(
        input="input_tokens",
        output="output_tokens",
        includes_cached=False,
        read="cache_read_input_tokens",
        write="cache_creation_input_tokens",
    ),
    diagnostics=True,
)


def _claude_cache_profile(name: str, minimum: int) -> CacheProfile:
    return CacheProfile(
        name=name, minimum=minimum, lifetime=_FIVE_MINUTES, bills_writes=True, invalidates=_CACHE_INVALIDATIONS
    )


_STANDARD_IMAGES = ImageProfile(
    name="claude",
    rule=ImageTokenRule.PATCHES,
    unit=28,
    fit=1_568,
    budget=1_568,
    types=("image/png", "image/jpeg", "image/gif", "image/webp"),
    count=600,
    size=10 * 1_024 * 1_024,
    edge=8_000,
    crowd=20,
    crowd_edge=2_000,
    payload=32 * 1_024 * 1_024,
)
_HIGH_RESOLUTION_IMAGES = replace(_STANDARD_IMAGES, name="claude-fine", fit=2_576, budget=4_784)


# The first matching prefix wins, so special cases come before their family.
MODEL_PROFILES: tuple[tuple[str, ModelProfile], ...] = (
    ("claude-fable-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-mythos-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-opus-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-sonnet-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-haiku-5-5", replace(_CLAUDE, window=_MILLION)),
    ("claude", _CLAUDE),
)
CACHE_PROFILES: tuple[tuple[str, CacheProfile], ...] = (
    ("claude-opus-4-6", _claude_cache_profile("anthropic-4096", 4_096)),
    ("claude-opus-4-5", _claude_cache_profile("anthropic-4096", 4_096)),
    ("claude-haiku-4-5", _claude_cache_profile("anthropic-4096", 4_096)),
    ("claude-opus-4-7", _claude_cache_profile("anthropic-2048", 2_048)),
    ("claude-haiku-3-5", _claude_cache_profile("anthropic-2048", 2_048)),
    ("claude-3-5-haiku", _claude_cache_profile("anthropic-2048", 2_048)),
    ("claude-sonnet-5-5", _claude_cache_profile("anthropic-512", 512)),
    ("claude-sonnet-5", _claude_cache_profile("anthropic-1024", 1_024)),
    ("claude-fable-5", _claude_cache_profile("anthropic-512", 512)),
    ("claude-mythos-5", _claude_cache_profile("anthropic-512", 512)),
    ("claude-opus-5", _claude_cache_profile("anthropic-512", 512)),
    ("claude-haiku-5-5", _claude_cache_profile("anthropic-512", 512)),
    ("claude", _claude_cache_profile("anthropic-1024", 1_024)),
)
# From Opus 4.7 on, images are processed at a higher resolution. If that is documented for a generation but not for each
# of its models, the rule with the higher count applies. Models with a window of 200,000 tokens accept 100 images.
IMAGE_PROFILES: tuple[tuple[str, ImageProfile], ...] = (
    ("claude-opus-4-7", _HIGH_RESOLUTION_IMAGES),
    ("claude-opus-4-8", _HIGH_RESOLUTION_IMAGES),
    ("claude-opus-4-6", _STANDARD_IMAGES),
    ("claude-sonnet-4-6", _STANDARD_IMAGES),
    ("claude-opus-5", _HIGH_RESOLUTION_IMAGES),
    ("claude-sonnet-5", _HIGH_RESOLUTION_IMAGES),
    ("claude-haiku-5", _HIGH_RESOLUTION_IMAGES),
    ("claude-fable", _HIGH_RESOLUTION_IMAGES),
    ("claude-mythos", _HIGH_RESOLUTION_IMAGES),
    ("claude", replace(_STANDARD_IMAGES, name="claude-200k", count=100)),
)
# The longest answers in tokens, as Anthropic's model pages state them (2026-11-18). The API requires a limit.
_MAX_ANSWER_TOKENS: tuple[tuple[str, int], ...] = (
    ("claude-3-7", 64_000),
    ("claude-3-5", 8_192),
    ("claude-3", 4_096),
    ("claude-opus-4-1", 32_000),
    ("claude-opus-4-20", 32_000),
    ("claude-opus-4-5", 64_000),
    ("claude-sonnet-4-5", 64_000),
    ("claude-sonnet-4-20", 64_000),
    ("claude-haiku-4-5", 64_000),
    ("claude-haiku-3-5", 8_192),
)
_MAX_ANSWER_TOKENS_OF_OTHERS = 128_000


def max_answer_tokens(model: str) -> int:
    """Return the length in tokens of the longest answer that a model gives."""
    known = (tokens for start, tokens in _MAX_ANSWER_TOKENS if model.startswith(start))
    return next(known, _MAX_ANSWER_TOKENS_OF_OTHERS)
