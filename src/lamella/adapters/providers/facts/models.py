"""Facts about models beyond their caches' arithmetic, as documented by the providers on the date of ``day``.

A family says what all models of a wire format share; a row says what is special about a model. Windows and factors that
no provider documents are unknown here, never guessed.
"""

from functools import lru_cache

from lamella.adapters.providers.facts.caches import HERE, BuiltInProfiles
from lamella.adapters.providers.local.facts import LOCAL_PROFILE
from lamella.adapters.providers.registry import PROVIDERS
from lamella.core.ledger.cache import CacheProfile
from lamella.core.values import replace
from lamella.profiles import GENERIC_MODEL, GENERIC_PICTURES, ModelProfile, PictureProfile, find_cache

MODELS: tuple[tuple[str, ModelProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.models)
PICTURES: tuple[tuple[str, PictureProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.pictures)


class BuiltInModels:
    """What ships with Lamella about models."""

    def model(self, model: str | None) -> ModelProfile:
        """What is known of a model, written ``provider:model`` or ``model``; little of an unknown one."""
        return _find_model(model)

    def profile(self, model: str | None) -> CacheProfile:
        """What its cache does, with its prices as factors of plain input."""
        return find_cache(_find_model(model))


# Every conversation asks for its own, and all of them for the same few.
@lru_cache(maxsize=256)
def _find_model(model: str | None) -> ModelProfile:
    name = (model or "").lower()
    prefix, _, rest = name.partition(":")
    if (prefix, bool(rest)) in HERE:
        return LOCAL_PROFILE
    bare = rest or name
    found = next((profile for start, profile in MODELS if bare.startswith(start)), GENERIC_MODEL)
    pictures = next((profile for start, profile in PICTURES if bare.startswith(start)), GENERIC_PICTURES)
    return replace(found, cache=BuiltInProfiles().profile(model), pictures=pictures)
