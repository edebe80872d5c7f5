"""The token counter: one memo for all families, each with its own factor and overhead."""

from functools import partial
from math import ceil

from lamella.adapters.tokens.families import Family, count_image, find_family
from lamella.adapters.tokens.o200k import CountMemo, encode
from lamella.core.budget.counting import Measure


class OfflineCounter:
    """Counts with o200k_base; exact for OpenAI, an estimate with a stated error for everyone else."""

    def __init__(self) -> None:
        self._memo = CountMemo()
        self._measures: dict[str, Measure] = {}

    def measure(self, model: str | None) -> Measure:
        family = find_family(model)
        if family.name not in self._measures:
            self._measures[family.name] = self._make(family)
        return self._measures[family.name]

    def _make(self, family: Family) -> Measure:
        return Measure(
            name=family.name,
            count=self._memo.count if family.factor == 1 else partial(self._scaled, family.factor),
            encode=encode,
            count_image=partial(count_image, family.image),
            per_message=family.per_message,
            per_request=family.per_request,
            factor=family.factor,
            error=family.error,
        )

    def _scaled(self, factor: float, text: str) -> int:
        return ceil(self._memo.count(text) * factor)
