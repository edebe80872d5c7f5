"""The token counter: vocabularies of models in this process, and one memo for all families that are estimated."""

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil
from pathlib import Path

from lamella.adapters.providers.local.weights import locate_weights, runs_here
from lamella.adapters.tokens.families import Family, find_family
from lamella.adapters.tokens.gguf import read_vocabulary
from lamella.adapters.tokens.o200k import CountMemo, encode
from lamella.adapters.tokens.own import OwnTokens, open_vocabulary
from lamella.adapters.tokens.pictures import count_picture, find_refusal
from lamella.core.budget.counting import Measure
from lamella.core.values import replace
from lamella.profiles import GENERIC_PICTURES, PictureProfile


class OfflineCounter:
    """Counts with o200k_base: exact for OpenAI, an estimate with a stated error for others.

    A model whose file is here counts with its own vocabulary. ``sees`` says of others which of them take pictures, and
    ``pictures`` how each counts them and which it takes.
    """

    def __init__(
        self,
        *,
        sees: Callable[[str], bool] = lambda _model: True,
        pictures: Callable[[str], PictureProfile] = lambda _model: GENERIC_PICTURES,
    ) -> None:
        self._sees = sees
        self._pictures = pictures
        self._memo = CountMemo()
        self._measures: dict[str, Measure] = {}
        self._here: dict[str, tuple[OwnTokens, Measure]] = {}
        self._elsewhere: dict[str | None, Measure] = {}

    def measure(self, model: str | None) -> Measure:
        known = self._elsewhere.get(model)
        return known if known is not None else self._find(model)

    def _find(self, model: str | None) -> Measure:
        own = self._measure_here(model) if model else None
        if own is not None:
            return own
        measure = self._make(find_family(model), GENERIC_PICTURES if model is None else self._pictures(model))
        if model is not None and measure.sees and not self._sees(model):
            # What counts otherwise has another name.
            measure = replace(measure, name=f"{measure.name}, blind", sees=False)
        # How a model of this process counts is looked up every time: its file may come at any moment.
        if model is None or not runs_here(model):
            self._elsewhere[model] = measure
        return measure

    def _measure_here(self, model: str) -> Measure | None:
        """How a model in this process counts; none for others, and where its file is missing or not understood."""
        path = locate_weights(model)
        tokens = _open_file(path) if path is not None else None
        if tokens is None:
            return None
        # The file may come, go or be replaced while somebody talks; the same one keeps its measure.
        known = self._here.get(model)
        if known is None or known[0] is not tokens:
            known = self._here[model] = (tokens, _make_own(tokens))
        return known[1]

    def _make(self, family: Family, pictures: PictureProfile) -> Measure:
        # What counts pictures otherwise has another name, too.
        name = family.name if pictures is GENERIC_PICTURES else f"{family.name}, {pictures.name} pictures"
        if name not in self._measures:
            self._measures[name] = self._count_by(name, family, pictures)
        return self._measures[name]

    def _count_by(self, name: str, family: Family, pictures: PictureProfile) -> Measure:
        return Measure(
            name=name,
            count=self._memo.count if family.factor == 1 else partial(self._scaled, family.factor),
            encode=encode,
            count_image=partial(count_picture, pictures),
            refuse=partial(find_refusal, pictures),
            per_message=family.per_message,
            per_request=family.per_request,
            factor=family.factor,
            sees=family.sees,
        )

    def _scaled(self, factor: float, text: str) -> int:
        return ceil(self._memo.count(text) * factor)


def _make_own(tokens: OwnTokens) -> Measure:
    return Measure(
        name=tokens.name,
        count=tokens.count,
        encode=tokens.encode,
        count_image=partial(count_picture, GENERIC_PICTURES),
        per_message=tokens.per_message,
        per_request=tokens.per_request,
        factor=1.0,
        sees=False,
    )


def _open_file(path: Path) -> OwnTokens | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return _open_version(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _open_version(path: Path, size: int, changed: int) -> OwnTokens | None:
    """The vocabulary of a file as it is now; opening one takes 0.2 s."""
    del size, changed  # a file that was replaced is read again
    vocabulary = read_vocabulary(path)
    return open_vocabulary(vocabulary) if vocabulary is not None else None
