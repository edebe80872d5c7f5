"""Cache profiles and model profiles by model, as the providers documented them on the date in ``day``.

``BuiltInCacheProfiles`` has the cache profiles: the minimum size of a cached prefix in tokens, the granularity of matching,
the lifetime, and whether writing costs more than uncached input. ``BuiltInModels`` has all other facts. A family
profile has the facts that all models of a wire format share; an entry adds what is special about a model. What no
provider documents is unknown here and never guessed.
"""

from functools import lru_cache

from lamella.core.ledger.cache_profile import GENERIC_PROFILE, CacheProfile
from lamella.core.values import replace
from lamella.profiles import GENERIC_IMAGE_PROFILE, GENERIC_MODEL, ImageProfile, ModelProfile, get_cache_profile
from lamella.providers.facts.others import LOCAL_PROFILE
from lamella.providers.registry import PROVIDERS

CACHE_PROFILES: tuple[tuple[str, CacheProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.cache_profiles)

# Prefixes of local models, each with whether something follows the colon. That part may be any path, so it is not
# compared with the names in the tables.
LOCAL_PREFIXES = frozenset((name, bool(row.name_syntax)) for row in PROVIDERS if row.is_local for name in row.names)


class BuiltInCacheProfiles:
    """The cache profiles that ship with Lamella."""

    def get_cache_profile(self, model: str | None) -> CacheProfile:
        """Return the cache profile of a model, written ``provider:model`` or ``model``.

        Unknown models get the generic profile.
        """
        name = (model or "").lower()
        prefix, _, rest = name.partition(":")
        if (prefix, bool(rest)) in LOCAL_PREFIXES:
            return LOCAL_PROFILE.cache
        bare = rest or name
        return next((profile for start, profile in CACHE_PROFILES if bare.startswith(start)), GENERIC_PROFILE)


# Model profiles.

MODEL_PROFILES: tuple[tuple[str, ModelProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.model_profiles)
IMAGE_PROFILES: tuple[tuple[str, ImageProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.image_profiles)


class BuiltInModelProfiles:
    """The model profiles that ship with Lamella."""

    def get_model_profile(self, model: str | None) -> ModelProfile:
        """Return the profile of a model, written ``provider:model`` or ``model``. Unknown models get a generic one."""
        return _get_profile(model)

    def get_cache_profile(self, model: str | None) -> CacheProfile:
        """Return the cache profile of a model, with its prices as factors of uncached input."""
        return get_cache_profile(_get_profile(model))


# The families whose models have the same names everywhere, with the provider that each is asked from.
_WELL_KNOWN_FAMILIES = {"claude": "anthropic", "gpt": "openai", "gemini": "gemini"}


def list_well_known_models() -> list[str]:
    """Return the names of models of the large providers. The prefix of a whole family is left out."""
    return [
        f"{_WELL_KNOWN_FAMILIES[family]}:{prefix}"
        for prefix, _ in MODEL_PROFILES
        if (family := prefix.partition("-")[0]) in _WELL_KNOWN_FAMILIES and family != prefix
    ]


# Cached because every conversation looks up its model, and most conversations use the same few models.
@lru_cache(maxsize=256)
def _get_profile(model: str | None) -> ModelProfile:
    name = (model or "").lower()
    prefix, _, rest = name.partition(":")
    if (prefix, bool(rest)) in LOCAL_PREFIXES:
        return LOCAL_PROFILE
    bare = rest or name
    found = next((profile for start, profile in MODEL_PROFILES if bare.startswith(start)), GENERIC_MODEL)
    pictures = next((profile for start, profile in IMAGE_PROFILES if bare.startswith(start)), GENERIC_IMAGE_PROFILE)
    return replace(found, cache=BuiltInCacheProfiles().get_cache_profile(model), pictures=pictures)
