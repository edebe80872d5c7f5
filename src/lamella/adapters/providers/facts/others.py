"""Facts about models that are asked through servers which speak OpenAI's API."""

from decimal import Decimal

from lamella.adapters.providers.facts.day import FACTS_DATE
from lamella.core.ledger.cache import CacheProfile
from lamella.core.values import replace
from lamella.profiles import ModelProfile, UsageFields

_MILLION = 1_000_000
_COMPATIBLE = ModelProfile(
    as_of=FACTS_DATE,
    usage=UsageFields(
        input="prompt_tokens",
        output="completion_tokens",
        includes_cached=True,
        read="prompt_tokens_details.cached_tokens",
    ),
)
_DEEPSEEK = replace(_COMPATIBLE, provider="deepseek", window=1_000_000)
_XAI = replace(_COMPATIBLE, provider="xai")
_MISTRAL = replace(_COMPATIBLE, provider="mistral", read=Decimal("0.1"), keyed=True)

# In each table the first beginning that fits decides, so special cases stand before their family.
DEEPSEEK_MODELS: tuple[tuple[str, ModelProfile], ...] = (("deepseek", _DEEPSEEK),)
DEEPSEEK_CACHES: tuple[tuple[str, CacheProfile], ...] = (("deepseek", CacheProfile(name="deepseek")),)
GROK_MODELS: tuple[tuple[str, ModelProfile], ...] = (
    ("grok-4.3", replace(_XAI, read=Decimal("0.16"), window=_MILLION)),
    ("grok-4.5", replace(_XAI, read=Decimal("0.15"), window=500_000)),
    ("grok-4", replace(_XAI, read=Decimal("0.25"), window=500_000)),
    ("grok", _XAI),
)
GROK_CACHES: tuple[tuple[str, CacheProfile], ...] = (("grok", CacheProfile(name="xai", granularity=128)),)
MISTRAL_MODELS: tuple[tuple[str, ModelProfile], ...] = (
    ("mistral-large-4", replace(_MISTRAL, window=_MILLION)),
    ("mistral", _MISTRAL),
)
MISTRAL_CACHES: tuple[tuple[str, CacheProfile], ...] = (("mistral", CacheProfile(name="mistral")),)
