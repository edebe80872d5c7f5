"""Cache profiles by model, as documented by the providers on the date of ``day``.

A profile says from how many tokens on a prefix is kept, in what steps it is matched, for how long, and whether
writing it costs more than plain input. Providers that promise no lifetime have none here.
"""

from lamella.adapters.providers.local.facts import LOCAL_PROFILE
from lamella.adapters.providers.registry import PROVIDERS
from lamella.core.ledger.cache import GENERIC_PROFILE, CacheProfile

CACHES: tuple[tuple[str, CacheProfile], ...] = tuple(fact for row in PROVIDERS for fact in row.caches)

# What stands before the colon of a model in this process, and whether anything follows it: that may be any path.
HERE = frozenset((name, bool(row.follows)) for row in PROVIDERS if row.here for name in row.names)


class BuiltInProfiles:
    """The profiles that ship with Lamella."""

    def profile(self, model: str | None) -> CacheProfile:
        """The profile of a model, written ``provider:model`` or ``model``; the generic one if it is unknown."""
        name = (model or "").lower()
        prefix, _, rest = name.partition(":")
        if (prefix, bool(rest)) in HERE:
            return LOCAL_PROFILE.cache
        bare = rest or name
        return next((profile for start, profile in CACHES if bare.startswith(start)), GENERIC_PROFILE)
