"""Facts about Claude."""

from decimal import Decimal

from lamella.adapters.providers.facts.day import FACTS_DATE
from lamella.core.ledger.cache import CacheProfile
from lamella.core.values import replace
from lamella.profiles import Lifetime, LifetimeClock, ModelProfile, PictureProfile, PictureRule, UsageFields

_MILLION = 1_000_000
_FIVE_MINUTES = 300

# What a change of effort does to tools and system depends on the model; what it does to messages does not.
_INVALIDATES = (
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
        Lifetime(name="5m", seconds=300, write=Decimal("1.25")),
        Lifetime(name="1h", seconds=3_600, write=Decimal(2)),
    ),
    clock=LifetimeClock.REQUEST_START,
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


def _claude(name: str, minimum: int) -> CacheProfile:
    return CacheProfile(name=name, minimum=minimum, lifetime=_FIVE_MINUTES, bills_writes=True, invalidates=_INVALIDATES)


_SEEN = PictureProfile(
    name="claude",
    rule=PictureRule.PATCHES,
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
_SEEN_FINELY = replace(_SEEN, name="claude-fine", fit=2_576, budget=4_784)


# The first beginning that fits decides, so special cases stand before their family.
MODELS: tuple[tuple[str, ModelProfile], ...] = (
    ("claude-fable-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-mythos-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-opus-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-sonnet-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-haiku-5-5", replace(_CLAUDE, window=_MILLION)),
    ("claude", _CLAUDE),
)
CACHES: tuple[tuple[str, CacheProfile], ...] = (
    ("claude-opus-4-6", _claude("anthropic-4096", 4_096)),
    ("claude-opus-4-5", _claude("anthropic-4096", 4_096)),
    ("claude-haiku-4-5", _claude("anthropic-4096", 4_096)),
    ("claude-opus-4-7", _claude("anthropic-2048", 2_048)),
    ("claude-haiku-3-5", _claude("anthropic-2048", 2_048)),
    ("claude-3-5-haiku", _claude("anthropic-2048", 2_048)),
    ("claude-sonnet-5-5", _claude("anthropic-512", 512)),
    ("claude-sonnet-5", _claude("anthropic-1024", 1_024)),
    ("claude-fable-5", _claude("anthropic-512", 512)),
    ("claude-mythos-5", _claude("anthropic-512", 512)),
    ("claude-opus-5", _claude("anthropic-512", 512)),
    ("claude-haiku-5-5", _claude("anthropic-512", 512)),
    ("claude", _claude("anthropic-1024", 1_024)),
)
# From Opus 4.7 on pictures are read at a higher resolution. Where that is documented of a generation but not of each of
# its models, the rule that counts more holds. Models with a window of 200,000 tokens take 100 pictures.
PICTURES: tuple[tuple[str, PictureProfile], ...] = (
    ("claude-opus-4-7", _SEEN_FINELY),
    ("claude-opus-4-8", _SEEN_FINELY),
    ("claude-opus-4-6", _SEEN),
    ("claude-sonnet-4-6", _SEEN),
    ("claude-opus-5", _SEEN_FINELY),
    ("claude-sonnet-5", _SEEN_FINELY),
    ("claude-haiku-5", _SEEN_FINELY),
    ("claude-fable", _SEEN_FINELY),
    ("claude-mythos", _SEEN_FINELY),
    ("claude", replace(_SEEN, name="claude-200k", count=100)),
)
