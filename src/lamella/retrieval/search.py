"""Search an index: parse the query, find and score chunks, and return passages.

``NoteSearcher`` answers queries, each passage with the reason why it was found. ``parse_vault_query`` splits a query
into words and filters. ``ChunkMatcher`` finds and scores chunks: SQLite scores a chunk by how rare its matching words
are (bm25). Two consecutive words of the query that are also consecutive in the chunk count as another rare word. Words
in exactly the form of the query add to the scores of the best chunks, because SQLite cannot see that.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import accumulate, chain, pairwise, zip_longest
from typing import NamedTuple

from lamella.core.search.language import is_stop_word
from lamella.core.search.search import QUOTED_PHRASE
from lamella.ports import NoteHit
from lamella.retrieval.chunks import QueryWordFinder, describe_matched_words, has_word, make_excerpt
from lamella.retrieval.database import CHUNK_BITS, IndexFile
from lamella.retrieval.dates import DaySpan, extract_day_range
from lamella.retrieval.words import QueryWord, parse_query_words
from lamella.sources.inventory import normalize_name
from lamella.sources.markdown import iter_inline_tags, normalize_tag

# The weights of a word in the name (none), title, tags, headings, path, properties, body and extra words of a chunk,
# and the bonus for a word in its exact form. Tuned on one half of the questions of ``bench/retrieval.py`` (2026-11-17).
_COLUMN_WEIGHTS = "0.0, 3.0, 3.0, 2.5, 1.5, 0.5, 1.0, 0.5"
_EXACT_WORD_BONUS = 0.1
# Words in more than this share of all chunks are not distinctive. They are dropped if the query has other words.
_COMMON_WORD_SHARE = 0.4
_MIN_COMMON_CHUNKS = 40
# How many chunks are fetched at least. If they belong to too few notes, the number grows by the factor
# ``_FETCH_GROWTH``. The best ``_RESCORED_CHUNKS`` of them are scored again for exact words.
_MIN_FETCHED_CHUNKS = 60
# If the words occur in more chunks than this in total, a query is slow in a large vault and hardly better.
_MAX_MATCHED_CHUNKS = 2_000
# Scoring a chunk takes twenty times as long as finding which words it contains (2026-11-18). If more than this many
# match, only chunks with a rare word, with two words, or with a word in one of the name fields are scored.
_MAX_SCORED_CHUNKS = 700
# The maximum distance of two query words that are searched as a phrase.
_MAX_PHRASE_DISTANCE = 2
_NAME_COLUMNS = "{title tags headings path}"
_FETCH_GROWTH = 8
_RESCORED_CHUNKS = 12
_SELECT_MATCHES = f"SELECT rowid, bm25(chunks, {_COLUMN_WEIGHTS}) AS score FROM chunks WHERE chunks MATCH :match"
_WITHIN_NOTES = f" AND (rowid >> {CHUNK_BITS}) IN (SELECT value FROM json_each(:within))"
# The plus sign keeps SQLite from running the whole full-text query again for each of these numbers.
_AMONG_BEST = " AND +rowid IN (SELECT rowid FROM chunks WHERE chunks MATCH :best)"
_COUNT_MATCHES = "SELECT COUNT(*) FROM (SELECT 1 FROM chunks WHERE chunks MATCH ? LIMIT ?)"
_SELECT_PATHS = "SELECT id, path FROM notes WHERE id IN (SELECT value FROM json_each(?))"
_SELECT_TEXTS = (
    "SELECT rowid, title || ' ' || headings || ' ' || body FROM chunks WHERE rowid IN (SELECT value FROM json_each(?))"
)


class ScoredChunk(NamedTuple):
    """A matching chunk: its number, the path of its note, and its score."""

    chunk_id: int
    path: str
    score: float


class PreparedQuery(NamedTuple):
    """A prepared query: its distinctive words, and the full-text expressions for SQLite.

    If very many chunks match, ``best_expression`` selects the most promising of them first. Otherwise it is empty.
    """

    words: tuple[QueryWord, ...]
    match_expression: str
    best_expression: str


class ChunkMatcher:
    """Finds and scores chunks by the words of a query."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file

    def prepare_query(self, words: str, phrases: Sequence[str]) -> PreparedQuery | None:
        """Prepare a query. Returns None if it has no words."""
        asked = parse_query_words(words)
        quoted = [row for phrase in phrases if (row := parse_query_words(phrase))]
        counts = self._count_words(dict.fromkeys((*asked, *(word for row in quoted for word in row))))
        if not counts:
            return None
        distinctive = self._distinctive_words(counts)
        few = _rarest_words(distinctive)
        # SQLite finds a pair by walking through the matches of both words, which is slow if both occur everywhere.
        rows = [row for row in _list_phrases(asked) if min(counts[row[0]], counts[row[-1]]) <= _MAX_MATCHED_CHUNKS]
        forms, pairs = [_quote_forms(word) for word in few], [_quote_phrase(row) for row in rows]
        match = _join_with_or((*chain(*forms), *pairs))
        best = (
            ""
            if sum(distinctive[word] for word in few) <= _MAX_SCORED_CHUNKS
            else _build_expression_for_best_chunks(forms, pairs, _count_words_to_score_fully(few, distinctive))
        )
        required = [_quote_phrase(row) for row in quoted]
        queries = (" AND ".join((*required, one)) if one else "" for one in (match, best))
        return PreparedQuery(tuple(distinctive), *queries)

    def find_chunks(self, query: PreparedQuery, *, within: Collection[int] | None, min_notes: int) -> list[ScoredChunk]:
        """Return the best chunks by score, then by path, from at least ``notes`` notes if that many match."""
        rows = self._fetch_enough_chunks(query, within, min_notes)
        # The preselection may leave too few notes. Then all matching chunks are scored.
        if query.best_expression and _count_distinct_notes(rows) < min_notes:
            rows = self._fetch_enough_chunks(query._replace(best_expression=""), within, min_notes)
        paths = dict(
            self._file.execute(_SELECT_PATHS, (json.dumps(list({number >> CHUNK_BITS for number, _ in rows})),))
        )
        found = [ScoredChunk(number, paths[number >> CHUNK_BITS], -score) for number, score in rows]
        found.sort(key=_score_key)
        return sorted(
            (*self._rescore_exact(query, found[:_RESCORED_CHUNKS]), *found[_RESCORED_CHUNKS:]), key=_score_key
        )

    def _fetch_enough_chunks(
        self, query_words: PreparedQuery, within: Collection[int] | None, notes: int
    ) -> list[tuple[int, float]]:
        """Return matching chunks, and fetch more until they belong to enough notes or there are no more."""
        limit = max(_MIN_FETCHED_CHUNKS, 3 * notes)
        while True:
            rows = self._select_chunks(query_words, within, limit)
            if len(rows) < limit or _count_distinct_notes(rows) >= notes:
                return rows
            limit *= _FETCH_GROWTH

    def list_bm25_scores(self, query_words: PreparedQuery, within: Collection[int] | None) -> list[tuple[int, float]]:
        """Return every matching chunk with its score. A lower score is better."""
        return self._select_chunks(query_words._replace(best_expression=""), within, -1)

    def _count_words(self, words: Mapping[QueryWord, None]) -> dict[QueryWord, int]:
        """Return in how many chunks each word occurs, counting no further than ``_MAX_MATCHED_CHUNKS`` plus one.

        Very common words are left out if there are others. If every word exceeds the limit, the exact numbers are
        returned.
        """
        counts = {word: self._count_chunks_with(word) for word in words if not is_stop_word(word.text.lower())}
        counts = counts or {word: self._count_chunks_with(word) for word in words}
        if counts and min(counts.values()) > _MAX_MATCHED_CHUNKS:
            return {word: self._count_chunks_with_stem(word.stem) for word in counts}
        return counts

    def _distinctive_words(self, counts: Mapping[QueryWord, int]) -> Mapping[QueryWord, int]:
        """Return the words that occur in few chunks, or all words if all are frequent."""
        [(total,)] = self._file.execute("SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'chunks'")
        most = max(_MIN_COMMON_CHUNKS, total * _COMMON_WORD_SHARE)
        return {word: count for word, count in counts.items() if count <= most} or counts

    def _select_chunks(
        self, query_words: PreparedQuery, within: Collection[int] | None, limit: int
    ) -> list[tuple[int, float]]:
        """Return the best ``limit`` chunks, and all further chunks with the score of the last one."""
        sql = (
            _SELECT_MATCHES
            + (_AMONG_BEST if query_words.best_expression else "")
            + ("" if within is None else _WITHIN_NOTES)
        )
        values: dict[str, object] = {"match": query_words.match_expression, "limit": limit + 1 if limit > 0 else limit}
        if query_words.best_expression:
            values["best"] = query_words.best_expression
        if within is not None:
            values["within"] = json.dumps(sorted(within))
        rows: list[tuple[int, float]] = self._file.execute(f"{sql} ORDER BY score LIMIT :limit", values)
        if not 0 < limit < len(rows):
            return rows
        last = rows[limit - 1][1]
        if rows.pop()[1] == last:
            # The order of equal scores depends on how the index was built, so all chunks with this score are included.
            equals = self._file.execute(f"SELECT * FROM ({sql}) WHERE score = :last", {**values, "last": last})
            rows = [row for row in rows if row[1] < last] + equals
        return rows

    def _rescore_exact(self, query_words: PreparedQuery, found: Sequence[ScoredChunk]) -> list[ScoredChunk]:
        """Return the chunks with a bonus for words in exactly the form of the query."""
        folded_words = [word.text.casefold() for word in query_words.words]
        texts = dict(self._file.execute(_SELECT_TEXTS, (json.dumps([one.chunk_id for one in found]),)))
        return [
            ScoredChunk(chunk, path, score + _EXACT_WORD_BONUS * _count_words_found(folded_words, texts[chunk]))
            for chunk, path, score in found
        ]

    def _count_chunks_with(self, word: QueryWord) -> int:
        if word.stem.endswith("*"):
            # A prefix of one character matches many words, each of which is rare.
            return 0
        [(count,)] = self._file.execute(_COUNT_MATCHES, (_quote_for_fts(word.text), _MAX_MATCHED_CHUNKS + 1))
        return int(count)

    def _count_chunks_with_stem(self, stem: str) -> int:
        rows = self._file.execute("SELECT doc FROM temp.vocabulary WHERE term = ?", (stem,))
        return int(rows[0][0]) if rows else 0


def _rarest_words(counts: Mapping[QueryWord, int]) -> list[QueryWord]:
    """Return the rarest words that together occur in at most ``_MAX_MATCHED_CHUNKS`` chunks.

    Other words would add little and take long. At least one word is returned.
    """
    few: list[QueryWord] = []
    total = 0
    for word in sorted(counts, key=lambda one: (counts[one], one)):
        total += counts[word]
        if few and total > _MAX_MATCHED_CHUNKS:
            break
        few.append(word)
    return few


def _count_words_to_score_fully(few: Sequence[QueryWord], counts: Mapping[QueryWord, int]) -> int:
    """Return for how many of the rarest words all chunks can be scored."""
    totals = accumulate(counts[word] for word in few)
    return sum(total <= _MAX_SCORED_CHUNKS for total in totals)


def _build_expression_for_best_chunks(forms: Sequence[Sequence[str]], pairs: Sequence[str], rare: int) -> str:
    """Return an expression for promising chunks: a rare word, any two words, a pair, or a word in a name field."""
    words = [*map(_join_with_or, forms)]
    both = [f"({word} AND {_join_with_or(words[at:])})" for at, word in enumerate(words[:-1], start=1)]
    return _join_with_or((*words[:rare], *both, *pairs, f"{_NAME_COLUMNS} : {_join_with_or(words)}"))


def _join_with_or(expressions: Sequence[str]) -> str:
    return f"({' OR '.join(dict.fromkeys(expressions))})"


def _count_distinct_notes(rows: Sequence[tuple[int, float]]) -> int:
    return len({number >> CHUNK_BITS for number, _ in rows})


def _score_key(one: ScoredChunk) -> tuple[float, str, int]:
    return -one.score, one.path, one.chunk_id


def _list_phrases(words: Sequence[QueryWord]) -> list[Sequence[QueryWord]]:
    """Return every two consecutive distinctive words, with the common words between them."""
    positions = [at for at, word in enumerate(words) if not is_stop_word(word.text.lower())]
    return [words[at : end + 1] for at, end in pairwise(positions) if end - at <= _MAX_PHRASE_DISTANCE]


def _quote_phrase(words: Sequence[QueryWord]) -> str:
    return _quote_for_fts(" ".join(word.text for word in words))


def _quote_forms(word: QueryWord) -> list[str]:
    return [_quote_for_fts(word.text, word.stem), *map(_quote_for_fts, word.other_terms)]


def _quote_for_fts(text: str, stem: str = "") -> str:
    # Inside quotation marks no character and no word such as NOT or NEAR has a special meaning for SQLite.
    return f'"{text}"*' if stem.endswith("*") else f'"{text}"'


def _count_words_found(words: Sequence[str], text: str) -> int:
    folded = text.casefold()
    return sum(has_word(folded, word) for word in words)


# Queries: words and filters.

# Longer queries are cut. No one types that much, and a query is not a text to compare with others.
MAX_QUERY_CHARS = 4_000
_LINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
_FOLDER = re.compile(r'(?<!\S)(?:path|folder):(?:"([^"]+)"|(\S+))', re.IGNORECASE)
_LINK_PARTS = re.compile(r"[#|]")


class VaultQuery(NamedTuple):
    """A parsed query.

    A note matches if it has any of the ``words`` and all ``phrases``. Notes named by ``links`` come first. The notes
    can be filtered by tags, by folders (any of them) and by days.
    """

    words: str
    phrases: tuple[str, ...]
    links: tuple[str, ...]
    tags: tuple[str, ...]
    folders: tuple[str, ...]
    days: DaySpan | None

    @property
    def has_filters(self) -> bool:
        """Whether the query filters by tags, folders or days."""
        return bool(self.tags or self.folders or self.days)


def parse_vault_query(text: str, *, today: date | None) -> VaultQuery:
    """Parse a query. If ``today`` is None, date expressions are treated as words."""
    text = text[:MAX_QUERY_CHARS]
    # The order matters: each step removes its matches from the text, so that later patterns do not see them.
    links, text = _extract_filter(_LINK, text, lambda match: _LINK_PARTS.split(match[1])[0].strip())
    folders, text = _extract_filter(_FOLDER, text, lambda match: (match[1] or match[2]).strip("/"))
    phrases, text = _extract_filter(QUOTED_PHRASE, text, lambda match: match[1] or match[2])
    tags = [tag for tag, _ in iter_inline_tags(text, 0)]
    for tag in tags:
        text = text.replace(f"#{tag}", " ", 1)
    days, words = (None, text) if today is None else extract_day_range(text, today=today)
    return VaultQuery(
        words=words.strip(),
        phrases=phrases,
        links=tuple(normalize_name(link.strip("/")) for link in links if link),
        tags=tuple(dict.fromkeys(map(normalize_tag, tags))),
        folders=folders,
        days=days,
    )


def _extract_filter(
    pattern: re.Pattern[str], text: str, read: Callable[[re.Match[str]], str]
) -> tuple[tuple[str, ...], str]:
    """Return the matches of a pattern, each once, and the text without them."""
    found = tuple(dict.fromkeys(map(read, pattern.finditer(text))))
    return found, pattern.sub(" ", text)


# The next three chunks of a note add this share of their scores: a note about a subject mentions it more than once.
_NEXT_CHUNK_WEIGHT, _SUMMED_NEXT_CHUNKS = 0.2, 3

_SCORE_DIGITS = 4
# The bits of a chunk's number that are its position in its file.
_CHUNK_MASK = 2**CHUNK_BITS - 1
_CHUNK_COLUMNS = ("name", "title", "tags", "headings", "path", "properties", "body", "extra")
_SELECT_CHUNKS = (
    f"SELECT rowid, {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE rowid IN (SELECT value FROM json_each(?))"
)
_SELECT_NOTE_DATES = "SELECT id, since, modified FROM notes WHERE id IN (SELECT value FROM json_each(?))"


class NoteSearcher:
    """Answers queries from an index."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._matcher = ChunkMatcher(file)

    def search(self, query: str, *, now: datetime, limit: int) -> list[NoteHit]:
        """Return at most ``limit`` passages that match a query, best first.

        Notes that the query links to come first. One passage of every matching note comes before the second of any.
        """
        with self._file.read_transaction():
            asked = parse_vault_query(query, today=now.date())
            named = self._notes_by_link(asked.links)
            missed = " ".join(link for link in asked.links if link not in named)
            query_words = self._matcher.prepare_query(f"{asked.words} {missed}".strip(), asked.phrases)
            within = self._filter_notes(asked, now) if asked.has_filters else None
            first = list(dict.fromkeys(note for notes in named.values() for note in notes))
            ranked = self._rank_chunks_by_note(query_words, within, first, limit=limit)
            if within and (query_words is None or (asked.days and not ranked)):
                # "What happened last week" has words that match nothing, but asks for all notes of that week.
                ranked += [
                    one
                    for one in self._list_filtered_notes(within, limit)
                    if one[0].chunk_id >> CHUNK_BITS not in first
                ]
            return self._make_hits(_take_turns_by_note(ranked, limit), asked, query_words)

    def rank_notes(self, question: str, paths: Sequence[str]) -> list[str]:
        """Return the paths ``paths``, each once, ordered by how well the notes match a question."""
        with self._file.read_transaction():
            asked = parse_vault_query(question, today=None)
            query_words = self._matcher.prepare_query(" ".join((asked.words, *asked.links)), asked.phrases)
            numbers = dict(self._file.execute("SELECT id, path FROM notes"))
            selected = set(paths)
            within = {number for number, path in numbers.items() if path in selected}
            scores: dict[str, list[float]] = {}
            if query_words is not None:
                for chunk, score in self._matcher.list_bm25_scores(query_words, within):
                    scores.setdefault(numbers[chunk >> CHUNK_BITS], []).append(-score)
        totals = {path: _score_note(sorted(found, reverse=True)) for path, found in scores.items()}
        return sorted(dict.fromkeys(paths), key=lambda path: (-totals.get(path, 0.0), path))

    def _rank_chunks_by_note(
        self,
        query_words: PreparedQuery | None,
        within: Collection[int] | None,
        linked_notes: Sequence[int],
        *,
        limit: int,
    ) -> list[list[ScoredChunk]]:
        """Return the chunks of each note, best first: linked notes first, then the others by score."""
        first = [self._rank_linked_note(note, query_words, limit) for note in linked_notes]
        found = (
            []
            if query_words is None
            else self._matcher.find_chunks(query_words, within=within, min_notes=limit + len(linked_notes))
        )
        notes: dict[str, list[ScoredChunk]] = {}
        for one in found:
            notes.setdefault(one.path, []).append(one)
        others = sorted(
            notes.values(), key=lambda chunks: (-_score_note([one.score for one in chunks]), chunks[0].path)
        )
        return [*first, *(one for one in others if one[0].chunk_id >> CHUNK_BITS not in linked_notes)]

    def _rank_linked_note(self, note: int, query_words: PreparedQuery | None, limit: int) -> list[ScoredChunk]:
        """Return the chunks of a linked note: those that match, or if none does, its first chunks in order."""
        found = [] if query_words is None else self._matcher.find_chunks(query_words, within=[note], min_notes=1)
        return found or self._list_chunks(note, limit)

    def _list_chunks(self, note: int, limit: int) -> list[ScoredChunk]:
        [(path, count)] = self._file.execute("SELECT path, chunks FROM notes WHERE id = ?", (note,))
        return [ScoredChunk((note << CHUNK_BITS) + at, path, 0.0) for at in range(min(count, limit))]

    def _list_filtered_notes(self, within: Collection[int], limit: int) -> list[list[ScoredChunk]]:
        """Return notes that only filters select, the most recent first."""
        rows = self._file.execute("SELECT id, COALESCE(since, ''), modified, path FROM notes WHERE fault IS NULL")
        # Two sorts, because the path is ascending and the time descending. The second sort is stable.
        found = sorted((row for row in rows if row[0] in within), key=lambda row: row[3])
        found.sort(key=lambda row: (row[1], row[2]), reverse=True)
        return [chunks for note, *_ in found[:limit] if (chunks := self._list_chunks(note, limit))]

    def _notes_by_link(self, links: Sequence[str]) -> Mapping[str, list[int]]:
        """Return the notes that each link can refer to, ordered by path. Links without a note are left out."""
        sql = "SELECT notes.id FROM names JOIN notes ON notes.id = names.note WHERE names.name = ? ORDER BY notes.path"
        found = {link: [number for (number,) in self._file.execute(sql, (link,))] for link in links}
        return {link: numbers for link, numbers in found.items() if numbers}

    def _filter_notes(self, query: VaultQuery, now: datetime) -> set[int]:
        """Return the notes that the query's filters allow."""
        sets = []
        if query.tags:
            # "0" is the character after "/", so the range covers all nested tags such as tag/part.
            sql = "SELECT note FROM tags WHERE tag = ? OR (tag >= ? AND tag < ?)"
            rows = (self._file.execute(sql, (tag, f"{tag}/", f"{tag}0")) for tag in query.tags)
            sets.append({number for found in rows for (number,) in found})
        if query.folders:
            paths = self._file.execute("SELECT id, path FROM notes")
            sets.append({number for number, path in paths if any(_is_in_folder(path, one) for one in query.folders)})
        if query.days:
            sets.append(self._notes_in_days(query.days, now))
        return set.intersection(*sets)

    def _notes_in_days(self, days: DaySpan, now: datetime) -> set[int]:
        """Return the notes of a period by the date in their name, or without one by the file's modification time."""
        rows = self._file.execute(
            "SELECT id FROM notes WHERE (since < :end AND until > :start)"
            " OR (since IS NULL AND modified >= :after AND modified < :before)",
            {
                "start": days.start.isoformat(),
                "end": days.end.isoformat(),
                "after": _day_start_ns(days.start, now),
                "before": _day_start_ns(days.end, now),
            },
        )
        return {number for (number,) in rows}

    def _make_hits(
        self, found: Sequence[ScoredChunk], query: VaultQuery, query_words: PreparedQuery | None
    ) -> list[NoteHit]:
        needles = None if query_words is None else QueryWordFinder(query_words.words)
        rows = self._file.execute(_SELECT_CHUNKS, (json.dumps([one.chunk_id for one in found]),))
        fields = {number: dict(zip(_CHUNK_COLUMNS, row, strict=True)) for number, *row in rows}
        days = self._dates_by_chunk(found) if query.days else {}
        return [
            _make_hit(one, fields[one.chunk_id], query=query, terms=needles, day=days.get(one.chunk_id, ""))
            for one in found
        ]

    def _dates_by_chunk(self, found: Sequence[ScoredChunk]) -> Mapping[int, str]:
        """Return the date of each chunk: the date in its note's name, or the file's modification date."""
        notes = self._file.execute(
            _SELECT_NOTE_DATES, (json.dumps(list({one.chunk_id >> CHUNK_BITS for one in found})),)
        )
        days = {number: since or _format_day(modified) for number, since, modified in notes}
        return {one.chunk_id: days[one.chunk_id >> CHUNK_BITS] for one in found}


def _take_turns_by_note(ranked: Sequence[Sequence[ScoredChunk]], limit: int) -> list[ScoredChunk]:
    """Return the best chunk of every note, then the second of every note, and so on."""
    levels: Iterator[tuple[ScoredChunk | None, ...]] = zip_longest(*ranked)
    return [one for level in levels for one in level if one is not None][:limit]


def _score_note(scores: Sequence[float]) -> float:
    """Return the score of a note from the scores of its chunks, best first."""
    return scores[0] + _NEXT_CHUNK_WEIGHT * sum(scores[1 : 1 + _SUMMED_NEXT_CHUNKS])


def _is_in_folder(path: str, folder: str) -> bool:
    folded_folder, found = folder.casefold(), path.casefold()
    return found == folded_folder or found.startswith(f"{folded_folder}/")


def _day_start_ns(day: date, now: datetime) -> int:
    """Return the start of a day in nanoseconds, in the time zone of the query.

    ``date.min`` and ``date.max`` mean an open end. They cannot be converted to a timestamp.
    """
    if day in (date.min, date.max):
        return 0 if day == date.min else 2**63 - 1
    return int(datetime.combine(day, time(), tzinfo=now.tzinfo).timestamp()) * 1_000_000_000


def _make_hit(
    scored_chunk: ScoredChunk, fields: Mapping[str, str], *, query: VaultQuery, terms: QueryWordFinder | None, day: str
) -> NoteHit:
    title = fields["title"].partition("\n")[0]
    reasons = [describe_matched_words(terms, fields) if terms is not None else "", *_describe_filters(query, day)]
    return NoteHit(
        id=fields["name"],
        path=scored_chunk.path,
        title=title,
        heading=fields["headings"],
        text=fields["body"],
        excerpt=make_excerpt(fields["body"], terms),
        score=round(scored_chunk.score, _SCORE_DIGITS),
        why="; ".join(filter(None, reasons)) or f"named [[{title}]]",
        passage_index=scored_chunk.chunk_id & _CHUNK_MASK,
    )


def _describe_filters(query: VaultQuery, day: str) -> Iterator[str]:
    if query.tags:
        yield "tagged " + ", ".join(f"#{tag}" for tag in query.tags)
    if query.folders:
        yield "in " + ", ".join(query.folders)
    if query.days:
        yield f"{query.days.words}: {day}"


def _format_day(modified: int) -> str:
    return f"{datetime.fromtimestamp(modified / 1e9).astimezone():%Y-%m-%d}"
