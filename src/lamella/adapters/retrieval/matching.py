"""Matching: which chunks have the words of a question, and how much each of them counts.

SQLite scores a chunk by how rare the words are that it has (bm25), and two words that were asked in a row and stand in
a row count as a rare word more. What it cannot see is added for the best of them: words in the very form of the
question.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from lamella.adapters.retrieval.database import CHUNK_BITS, IndexFile
from lamella.adapters.retrieval.passages import has_word
from lamella.adapters.retrieval.words import AskedWord, ask
from lamella.core.search.small_words import is_common

# What a word counts in the name (nothing), title, tags, headings, path, properties, body and extra words of a chunk,
# and what one in its very form adds. Chosen on one half of the questions of ``bench/retrieval.py`` (2026-11-17).
_WEIGHTS = "0.0, 3.0, 3.0, 2.5, 1.5, 0.5, 1.0, 0.5"
_EXACT = 0.1
# Words in more than this share of chunks tell little; a question that has others does without them.
_COMMON = 0.4
_FEW = 40
# How many chunks are fetched at least, how many more each time that these were of too few notes, and how many of them
# are looked at closely.
_FETCHED = 60
# To score more chunks than this makes a question slow in a large vault, and hardly better.
_MANY = 2_000
# How far apart two words may be that are looked for as they stand in the question.
_ROW = 2
_NAMED = "{title tags headings path}"
_WIDER = 8
_CLOSELY = 12
_MATCH = f"SELECT rowid, bm25(chunks, {_WEIGHTS}) AS score FROM chunks WHERE chunks MATCH :match"
_WITHIN = f" AND (rowid >> {CHUNK_BITS}) IN (SELECT value FROM json_each(:within))"
_PATHS = "SELECT id, path FROM notes WHERE id IN (SELECT value FROM json_each(?))"
_TEXTS = (
    "SELECT rowid, title || ' ' || headings || ' ' || body FROM chunks WHERE rowid IN (SELECT value FROM json_each(?))"
)


class ScoredChunk(NamedTuple):
    """A chunk that has words of a question: its number, its note's path, and what it scored."""

    chunk: int
    path: str
    score: float


class QuestionWords(NamedTuple):
    """A question as it is matched: the words that tell something, and what SQLite is asked.

    Where all of them are in very many chunks, it is asked first for those that have them in their names.
    """

    words: tuple[AskedWord, ...]
    match: str
    named: str


class Matcher:
    """Finds chunks by words."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def word(self, words: str, phrases: Sequence[str]) -> QuestionWords | None:
        """A question made ready; none where it has no words."""
        asked = ask(words)
        rows = [ask(phrase) for phrase in phrases]
        required = [_quote(" ".join(word.text for word in row)) for row in rows if row]
        counts = self._count_telling(dict.fromkeys((*asked, *(word for row in rows for word in row))))
        if not counts:
            return None
        few = _take_few(counts)
        told = [_quote(word.text, word.stem) for word in few]
        told += [_quote(other) for word in few for other in word.others]
        told += [_quote(" ".join(word.text for word in row)) for row in _list_rows(asked)]
        match = f"({' OR '.join(dict.fromkeys(told))})"
        named = f"{_NAMED} : {match}" if min(counts.values()) > _MANY else ""
        return QuestionWords(tuple(counts), *(" AND ".join((*required, one)) if one else "" for one in (match, named)))

    def find(self, wording: QuestionWords, *, within: Collection[int] | None, notes: int) -> list[ScoredChunk]:
        """The chunks that fit best, best first, of equals by their paths; of this many notes if so many fit."""
        rows = self._fetch(wording.named, within, notes) if wording.named else []
        if _count_notes(rows) < notes:
            rows = self._fetch(wording.match, within, notes)
        paths = dict(self._file.run(_PATHS, (json.dumps(list({number >> CHUNK_BITS for number, _ in rows})),)))
        found = [ScoredChunk(number, paths[number >> CHUNK_BITS], -score) for number, score in rows]
        found.sort(key=_by_score)
        return sorted((*self._look_closer(wording, found[:_CLOSELY]), *found[_CLOSELY:]), key=_by_score)

    def _fetch(self, match: str, within: Collection[int] | None, notes: int) -> list[tuple[int, float]]:
        limit = max(_FETCHED, 3 * notes)
        while True:
            rows = self._match(match, within, limit)
            if len(rows) < limit or _count_notes(rows) >= notes:
                return rows
            limit *= _WIDER

    def score_all(self, wording: QuestionWords, within: Collection[int] | None) -> list[tuple[int, float]]:
        """Every chunk that fits, with its score; the lower, the better."""
        return self._match(wording.match, within, -1)

    def _count_telling(self, words: Mapping[AskedWord, None]) -> dict[AskedWord, int]:
        """The words that are in few chunks, where all are in many, all of them; each with how many it is in."""
        [(total,)] = self._file.run("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'chunks'")
        counts = {word: self._count(word.stem) for word in words if not is_common(word.text.lower())}
        counts = counts or {word: self._count(word.stem) for word in words}
        most = max(_FEW, total * _COMMON)
        return {word: count for word, count in counts.items() if count <= most} or counts

    def _match(self, match: str, within: Collection[int] | None, limit: int) -> list[tuple[int, float]]:
        sql = _MATCH if within is None else _MATCH + _WITHIN
        values: dict[str, object] = {"match": match, "limit": limit + 1 if limit > 0 else limit}
        if within is not None:
            values["within"] = json.dumps(sorted(within))
        rows: list[tuple[int, float]] = self._file.run(f"{sql} ORDER BY score LIMIT :limit", values)
        if not 0 < limit < len(rows):
            return rows
        last = rows[limit - 1][1]
        if rows.pop()[1] == last:
            # Which of equals came first is a matter of how the index was made: all of them are taken.
            equals = self._file.run(f"SELECT * FROM ({sql}) WHERE score = :last", {**values, "last": last})
            rows = [row for row in rows if row[1] < last] + equals
        return rows

    def _look_closer(self, wording: QuestionWords, found: Sequence[ScoredChunk]) -> list[ScoredChunk]:
        """The same with what words in their very form add."""
        wanted = [word.text.casefold() for word in wording.words]
        texts = dict(self._file.run(_TEXTS, (json.dumps([one.chunk for one in found]),)))
        return [
            ScoredChunk(chunk, path, score + _EXACT * _count_exact(wanted, texts[chunk]))
            for chunk, path, score in found
        ]

    def _count(self, stem: str) -> int:
        rows = self._file.run("SELECT doc FROM temp.vocabulary WHERE term = ?", (stem,))
        return int(rows[0][0]) if rows else 0


def _take_few(counts: Mapping[AskedWord, int]) -> list[AskedWord]:
    """The rarest words, as many as are in so many chunks together: what the others add is little, and takes long."""
    few: list[AskedWord] = []
    total = 0
    for word in sorted(counts, key=lambda one: (counts[one], one)):
        total += counts[word]
        if few and total > _MANY:
            break
        few.append(word)
    return few


def _count_notes(rows: Sequence[tuple[int, float]]) -> int:
    return len({number >> CHUNK_BITS for number, _ in rows})


def _by_score(one: ScoredChunk) -> tuple[float, str, int]:
    return -one.score, one.path, one.chunk


def _list_rows(asked: Sequence[AskedWord]) -> list[Sequence[AskedWord]]:
    """Every two words that follow each other and tell something, with what may stand between them."""
    places = [at for at, word in enumerate(asked) if not is_common(word.text.lower())]
    return [asked[at : end + 1] for at, end in pairwise(places) if end - at <= _ROW]


def _quote(text: str, stem: str = "") -> str:
    # In quotation marks no sign and no word such as NOT or NEAR means anything to SQLite.
    return f'"{text}"*' if stem.endswith("*") else f'"{text}"'


def _count_exact(words: Sequence[str], text: str) -> int:
    folded = text.casefold()
    return sum(has_word(folded, word) for word in words)
