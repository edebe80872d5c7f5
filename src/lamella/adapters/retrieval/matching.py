"""Matching: which chunks have the words of a question, and how much each of them counts.

SQLite scores a chunk by how rare the words are that it has (bm25). What that does not see is added for the best of them:
words that stand beside each other as they were asked, and words in the very form that was asked.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from math import log
from typing import NamedTuple

from lamella.adapters.retrieval.database import CHUNK_BITS, IndexFile
from lamella.adapters.retrieval.words import Vocabulary

# What a word counts in the title, tags, headings, path, properties and body of a chunk, and the share of a pair of
# neighbours and of an exact form. Chosen on one half of the questions of ``bench/retrieval.py`` (2026-11-17).
_WEIGHTS = "4.0, 3.0, 2.5, 1.5, 0.5, 1.0"
_BESIDE = 0.6
_EXACT = 0.05
# Words in more than this share of chunks tell little; a question that has others does without them.
_COMMON = 0.4
_FEW = 40
# How many chunks are looked at closely, at least, and how many more each time that these were of too few notes.
_CLOSELY = 60
_WIDER = 8
_MATCH = f"SELECT rowid, bm25(words, {_WEIGHTS}) AS score FROM words WHERE words MATCH :match"
_WITHIN = f" AND (rowid >> {CHUNK_BITS}) IN (SELECT value FROM json_each(:within))"
_CLOSER = """
SELECT words.rowid, notes.path, chunks.text, ' ' || words.title || ' | ' || words.headings || ' | ' || words.body || ' '
FROM json_each(:ids) AS wanted
JOIN words ON words.rowid = wanted.value
JOIN chunks ON chunks.id = wanted.value
JOIN notes ON notes.id = (wanted.value >> 20)
"""


class Candidate(NamedTuple):
    """A chunk that has words of a question: its number, its note's path, and what it scored."""

    chunk: int
    path: str
    score: float


class Wording(NamedTuple):
    """A question as it is matched: its words in each language, how much each is worth, and what must stand."""

    texts: tuple[str, ...]
    runs: tuple[tuple[str, ...], ...]
    worth: dict[str, float]
    match: str


class Matcher:
    """Finds chunks by words."""

    def __init__(self, file: IndexFile, vocabulary: Vocabulary) -> None:
        self._file = file
        self._vocabulary = vocabulary

    def word(self, words: str, phrases: Sequence[str]) -> Wording | None:
        """A question made ready; none where it has no words, or none that any chunk has."""
        runs = self._vocabulary.ask(" ".join((words, *phrases)))
        [(total,)] = self._file.run("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'chunks'")
        counts = {term: count for run in runs for term in run if (count := self._count(term))}
        worth = {term: log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
        telling = [term for term in worth if counts[term] <= max(_FEW, total * _COMMON)] or list(worth)
        required = [one for phrase in phrases if (one := self._write_phrase(phrase))]
        if not telling:
            return None
        match = " OR ".join(map(_quote, telling))
        texts = tuple(text.casefold() for text in words.split())
        return Wording(texts, runs, worth, " AND ".join((*required, f"({match})")))

    def find(self, wording: Wording, *, within: Collection[int] | None, notes: int) -> list[Candidate]:
        """The chunks that fit best, best first, of equals by their paths; of this many notes if so many fit."""
        limit = max(_CLOSELY, 3 * notes)
        while True:
            rows = self._match(wording.match, within, limit)
            if len(rows) < limit or len({number >> CHUNK_BITS for number, _ in rows}) >= notes:
                break
            limit *= _WIDER
        return sorted(self._look_closer(wording, rows), key=lambda one: (-one.score, one.path, one.chunk))

    def score_all(self, wording: Wording, within: Collection[int] | None) -> list[tuple[int, float]]:
        """Every chunk that fits, with its score."""
        return self._match(wording.match, within, -1)

    def _match(self, match: str, within: Collection[int] | None, limit: int) -> list[tuple[int, float]]:
        sql = _MATCH if within is None else _MATCH + _WITHIN
        values = {"match": match, "within": json.dumps(sorted(within or ())), "limit": limit}
        rows = self._file.run(f"{sql} ORDER BY score LIMIT :limit", values)
        if len(rows) == limit and limit > 0:
            # Where the last of them has equals that were left out, which came first is a matter of how the index was
            # made: all of them are taken.
            equals = self._file.run(f"{sql} AND score = :last", {**values, "last": rows[-1][1]})
            rows = [row for row in rows if row[1] < rows[-1][1]] + equals
        return rows

    def _look_closer(self, wording: Wording, rows: Sequence[tuple[int, float]]) -> Iterator[Candidate]:
        scores = dict(rows)
        for number, path, text, reduced in self._file.run(_CLOSER, {"ids": json.dumps(list(scores))}):
            score = -scores[number] + _BESIDE * _score_neighbours(wording, reduced)
            yield Candidate(number, path, score + _EXACT * _score_exact(wording, text))

    def _count(self, term: str) -> int:
        if term.endswith("*"):
            return 1
        rows = self._file.run("SELECT doc FROM temp.vocabulary WHERE term = ?", (term,))
        return int(rows[0][0]) if rows else 0

    def _write_phrase(self, phrase: str) -> str:
        told = (" ".join(run).replace("*", "") for run in self._vocabulary.ask(phrase) if run)
        quoted = [f'"{one}"' for one in told]
        return f"({' OR '.join(quoted)})" if quoted else ""


def _quote(term: str) -> str:
    # In quotation marks no sign and no word such as NOT or NEAR means anything to SQLite.
    return f'"{term[:-1]}"*' if term.endswith("*") else f'"{term}"'


def _score_neighbours(wording: Wording, reduced: str) -> float:
    worth = wording.worth
    pairs = {pair for run in wording.runs for pair in zip(run, run[1:], strict=False)}
    return sum(
        worth[first] + worth[second]
        for first, second in pairs
        if first in worth and second in worth and f" {first} {second} " in reduced
    )


def _score_exact(wording: Wording, text: str) -> float:
    folded = text.casefold()
    return float(sum(_has_word(folded, word) for word in wording.texts))


def _has_word(text: str, word: str) -> bool:
    """Whether a word stands in a text as it is, and not as a part of another."""
    return word in text and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
