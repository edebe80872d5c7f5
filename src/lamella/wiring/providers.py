"""Providers and summarizers: opening those that settings name, and the window settings of a model.

``open_pool`` returns the pool that turns are sent from, and ``open_provider`` a single provider.
``model_not_ready_error`` says why a model cannot be used. ``default_settings_for`` and ``get_window_settings`` fit a
conversation to its model. ``make_summary_fetcher_factory`` creates the summary fetcher that the setting ``summarizer``
names.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lamella.conversation.summaries import SummaryFetcher
from lamella.conversation.summary_calls import NO_SUMMARIES, SAME_MODEL, ModelSummaryFetcher, SummaryModel
from lamella.conversation.turn import ModelAnswer
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.compaction.rules import CompactionConfig
from lamella.core.values import replace
from lamella.errors import LamellaError
from lamella.ports import SharedTable
from lamella.profiles import ModelFacts, ModelPrices
from lamella.providers.open_provider import (
    DEMO_MODEL,
    get_context_window,
    is_local_model,
    supports_images,
    supports_tools,
)
from lamella.settings.loading import ResolvedSettings
from lamella.settings.model import DEFAULT_SYSTEM, Settings
from lamella.wiring.services import ServiceContainer, read_services
from lamella.wiring.trust import check_model_is_trusted, trust_answered_model

if TYPE_CHECKING:
    from lamella.conversation.conversation import Conversation
    from lamella.conversation.provider_pool import ProviderPool
    from lamella.conversation.turn_runner import RetryPolicy
    from lamella.core.ledger.entry import Pricing
    from lamella.ports import ModelProvider
    from lamella.providers.entry import CacheStorageRequest
    from lamella.providers.local import PromptProgress

# A shorter value is not a real key, and replacing it would damage ordinary words.
_MIN_MASKED_KEY_CHARS = 8
# Input tokens of the sample request from which the price per million is derived.
_SAMPLE_TOKENS = 50_000
# Records which model weights passed their check, so that a start need not read the whole file again.
_WEIGHTS_RECORD_PATH = Path("~/.lamella/weights.json")


# A model with 135 million parameters starts to repeat itself before it reaches this length (2026-11-17).
_DEMO_ANSWER_TOKENS = 256


def open_pool(
    provider: "ModelProvider | None" = None,
    *,
    services: ServiceContainer | None = None,
    progress: "Callable[[PromptProgress], None] | None" = None,
    retry_policy: "RetryPolicy | None" = None,
    remember_models: bool = False,
    is_stored: bool = True,
    pool_class: "type[ProviderPool] | None" = None,
    open_shared_table: "Callable[[], SharedTable] | None" = None,
) -> "ProviderPool":
    """Return the pool of providers that turns are sent from.

    - ``provider``: use this provider instead of those that model names select.
    - ``progress``: is called while a model in this process reads a prompt.
    - ``remember_models``: a model that the user named becomes trusted once it has answered.
    - ``is_stored``: the conversation is stored, so caches may be stored for several requests.
    - ``pool_class``: the class of the pool.
    - ``open_shared_table``: the shared table by which processes know of each other's stored caches.
    """
    import asyncio
    import random

    from lamella.clocks import SystemClock
    from lamella.conversation.provider_pool import ProviderPool
    from lamella.conversation.turn_runner import RetryPolicy
    from lamella.providers.open_provider import DEMO_MODEL, is_local_model

    services, retry_policy = services or read_services(), retry_policy or RetryPolicy()
    find = partial(
        open_provider,
        services=services,
        progress=progress,
        idle_timeout=retry_policy.idle_timeout,
        is_stored=is_stored,
        open_shared_table=open_shared_table,
    )
    return (pool_class or ProviderPool)(
        find,
        clock=SystemClock(),
        sleep=asyncio.sleep,
        jitter=random.random,
        fixed_provider=provider,
        retry_policy=retry_policy,
        on_answer=partial(trust_answered_model, services=services) if remember_models else None,
        check_model_is_trusted=partial(check_model_is_trusted, services=services),
        is_loop_independent=is_local_model,
        default_answer_tokens={DEMO_MODEL: _DEMO_ANSWER_TOKENS},
    )


def open_provider(
    model: str,
    *,
    is_named: bool = False,
    services: ServiceContainer | None = None,
    progress: "Callable[[PromptProgress], None] | None" = None,
    idle_timeout: float | None = None,
    is_stored: bool = True,
    open_shared_table: "Callable[[], SharedTable] | None" = None,
) -> "ModelProvider":
    """Return the provider of a model, with API keys from the environment.

    - ``is_named``: the user named the model, not only a conversation that may come from another author.
    - ``idle_timeout``: how many seconds without data to wait for.
    - ``is_stored``: the conversation is stored. If not, no cache is stored for later requests.

    Raises ``UntrustedError`` for a model that the user has neither named nor allowed.
    """
    from lamella.conversation.turn_runner import DEFAULT_IDLE_TIMEOUT
    from lamella.providers.entry import ProviderOptions  # imported late: only sending needs the SDKs
    from lamella.providers.open_provider import open_provider as open_provider_of_model

    services = services or read_services()
    check_model_is_trusted(model, is_named=is_named, services=services)
    options = ProviderOptions(
        timeout=DEFAULT_IDLE_TIMEOUT if idle_timeout is None else idle_timeout,
        on_progress=progress,
        hash_record=_WEIGHTS_RECORD_PATH.expanduser(),
        cache_storage=_make_cache_storage_request(model, services, open_shared_table=open_shared_table)
        if is_stored and services.settings.cache_storage
        else None,
    )
    return open_provider_of_model(model, keys=os.environ, models=services.models, options=options)


def _make_cache_storage_request(
    model: str, services: ServiceContainer, *, open_shared_table: "Callable[[], SharedTable] | None" = None
) -> "CacheStorageRequest | None":
    """Return the values that decide whether storing a cache pays; None if the model's input price is unknown."""
    from lamella.clocks import SystemClock
    from lamella.core.log.call import CacheUsage
    from lamella.providers.entry import CacheStorageRequest

    clock = SystemClock()
    # A request of typical size, because long requests have different prices.
    some = services.prices.price(model, CacheUsage(read=0, write=0, uncached=_SAMPLE_TOKENS), clock.now())
    if some is None:
        return None
    return CacheStorageRequest(
        requests_per_hour=services.settings.cache_storage,
        input_price=some * 1_000_000 / _SAMPLE_TOKENS,
        count_tokens=services.counter.get_tokenizer(model).count,
        clock=clock,
        shared_table=None if open_shared_table is None else open_shared_table(),
    )


def parse_response(response: object) -> ModelAnswer:
    """Return the model's answer from the response object of a provider's SDK."""
    from lamella.providers.sdk_objects import BuiltInWireFormats

    return ModelAnswer(reply=BuiltInWireFormats().parse_reply(response))


def default_settings_for(model: str, *, services: ServiceContainer | None = None) -> dict[str, object]:
    """Return default settings for a new conversation with a model: a system prompt, and a window that fits.

    Settings that any source sets are left out.
    """
    services = services or read_services()
    window = get_window_settings(model, services=services)
    own = services.budget_settings_for(services.resolved, model)
    smaller = _choose_window_and_reserve(model, services.resolved, services)["window"] < services.settings.window
    fitting = {"system": DEFAULT_SYSTEM, **{name: value for name, value in window.items() if smaller or name in own}}
    return {name: value for name, value in fitting.items() if not services.resolved.is_set(name)}


def get_window_settings(model: str, *, services: ServiceContainer | None = None) -> dict[str, object]:
    """Return the ``window`` and ``reserve`` for a model, without those that any source sets."""
    services = services or read_services()
    window, own = (
        _choose_window_and_reserve(model, services.resolved, services),
        services.budget_settings_for(services.resolved, model),
    )
    # The thresholds are not included: they are looked up when the conversation is opened, and depend on its model then.
    fitting: dict[str, object] = window | {name: own[name] for name in window if name in own}
    return {name: value for name, value in fitting.items() if not services.resolved.is_set(name)}


def resolve_conversation_settings(overrides: Mapping[str, object], services: ServiceContainer) -> ResolvedSettings:
    """Return the settings of a stored conversation, with a window that its model has.

    ``overrides`` has the conversation's own settings.
    """
    resolved = services.settings_sources.resolve(overrides)
    window = default_window_settings(resolved, services)
    return services.settings_sources.resolve({**overrides, **window}) if window else resolved


def default_window_settings(resolved: ResolvedSettings, services: ServiceContainer) -> dict[str, object]:
    """Return window settings for the configured model, without those that any source sets.

    They come from the user's own model facts. Without these, the window is limited to the model's window.
    """
    model = resolved.settings.model
    own = services.budget_settings_for(resolved, model)
    if model is None or resolved.is_set("window") or "window" in own:
        return own
    window = _choose_window_and_reserve(model, resolved, services)
    fitting = window if window["window"] != resolved.settings.window else {}
    return {**{name: value for name, value in fitting.items() if not resolved.is_set(name)}, **own}


def _choose_window_and_reserve(model: str, resolved: ResolvedSettings, services: ServiceContainer) -> dict[str, int]:
    """Return the configured window and reserve, reduced to what the model has."""
    from lamella.providers.open_provider import get_context_window
    from lamella.providers.user_models import choose_reserve

    window = min(get_context_window(model, services.models) or resolved.settings.window, resolved.settings.window)
    return {"window": window, "reserve": choose_reserve(window, default=resolved.settings.reserve)}


def find_model_problem(
    model: str, *, is_named: bool = False, services: ServiceContainer | None = None
) -> LamellaError | None:
    """Return the error that prevents a model from being used, such as a missing key, or None.

    The weights of a model in this process are not checked before they are used. ``is_named`` says that the user named
    the model.
    """
    import asyncio

    from lamella.providers.open_provider import is_local_model

    services = services or read_services()
    pool = open_pool(services=services)
    pool.trust_model(model if is_named else None)
    try:
        if is_local_model(model):
            check_model_is_trusted(model, is_named=is_named, services=services)
            return None
        # Opening the provider checks keys and packages; nothing is sent.
        pool.send_context_for(model, max_answer_tokens=1)
    except LamellaError as error:
        return error
    finally:
        asyncio.run(pool.close())
    return None


def get_model_facts(
    model: str, pricing: "Pricing", *, services: ServiceContainer, at: datetime | None = None
) -> ModelFacts:
    """Return the window, the prices, the abilities and the cache of a model, as far as they are known."""
    known, profile = services.models.get_model_profile(model), pricing.profile
    return ModelFacts(
        window=get_context_window(model, services.models),
        prices=_get_prices(pricing, at),
        accepts_images=supports_images(model, services.models) if is_local_model(model) else known.sees,
        calls_tools=supports_tools(model, services.models) if is_local_model(model) else known.calls_tools,
        cache_minimum=profile.minimum,
        cache_lifetime=profile.lifetime,
        is_local=is_local_model(model),
    )


def list_priced_models(
    get_pricing: Callable[[str], "Pricing"], *, services: ServiceContainer, at: datetime | None = None
) -> dict[str, ModelFacts]:
    """Return the models of the large providers whose prices are known, by the names under which they are asked."""
    from lamella.providers.models import list_well_known_models

    facts = {
        name: get_model_facts(name, get_pricing(name), services=services, at=at) for name in list_well_known_models()
    }
    return {name: one for name, one in facts.items() if one.prices is not None}


def _get_prices(pricing: "Pricing", at: datetime | None) -> ModelPrices | None:
    """Return prices per million tokens, derived from a request of usual size: some prices rise with the length."""
    from lamella.core.log.call import CacheUsage

    uses = (
        CacheUsage(read=0, write=0, uncached=_SAMPLE_TOKENS),
        CacheUsage(read=_SAMPLE_TOKENS, write=0, uncached=0),
        CacheUsage(read=0, write=_SAMPLE_TOKENS, uncached=0),
    )
    plain, cached, written = [pricing.price(use, at) for use in uses]
    total = pricing.price(uses[0], at, output=_SAMPLE_TOKENS)
    if plain is None or cached is None or written is None or total is None:
        return None
    times = Decimal(1_000_000) / _SAMPLE_TOKENS
    return ModelPrices(
        input=plain * times, cached=cached * times, cache_write=written * times, output=(total - plain) * times
    )


def mask_keys(text: str) -> str:
    """Replace the API keys of this environment in a text, because servers repeat keys in their error messages."""
    from lamella.providers.registry import KEY_VARIABLES

    for name in KEY_VARIABLES:
        key = os.environ.get(name, "").strip()
        if len(key) >= _MIN_MASKED_KEY_CHARS:
            text = text.replace(key, f"({name})")
    return text


def list_key_variables() -> dict[str, bool]:
    """Return the environment variables that keys are read from, and whether each is set."""
    from lamella.providers.registry import KEY_VARIABLES

    return {name: bool(os.environ.get(name)) for name in KEY_VARIABLES}


def list_missing_keys(model: str, *, services: ServiceContainer | None = None) -> list[str]:
    """Return the environment variables of which one must have a key for a model; empty if nothing is missing."""
    from lamella.providers.open_provider import get_entry_for_model

    services = services or read_services()
    entry = get_entry_for_model(model, services.models)
    if not entry.needs_key or any(os.environ.get(name) for name in entry.key_variables):
        return []
    return list(entry.key_variables)


# Summaries: which model writes them, and how much input one may have.

_DEMO_MODEL_NOTE = "a small demo model that is often wrong"
# Tokens for the question and for the frames of messages.
_SUMMARY_FRAME_TOKENS = 500


def make_summary_fetcher_factory(
    services: ServiceContainer, pool: "ProviderPool | None", *, shared_table: SharedTable | None = None
) -> Callable[["Conversation", str], SummaryFetcher]:
    """Return the function that creates a conversation's summary fetcher.

    It sends over ``pool``, or over a pool that is opened on first use. Fetched summaries go into the store's shared
    table ``shared_table``.
    """

    @cache
    def find_pool() -> "ProviderPool":
        from lamella.wiring.providers import open_pool  # imported late: most commands fetch no summary

        return open_pool(services=services) if pool is None else pool

    def find(chat: "Conversation", choice: str) -> SummaryFetcher:
        return ModelSummaryFetcher(
            find_pool(),
            chat,
            SummaryModel(setting=choice, format_author=format_summary_author),
            shared_table=shared_table,
        )

    return find


def format_summary_author(model: str) -> str:
    """Return the author shown in a summary: the model's name without its address."""
    return f"{model}, {_DEMO_MODEL_NOTE}" if model == DEMO_MODEL else re.split(r"[/#]", model)[-1]


def limit_summary_input(
    prompt_settings: PromptSettings, settings: Settings, services: ServiceContainer
) -> PromptSettings:
    """Limit the input of a summary to the window of the model that writes it."""
    choice = settings.summarizer
    window = (
        settings.window
        if choice == SAME_MODEL
        else None
        if choice == NO_SUMMARIES
        else get_context_window(choice, services.models)
    )
    if window is None:
        return prompt_settings
    chains = {name: _fit_summary_to_window(config, window) for name, config in prompt_settings.runner_configs.items()}
    return replace(
        prompt_settings,
        compaction_config=_fit_summary_to_window(prompt_settings.compaction_config, window),
        runner_configs=chains,
    )


def _fit_summary_to_window(config: CompactionConfig, window: int) -> CompactionConfig:
    summary = config.summary
    readable = max(window - 2 * summary.max_output_tokens - _SUMMARY_FRAME_TOKENS, window // 4, 1)
    return (
        config
        if summary.max_input_tokens <= readable
        else replace(config, summary=replace(summary, max_input_tokens=readable))
    )
