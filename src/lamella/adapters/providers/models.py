"""Facts about models beyond their caches' arithmetic, as documented by the providers on the date of ``profiles``.

A family says what all models of a wire format share; a row says what is special about a model. Windows and factors that
no provider documents are unknown here, never guessed.
"""

from decimal import Decimal

from lamella.adapters.providers.profiles import FACTS_DATE, BuiltInProfiles
from lamella.core.ledger.profile import GENERIC_MODEL, Lifetime, LifetimeClock, ModelProfile, UsageFields
from lamella.core.values import replace

_CLAUDE = ModelProfile(
    provider="anthropic",
    as_of=FACTS_DATE,
    read=Decimal("0.1"),
    lifetimes=(
        Lifetime(name="5m", seconds=300, write=Decimal("1.25")),
        Lifetime(name="1h", seconds=3_600, write=Decimal(2)),
    ),
    clock=LifetimeClock.REQUEST_START,
    implicit=False,
    breakpoints=4,
    lookback=20,
    invalidates=(
        ("model", "tools"),
        ("tools", "tools"),
        ("system", "system"),
        ("tool_choice", "messages"),
        ("images", "messages"),
        ("thinking", "messages"),
    ),
    usage=UsageFields(
        input="input_tokens",
        output="output_tokens",
        includes_cached=False,
        read="cache_read_input_tokens",
        write="cache_creation_input_tokens",
    ),
    diagnostics=True,
)

_GPT_USAGE = UsageFields(
    input="input_tokens",
    output="output_tokens",
    includes_cached=True,
    read="input_tokens_details.cached_tokens",
    write="input_tokens_details.cache_write_tokens",
)
_GPT_INVALIDATES = (
    ("model", "tools"),
    ("tools", "tools"),
    ("parallel_tool_calls", "tools"),
    ("text.format", "tools"),
    ("reasoning.effort", "tools"),
    ("text.verbosity", "tools"),
    ("service_tier", "tools"),
    ("prompt_cache_key", "tools"),
    ("instructions", "system"),
)
_OLD_GPT = ModelProfile(
    provider="openai",
    as_of=FACTS_DATE,
    clock=LifetimeClock.LAST_USE,
    keyed=True,
    invalidates=_GPT_INVALIDATES,
    usage=_GPT_USAGE,
)
_GPT = replace(
    _OLD_GPT,
    read=Decimal("0.1"),
    lifetimes=(
        Lifetime(name="30m", seconds=1_800, write=Decimal("1.25")),
        Lifetime(name="12h", seconds=43_200, write=None),
    ),
    breakpoints=4,
    lookback=1,
    diagnostics=True,
    window=1_050_000,
)

_GEMINI = ModelProfile(
    provider="google",
    as_of=FACTS_DATE,
    read=Decimal("0.1"),
    order=("system", "tools", "messages"),
    usage=UsageFields(
        input="prompt_token_count",
        output="candidates_token_count",
        includes_cached=True,
        read="cached_content_token_count",
    ),
    window=1_000_000,
)
# Gemini's own caches: the lifetime is freely chosen and runs from the creation; one hour is the provider's default.
_STORED_GEMINI = replace(
    _GEMINI,
    cached_content=True,
    clock=LifetimeClock.CREATION,
    lifetimes=(Lifetime(name="1h", seconds=3_600, write=Decimal(1)),),
)

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

_MILLION = 1_000_000
# The first beginning that fits decides, so special cases stand before their family.
_BY_START: tuple[tuple[str, ModelProfile], ...] = (
    ("claude-fable-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-mythos-5-1", replace(_CLAUDE, window=_MILLION, read=Decimal("0.025"))),
    ("claude-opus-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-sonnet-5-5", replace(_CLAUDE, window=_MILLION, read=Decimal("0.05"))),
    ("claude-haiku-5-5", replace(_CLAUDE, window=_MILLION)),
    ("claude", _CLAUDE),
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
    ("gemini-2.5-pro", replace(_STORED_GEMINI, storage=Decimal("4.50"))),
    ("gemini-2.5-flash", replace(_STORED_GEMINI, storage=Decimal("1.00"))),
    ("gemini-3.1-pro", replace(_STORED_GEMINI, storage=Decimal("4.50"))),
    ("gemini-3.5-flash-lite", _STORED_GEMINI),
    ("gemini-3.5-flash", replace(_STORED_GEMINI, storage=Decimal("1.00"))),
    ("gemini-3.6-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-3.7-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-3.8-flash", replace(_STORED_GEMINI, storage=Decimal("0.50"))),
    ("gemini-2.5", _STORED_GEMINI),
    ("gemini-3", _STORED_GEMINI),
    ("gemini-4-argon", replace(_GEMINI, read=Decimal("0.05"))),
    ("gemini", _GEMINI),
    ("deepseek", _DEEPSEEK),
    ("grok-4.3", replace(_XAI, read=Decimal("0.16"), window=_MILLION)),
    ("grok-4.5", replace(_XAI, read=Decimal("0.15"), window=500_000)),
    ("grok-4", replace(_XAI, read=Decimal("0.25"), window=500_000)),
    ("grok", _XAI),
    ("mistral-large-4", replace(_MISTRAL, window=_MILLION)),
    ("mistral", _MISTRAL),
)


class BuiltInModels:
    """What ships with Lamella about models."""

    def model(self, model: str | None) -> ModelProfile:
        """What is known of a model, written ``provider:model`` or ``model``; little of an unknown one."""
        name = (model or "").lower()
        bare = name.partition(":")[2] or name
        found = next((profile for start, profile in _BY_START if bare.startswith(start)), GENERIC_MODEL)
        return replace(found, cache=BuiltInProfiles().profile(model))
