"""Fitting: which files of a ranking stand in full, as skeletons or by name, so that all of it fits a budget.

Whole files come first, up to a share of the budget; then skeletons of those behind them, which are short, so that many
are seen; then names. What is left over makes whole files of the first skeletons. The rendered result is counted, and
what does not fit is taken back from its end.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lamella.adapters.sources.code.index.ranking import RankedFile
from lamella.adapters.sources.code.rendering import render_full, render_name, render_selection, render_skeleton
from lamella.adapters.sources.code.skeletons.focusing import focus_skeleton
from lamella.holdings import CodeFile, CodeForm

# The shares of the budget that whole files and, with them, skeletons may take. Chosen on one half of the questions of
# ``bench/code.py`` (2026-11-17).
_FULL, _SHOWN = 0.55, 0.96
# What scores less than this share of the best is not shown in full before others are shown as skeletons.
_CLOSE = 0.35
# No skeleton takes more of the budget than this, at four characters a token: what speaks of the question stays.
_SHARE, _CHARS = 0.06, 4
# How many files are looked at, and how many are named.
_LOOKED_AT = 150
_NAMED = 60
_NAMES_HEADING = 12
_DIGITS = 4
# After so many files that do not fit, no smaller one is looked for: what comes then hardly fits the question.
_MISSES = 25


class ShowableCode(NamedTuple):
    """What can be shown of a file: its text, and its skeleton."""

    text: str
    skeleton: Callable[[], str]


ShowCode = Callable[[str], ShowableCode | None]


class BudgetFit:
    """One selection in the making. ``count`` counts tokens, ``show`` gives what can be shown of a path."""

    def __init__(self, root: str, question: str, *, budget: int, count: Callable[[str], int], show: ShowCode) -> None:
        self._root, self._question = root, question
        self._budget, self._count, self._show = budget, count, show
        self._shown: dict[str, ShowableCode | None] = {}
        self._weights: dict[tuple[str, CodeForm], int] = {}

    def fit(self, ranked: Sequence[RankedFile], *, count: int) -> tuple[list[CodeFile], str, str, int]:
        """The files, the overview, the whole as it is rendered, and its tokens; no file where not one name fits."""
        used = self._count(render_selection(self._root, self._question, [], count=count)[1])
        room = max(0, self._budget - used)
        chosen = self._choose(ranked[:_LOOKED_AT], room)
        return self._settle([self._make(one, chosen[one.path]) for one in ranked if one.path in chosen], count)

    def _choose(self, ranked: Sequence[RankedFile], room: int) -> dict[str, CodeForm]:
        """The form of each file that is chosen."""
        chosen: dict[str, CodeForm] = {}
        best = ranked[0].score if ranked else 0.0
        close = [one for one in ranked if one.score >= _CLOSE * best]
        # What a question writes out may take the room of all others; what merely fits it may not.
        named = [one for one in ranked if "named" in one.parts]
        spent = int(room * _SHOWN) - self._take(named, CodeForm.FULL, chosen, room=int(room * _SHOWN))
        left = self._take(close, CodeForm.FULL, chosen, room=int(room * _FULL) - spent)
        left = self._take(ranked, CodeForm.SKELETON, chosen, room=left + int(room * _SHOWN) - int(room * _FULL))
        left += room - int(room * _SHOWN)
        left = self._raise(ranked, chosen, left - min(left, _NAMES_HEADING + _NAMED))
        left += min(_NAMES_HEADING + _NAMED, room)
        self._take(ranked[: len(chosen) + _NAMED], CodeForm.NAME, chosen, room=left - _NAMES_HEADING)
        return chosen

    def _take(self, ranked: Iterable[RankedFile], form: CodeForm, chosen: dict[str, CodeForm], *, room: int) -> int:
        """Take files in this form as long as there is room; gives what is left of it."""
        missed = 0
        for one in ranked:
            if one.path in chosen:
                continue
            weight = self._weigh(one.path, form) if missed < _MISSES else None
            if weight is None or weight > room:
                missed += 1
                continue
            chosen[one.path] = form
            room -= weight
        return room

    def _raise(self, ranked: Iterable[RankedFile], chosen: dict[str, CodeForm], room: int) -> int:
        """Make whole files of skeletons where that fits into what is left."""
        for one in ranked:
            if chosen.get(one.path) is CodeForm.SKELETON:
                full, short = self._weigh(one.path, CodeForm.FULL), self._weigh(one.path, CodeForm.SKELETON)
                if full is not None and short is not None and full - short <= room:
                    chosen[one.path] = CodeForm.FULL
                    room -= full - short
        return room

    def _settle(self, files: list[CodeFile], count: int) -> tuple[list[CodeFile], str, str, int]:
        """The selection as it is rendered; counted whole, since a text has not the tokens of its parts."""
        while True:
            overview, text = render_selection(self._root, self._question, files, count=count)
            tokens = self._count(text)
            if tokens <= self._budget or not files:
                return files, overview, text, tokens
            worst = next((form for form in reversed(CodeForm) if any(one.form is form for one in files)), CodeForm.NAME)
            last = max(at for at, one in enumerate(files) if one.form is worst)
            del files[last]

    def _make(self, one: RankedFile, form: CodeForm) -> CodeFile:
        shown = self._look(one.path)
        text = "" if shown is None or form is CodeForm.NAME else shown.text
        if shown is not None and form is CodeForm.SKELETON:
            text = self._shorten(shown)
        weight = self._weigh(one.path, form) or 0
        parts = {name: round(value, _DIGITS) for name, value in one.parts.items()}
        score = round(one.score, _DIGITS)
        return CodeFile(path=one.path, form=form, text=text, tokens=weight, score=score, parts=parts)

    def _weigh(self, path: str, form: CodeForm) -> int | None:
        """What a file takes in a form; none where it has none of that form."""
        key = (path, form)
        if key not in self._weights:
            self._weights[key] = self._count_form(path, form)
        return self._weights[key] if self._weights[key] >= 0 else None

    def _count_form(self, path: str, form: CodeForm) -> int:
        if form is CodeForm.NAME:
            return self._count(render_name(self._root, path)) + 1
        shown = self._look(path)
        if shown is None or not shown.text.strip():
            return -1
        # No text has more tokens than bytes, nor fewer than a fifteenth of them in any source that people write.
        if form is CodeForm.FULL:
            too_long = len(shown.text) > 30 * self._budget
            return -1 if too_long else self._count(render_full(self._root, path, shown.text))
        skeleton = self._shorten(shown)
        full = self._weigh(path, CodeForm.FULL)
        weight = self._count(render_skeleton(self._root, path, skeleton)) + 2 if skeleton else -1
        return -1 if full is not None and weight > full else weight

    def _shorten(self, shown: ShowableCode) -> str:
        return focus_skeleton(shown.skeleton(), self._question, most=int(self._budget * _SHARE * _CHARS))

    def _look(self, path: str) -> ShowableCode | None:
        if path not in self._shown:
            self._shown[path] = self._show(path)
        return self._shown[path]
