"""Matching: which chunks have the words of a question, and how much each of them counts.

SQLite scores a chunk by how rare the words are that it has (bm25), and two words that were asked in a row and stand in
a row count as a rare word more. What it cannot see is added for the best of them: words in the very form of the
question.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, chain, pairwise
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
# The words of more chunks than this together make a question slow in a large vault, and hardly better.
_MANY = 2_000
# To score a chunk takes twenty times as long as to see which words it has (2026-11-18). Where there are more than this,
# only those are scored that have a rare word, two words, or one in their names.
_SCORED = 700
# How far apart two words may be that are looked for as they stand in the question.
_ROW = 2
_NAMED = "{title tags headings path}"
_WIDER = 8
_CLOSELY = 12
_MATCH = f"SELECT rowid, bm25(chunks, {_WEIGHTS}) AS score FROM chunks WHERE chunks MATCH :match"
_WITHIN = f" AND (rowid >> {CHUNK_BITS}) IN (SELECT value FROM json_each(:within))"
# The plus sign keeps SQLite from asking the whole question again for each of these numbers.
_AMONG = " AND +rowid IN (SELECT rowid FROM chunks WHERE chunks MATCH :best)"
_COUNT = "SELECT COUNT(*) FROM (SELECT 1 FROM chunks WHERE chunks MATCH ? LIMIT ?)"
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

    Where very many chunks have some of them, it is asked first for the ``best`` of these.
    """

    words: tuple[AskedWord, ...]
    match: str
    best: str


class Matcher:
    """Finds chunks by words."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def word(self, words: str, phrases: Sequence[str]) -> QuestionWords | None:
        """A question made ready; none where it has no words."""
        asked = ask(words)
        quoted = [row for phrase in phrases if (row := ask(phrase))]
        counts = self._count_all(dict.fromkeys((*asked, *(word for row in quoted for word in row))))
        if not counts:
            return None
        telling = self._take_telling(counts)
        few = _take_few(telling)
        # Where two words stand in a row is known once both are walked through, which is long where both are everywhere.
        rows = [row for row in _list_rows(asked) if min(counts[row[0]], counts[row[-1]]) <= _MANY]
        forms, pairs = [_quote_forms(word) for word in few], [_quote_row(row) for row in rows]
        match = _join_any((*chain(*forms), *pairs))
        best = (
            "" if sum(telling[word] for word in few) <= _SCORED else _join_best(forms, pairs, _count_rare(few, telling))
        )
        required = [_quote_row(row) for row in quoted]
        wanted = (" AND ".join((*required, one)) if one else "" for one in (match, best))
        return QuestionWords(tuple(telling), *wanted)

    def find(self, wording: QuestionWords, *, within: Collection[int] | None, notes: int) -> list[ScoredChunk]:
        """The chunks that fit best, best first, of equals by their paths; of this many notes if so many fit."""
        rows = self._fetch(wording, within, notes)
        if wording.best and _count_notes(rows) < notes:
            rows = self._fetch(wording._replace(best=""), within, notes)
        paths = dict(self._file.run(_PATHS, (json.dumps(list({number >> CHUNK_BITS for number, _ in rows})),)))
        found = [ScoredChunk(number, paths[number >> CHUNK_BITS], -score) for number, score in rows]
        found.sort(key=_by_score)
        return sorted((*self._look_closer(wording, found[:_CLOSELY]), *found[_CLOSELY:]), key=_by_score)

    def _fetch(self, wording: QuestionWords, within: Collection[int] | None, notes: int) -> list[tuple[int, float]]:
        limit = max(_FETCHED, 3 * notes)
        while True:
            rows = self._match(wording, within, limit)
            if len(rows) < limit or _count_notes(rows) >= notes:
                return rows
            limit *= _WIDER

    def score_all(self, wording: QuestionWords, within: Collection[int] | None) -> list[tuple[int, float]]:
        """Every chunk that fits, with its score; the lower, the better."""
        return self._match(wording._replace(best=""), within, -1)

    def _count_all(self, words: Mapping[AskedWord, None]) -> dict[AskedWord, int]:
        """How many chunks have each of the words, or that it is more than many; small words where there is no other."""
        counts = {word: self._count(word) for word in words if not is_common(word.text.lower())}
        counts = counts or {word: self._count(word) for word in words}
        if counts and min(counts.values()) > _MANY:
            return {word: self._count_exactly(word.stem) for word in counts}
        return counts

    def _take_telling(self, counts: Mapping[AskedWord, int]) -> Mapping[AskedWord, int]:
        """The words that are in few chunks; where all are in many, all of them."""
        [(total,)] = self._file.run("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'chunks'")
        most = max(_FEW, total * _COMMON)
        return {word: count for word, count in counts.items() if count <= most} or counts

    def _match(self, wording: QuestionWords, within: Collection[int] | None, limit: int) -> list[tuple[int, float]]:
        sql = _MATCH + (_AMONG if wording.best else "") + ("" if within is None else _WITHIN)
        values: dict[str, object] = {"match": wording.match, "limit": limit + 1 if limit > 0 else limit}
        if wording.best:
            values["best"] = wording.best
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

    def _count(self, word: AskedWord) -> int:
        if word.stem.endswith("*"):
            # What begins with a character is many words, each of them rare.
            return 0
        [(count,)] = self._file.run(_COUNT, (_quote(word.text), _MANY + 1))
        return int(count)

    def _count_exactly(self, stem: str) -> int:
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


def _count_rare(few: Sequence[AskedWord], counts: Mapping[AskedWord, int]) -> int:
    """How many of the rarest words can have all of their chunks scored."""
    totals = accumulate(counts[word] for word in few)
    return sum(total <= _SCORED for total in totals)


def _join_best(forms: Sequence[Sequence[str]], pairs: Sequence[str], rare: int) -> str:
    """What the chunks have that come first: a rare word, any two words, two in a row, or one in their names."""
    words = [*map(_join_any, forms)]
    both = [f"({word} AND {_join_any(words[at:])})" for at, word in enumerate(words[:-1], start=1)]
    return _join_any((*words[:rare], *both, *pairs, f"{_NAMED} : {_join_any(words)}"))


def _join_any(told: Sequence[str]) -> str:
    return f"({' OR '.join(dict.fromkeys(told))})"


def _count_notes(rows: Sequence[tuple[int, float]]) -> int:
    return len({number >> CHUNK_BITS for number, _ in rows})


def _by_score(one: ScoredChunk) -> tuple[float, str, int]:
    return -one.score, one.path, one.chunk


def _list_rows(asked: Sequence[AskedWord]) -> list[Sequence[AskedWord]]:
    """Every two words that follow each other and tell something, with what may stand between them."""
    places = [at for at, word in enumerate(asked) if not is_common(word.text.lower())]
    return [asked[at : end + 1] for at, end in pairwise(places) if end - at <= _ROW]


def _quote_row(row: Sequence[AskedWord]) -> str:
    return _quote(" ".join(word.text for word in row))


def _quote_forms(word: AskedWord) -> list[str]:
    return [_quote(word.text, word.stem), *map(_quote, word.others)]


def _quote(text: str, stem: str = "") -> str:
    # In quotation marks no sign and no word such as NOT or NEAR means anything to SQLite.
    return f'"{text}"*' if stem.endswith("*") else f'"{text}"'


def _count_exact(words: Sequence[str], text: str) -> int:
    folded = text.casefold()
    return sum(has_word(folded, word) for word in words)
