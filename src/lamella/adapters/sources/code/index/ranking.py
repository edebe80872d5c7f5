"""Ranking: how well each file fits a question, by parts that are added up and told.

SQLite scores a column by how rare the words are that it has (bm25). What it cannot see is added: commits that speak of
the same things and the files they touched, how lately a file was changed, what a conversation has touched already, and
paths and names that the question writes out. To SQLite a word that half of the files have says next to nothing, and of
two or three files that is any word: among few files each word is scored anew.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from math import log
from typing import NamedTuple

from lamella.adapters.retrieval.words import ask
from lamella.adapters.sources.code.index.tables import CodeTables
from lamella.core.search.small_words import is_common

# What each part counts. Chosen on one half of the questions of ``bench/code.py`` (2026-11-17).
WEIGHTS: Mapping[str, float] = {
    "path": 2.0,
    "symbols": 0.75,
    "text": 1.0,
    "parts": 1.5,
    "commits": 0.5,
    "recent": 2.0,
    "touched": 4.0,
    "named": 12.0,
}
_COLUMNS = ("path", "symbols", "text", "parts")
# How many files are looked at closely, and how many commits.
_CLOSELY = 400
_COMMITS = 60
# What further commits of a file add to the one that fits best, and how many of them.
_FURTHER, _MOST_FURTHER = 0.3, 4
# After so many commits that a file is in none of, having been changed lately counts half.
_LATELY = 200
# Among so few files words decide, and how lately one was changed only between equals.
_FEW = 10
_BETWEEN_EQUALS = 0.01
# What SQLite takes for the rarity of a word that half of the files have, or more.
_LEAST_RARE = 1e-6
_WRITTEN = re.compile(r"[\w./\\-]*[\w-]\.[A-Za-z]\w{0,9}\b|\w+(?:/[\w.-]+)+|\b\w*[a-z]\w*(?:_\w+|[A-Z]\w*)+\b")
_SHORTEST = 4
_FIRST = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 2.0, 0.75, 1.0, 1.5), rowid LIMIT ?"
_PARTS = """
SELECT files.path, -bm25(words, 1, 0, 0, 0), -bm25(words, 0, 1, 0, 0), -bm25(words, 0, 0, 1, 0),
    -bm25(words, 0, 0, 0, 1)
FROM words JOIN files ON files.id = words.rowid
WHERE words MATCH ? AND words.rowid IN (SELECT value FROM json_each(?))
"""
_COUNT = "SELECT count(*) FROM (SELECT rowid FROM words LIMIT ?)"
_SUBJECTS = "SELECT rowid, -bm25(subjects) FROM subjects WHERE subjects MATCH ? ORDER BY bm25(subjects), rowid LIMIT ?"
_TOUCHES = "SELECT made, path FROM touches WHERE made IN (SELECT value FROM json_each(?))"


class RankedFile(NamedTuple):
    """A file that may be chosen: what it scores, and by which parts."""

    path: str
    score: float
    parts: Mapping[str, float]


class CodeRanking:
    """Ranks the files of one index."""

    def __init__(self, tables: CodeTables) -> None:
        self._tables = tables

    def rank(self, question: str, *, among: Collection[str], touched: Collection[str] = ()) -> list[RankedFile]:
        """These paths, those that fit best first, of equals by their names."""
        parts: dict[str, dict[str, float]] = {path: {} for path in among}
        terms = list_terms(question)
        ((count,),) = self._tables.run(_COUNT, (_FEW + 1,))
        few = count if count <= _FEW else None
        if terms:
            self._add_words(terms, parts, few=few)
            self._add_commits(" OR ".join(terms), parts)
        self._add_recent(parts, weight=1.0 if few is None else _BETWEEN_EQUALS)
        for path in touched:
            if path in parts:
                parts[path]["touched"] = 1.0
        for path in find_named(question, among):
            parts[path]["named"] = 1.0
        ranked = [_sum_up(path, found) for path, found in parts.items()]
        return sorted(ranked, key=lambda one: (-one.score, one.path))

    def _add_words(self, terms: Sequence[str], parts: dict[str, dict[str, float]], *, few: int | None) -> None:
        match = " OR ".join(terms)
        first = json.dumps([number for (number,) in self._tables.run(_FIRST, (match, _CLOSELY))])
        for asked in [match] if few is None else terms:
            found = [row for row in self._tables.run(_PARTS, (asked, first)) if row[0] in parts]
            again = 1.0 if few is None else _score_anew(few, len(found))
            for path, *scores in found:
                told = {name: again * score for name, score in zip(_COLUMNS, scores, strict=True) if score > 0}
                parts[path].update({name: parts[path].get(name, 0.0) + score for name, score in told.items()})

    def _add_commits(self, match: str, parts: dict[str, dict[str, float]]) -> None:
        found = dict(self._tables.run(_SUBJECTS, (match, _COMMITS)))
        touches: dict[int, list[str]] = {}
        for made, path in self._tables.run(_TOUCHES, (json.dumps(list(found)),)):
            touches.setdefault(made, []).append(path)
        told: dict[str, list[float]] = {}
        for made, paths in touches.items():
            for path in paths:
                # Of many files that a commit touches, each is less what it speaks of.
                told.setdefault(path, []).append(found[made] / len(paths) ** 0.5)
        for path, scores in told.items():
            if path in parts:
                best, *others = sorted(scores, reverse=True)
                parts[path]["commits"] = best + _FURTHER * sum(others[:_MOST_FURTHER])

    def _add_recent(self, parts: dict[str, dict[str, float]], *, weight: float) -> None:
        for path, last in self._tables.run("SELECT path, min(made) FROM touches GROUP BY path"):
            if path in parts:
                parts[path]["recent"] = weight / (1 + last / _LATELY)


def _score_anew(files: int, having: int) -> float:
    """By what SQLite's score of a word is multiplied so that it says something although many of few files have it."""
    rare = (files - having + 0.5) / (having + 0.5)
    return log(1 + rare) / max(log(rare), _LEAST_RARE)


def list_terms(question: str) -> list[str]:
    """What SQLite is asked for a question: its words that tell something, in all their forms."""
    asked = [word for word in ask(question) if not is_common(word.text.lower())] or ask(question)
    told = [one for word in asked for one in (word.text, *word.others)]
    return list(dict.fromkeys(f'"{one}"' for one in told))


def find_named(question: str, among: Collection[str]) -> list[str]:
    """The files that a question writes out: by a path, or by a name that one file alone has."""
    written = {word.replace("\\", "/").strip("./").lower() for word in _WRITTEN.findall(question)}
    written = {word for word in written if len(word) >= _SHORTEST}
    if not written:
        return []
    names: dict[str, list[str]] = {}
    for path in among:
        lowered = path.lower()
        base = lowered.rpartition("/")[2]
        for name in {lowered, base, base.rpartition(".")[0] or base}:
            names.setdefault(name, []).append(path)
    found = [path for word in sorted(written) for path in _find_written(word, names, among)]
    return list(dict.fromkeys(found))


def _find_written(word: str, names: Mapping[str, Sequence[str]], among: Collection[str]) -> list[str]:
    exact = names.get(word, ())
    if "/" in word and not exact:
        exact = [path for path in among if path.lower().endswith(f"/{word}")]
    return list(exact) if len(exact) == 1 else []


def _sum_up(path: str, parts: Mapping[str, float]) -> RankedFile:
    weighed = {name: WEIGHTS[name] * value for name, value in parts.items()}
    return RankedFile(path, sum(weighed.values()), weighed)
