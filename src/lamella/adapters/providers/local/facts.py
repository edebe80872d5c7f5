"""Facts about models in this process. What they read again from their own memory costs nothing but what is new."""

from decimal import Decimal

from lamella.adapters.providers.facts.day import FACTS_DATE
from lamella.adapters.providers.local.weights import LOCAL
from lamella.core.ledger.cache import CacheProfile
from lamella.profiles import ModelProfile, UsageFields

LOCAL_PROFILE = ModelProfile(
    cache=CacheProfile(name="llama.cpp", invalidates=(("model", "tools"), ("tools", "tools"), ("system", "system"))),
    provider=LOCAL,
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
