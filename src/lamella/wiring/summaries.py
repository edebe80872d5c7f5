"""Summaries: who writes them, as the setting ``summarizer`` says, and how much one may read."""

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from lamella.adapters.providers.places import DEMO_MODEL, find_window
from lamella.core.compaction.fitting import Rules
from lamella.core.compaction.rules import ChainRules
from lamella.core.values import replace
from lamella.engine.dialogue.summaries import AsideBook, SummaryFetcher
from lamella.engine.sending.summaries import OFF, SAME, ModelFetcher, SummaryMaker
from lamella.ports import Shelf
from lamella.settings.model import Settings
from lamella.wiring.services import Services

if TYPE_CHECKING:
    from lamella.engine.sending.pool import ProviderPool

_SMALL = "a small demo model that is often wrong"
# What the question takes and what frames messages, in tokens.
_FRAME = 500


def make_fetchers(
    services: Services, pool: "ProviderPool | None", *, shelf: Shelf | None = None
) -> Callable[[AsideBook, str], SummaryFetcher]:
    """Who fetches summaries for a conversation, over a pool that is given, or one that is opened when it is needed.

    What was fetched is laid on the ``shelf`` of the store.
    """

    @cache
    def find_pool() -> "ProviderPool":
        from lamella.wiring.providers import open_pool  # most commands fetch nothing

        return open_pool(services=services) if pool is None else pool

    def find(chat: AsideBook, choice: str) -> SummaryFetcher:
        return ModelFetcher(find_pool(), chat, SummaryMaker(choice=choice, sign=sign_summary), shelf=shelf)

    return find


def sign_summary(model: str) -> str:
    """What a summary says of who wrote it: the model, without the place that it is asked at."""
    return f"{model}, {_SMALL}" if model == DEMO_MODEL else re.split(r"[/#]", model)[-1]


def fit_reading(rules: Rules, settings: Settings, services: Services) -> Rules:
    """The rules with no more for one summary to read than its model takes."""
    choice = settings.summarizer
    window = settings.window if choice == SAME else None if choice == OFF else find_window(choice, services.models)
    if window is None:
        return rules
    chains = {name: _fit_chain(chain, window) for name, chain in rules.chains.items()}
    return replace(rules, chain=_fit_chain(rules.chain, window), chains=chains)


def _fit_chain(chain: ChainRules, window: int) -> ChainRules:
    summary = chain.summary
    readable = max(window - 2 * summary.writes - _FRAME, window // 4, 1)
    return chain if summary.reads <= readable else replace(chain, summary=replace(summary, reads=readable))
