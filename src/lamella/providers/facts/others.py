"""Facts that belong to no single provider: the date of all facts, other models, and prices.

Models that are reached through servers with an OpenAI-compatible API have their profiles here, as do models in this
process. ``BundledPrices`` has dated prices from the ``genai-prices`` package, which are available offline.
"""

from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

from lamella.core.ledger.cache_profile import CacheProfile
from lamella.core.log.call import CacheUsage
from lamella.core.values import replace
from lamella.plugins import PluginGroup, call_plugin, find_plugins
from lamella.profiles import ModelProfile, UsageFields
from lamella.tokenizers.weights import LOCAL_MODEL_NAME

FACTS_DATE = "2026-11-15"


# Models behind servers with an OpenAI-compatible API.

_MILLION = 1_000_000
_COMPATIBLE_PROFILE = ModelProfile(
    as_of=FACTS_DATE,
    usage=UsageFields(
        input="prompt_tokens",
        output="completion_tokens",
        includes_cached=True,
        read="prompt_tokens_details.cached_tokens",
    ),
)
_DEEPSEEK = replace(_COMPATIBLE_PROFILE, provider="deepseek", window=1_000_000)
_XAI = replace(_COMPATIBLE_PROFILE, provider="xai")
_MISTRAL = replace(_COMPATIBLE_PROFILE, provider="mistral", read=Decimal("0.1"), keyed=True)

# In each table the first matching prefix wins, so special cases come before their family.
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


# Prices.

# The date of the price data in the pinned genai-prices 0.2.1. A turn without a time is billed at the prices of this
# day, so that the same transcript costs the same whenever it is replayed.
DEFAULT_PRICE_DATE = datetime(2026, 10, 30, tzinfo=UTC)


class BundledPrices:
    """Prices at the time of a turn. An unknown model has no price (None), which differs from a price of zero."""

    def __init__(self) -> None:
        # Every turn asks for three prices, and the price data does not change while a program runs.
        self._unknown_models: set[str] = set()

    def price(self, model: str, use: CacheUsage, at: datetime | None, *, output: int = 0) -> Decimal | None:
        """Return the price in dollars, or None for an unknown model. With ``output`` tokens it includes their price."""
        for name, book in find_plugins(PluginGroup.PRICE_BOOKS).items():
            known: Decimal | None = call_plugin(
                PluginGroup.PRICE_BOOKS,
                name,
                partial(book.price, model, use, at, output=output),
                is_right=lambda given: given is None or (isinstance(given, Decimal) and given >= 0),
            )
            if known is not None:
                return known
        if model in self._unknown_models:
            return None
        from genai_prices import Usage, calc_price  # takes 0.4 s to import, and only prices need it

        provider, _, bare = model.rpartition(":")
        usage = Usage(
            input_tokens=use.read + use.write + use.uncached,
            cache_read_tokens=use.read,
            cache_write_tokens=use.write,
            cache_write_1h_tokens=use.long_lifetime,
            output_tokens=output,
        )
        try:
            found = calc_price(
                usage, bare, provider_id=provider or None, genai_request_timestamp=at or DEFAULT_PRICE_DATE
            )
        except LookupError:
            self._unknown_models.add(model)
            return None
        return found.total_price if output else found.input_price


# Models in this process. Tokens that their cache serves cost nothing.

LOCAL_PROFILE = ModelProfile(
    cache=CacheProfile(name="llama.cpp", invalidates=(("model", "tools"), ("tools", "tools"), ("system", "system"))),
    provider=LOCAL_MODEL_NAME,
    as_of=FACTS_DATE,
    read=Decimal(0),
    caches_replies=True,
    usage=UsageFields(
        input="prompt_tokens",
        output="completion_tokens",
        includes_cached=True,
        read="prompt_tokens_details.cached_tokens",
    ),
)
