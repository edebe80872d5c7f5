"""Cache profiles by model, as documented by the providers on 2026-11-15.

A profile says from how many tokens on a prefix is kept, in what steps it is matched, for how long, and whether
writing it costs more than plain input. Providers that promise no lifetime have none here.
"""

from lamella.core.ledger.cache import GENERIC_PROFILE, CacheProfile

FACTS_DATE = "2026-11-15"

_FIVE_MINUTES = 300
_HALF_HOUR = 1_800


def _claude(name: str, minimum: int) -> CacheProfile:
    return CacheProfile(name=name, minimum=minimum, lifetime=_FIVE_MINUTES, bills_writes=True)


def _gpt(name: str, *, granularity: int, lifetime: int, bills_writes: bool) -> CacheProfile:
    return CacheProfile(name=name, minimum=1_024, granularity=granularity, lifetime=lifetime, bills_writes=bills_writes)


_EXACT_GPT = _gpt("openai", granularity=1, lifetime=_HALF_HOUR, bills_writes=True)

# The first beginning that fits decides, so special cases stand before their family.
_BY_START: tuple[tuple[str, CacheProfile], ...] = (
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
    ("gpt-6", _EXACT_GPT),
    ("gpt-5.6", _EXACT_GPT),
    ("gpt-5.5", _gpt("openai-5.5", granularity=2_048, lifetime=_HALF_HOUR, bills_writes=False)),
    ("gpt", _gpt("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("chatgpt", _gpt("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o1", _gpt("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o3", _gpt("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("o4", _gpt("openai-older", granularity=128, lifetime=600, bills_writes=False)),
    ("gemini-2.5", CacheProfile(name="gemini-2.5", minimum=2_048)),
    ("gemini", CacheProfile(name="gemini", minimum=4_096)),
    ("deepseek", CacheProfile(name="deepseek")),
    ("grok", CacheProfile(name="xai", granularity=128)),
    ("mistral", CacheProfile(name="mistral")),
)


class BuiltInProfiles:
    """The profiles that ship with Lamella."""

    def profile(self, model: str | None) -> CacheProfile:
        """The profile of a model, written ``provider:model`` or ``model``; the generic one if it is unknown."""
        name = (model or "").lower()
        bare = name.partition(":")[2] or name
        return next((profile for start, profile in _BY_START if bare.startswith(start)), GENERIC_PROFILE)
