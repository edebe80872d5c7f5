"""Answers: from a question to passages, each with why it was found."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import zip_longest

from lamella.adapters.retrieval.database import CHUNK_BITS, IndexFile
from lamella.adapters.retrieval.days import DaySpan
from lamella.adapters.retrieval.matching import Matcher, QuestionWords, ScoredChunk
from lamella.adapters.retrieval.passages import Needles, cut_passage, tell_words
from lamella.adapters.retrieval.query import Question, read_question
from lamella.holdings import NoteHit

# What the next best chunks of a note add to its best one: a note that is about something says so more than once.
_REST, _RESTS = 0.2, 3
_DIGITS = 4
# What of a chunk's number is its place in its file.
_PLACE = 2**CHUNK_BITS - 1
_COLUMNS = ("name", "title", "tags", "headings", "path", "properties", "body", "extra")
_ROWS = f"SELECT rowid, {', '.join(_COLUMNS)} FROM chunks WHERE rowid IN (SELECT value FROM json_each(?))"
_NOTES = "SELECT id, since, modified FROM notes WHERE id IN (SELECT value FROM json_each(?))"


class Finder:
    """Answers questions from an index."""

    def __init__(self, file: IndexFile) -> None:
        self._file = file
        self._matcher = Matcher(file)

    def search(self, query: str, *, now: datetime, limit: int) -> list[NoteHit]:
        with self._file.reading():
            asked = read_question(query, today=now.date())
            named = self._find_named(asked.links)
            missed = " ".join(link for link in asked.links if link not in named)
            wording = self._matcher.word(f"{asked.words} {missed}".strip(), asked.phrases)
            within = self._find_within(asked, now) if asked.is_narrow else None
            first = list(dict.fromkeys(note for notes in named.values() for note in notes))
            ranked = self._rank(wording, within, first, limit=limit)
            if within and (wording is None or (asked.days and not ranked)):
                # "What happened last week" has a word, and asks for all that there is.
                ranked += [one for one in self._list_within(within, limit) if one[0].chunk >> CHUNK_BITS not in first]
            return self._make_hits(_spread(ranked, limit), asked, wording)

    def rank_notes(self, question: str, among: Sequence[str]) -> list[str]:
        with self._file.reading():
            asked = read_question(question, today=None)
            wording = self._matcher.word(" ".join((asked.words, *asked.links)), asked.phrases)
            numbers = dict(self._file.run("SELECT id, path FROM notes"))
            wanted = set(among)
            within = {number for number, path in numbers.items() if path in wanted}
            scores: dict[str, list[float]] = {}
            if wording is not None:
                for chunk, score in self._matcher.score_all(wording, within):
                    scores.setdefault(numbers[chunk >> CHUNK_BITS], []).append(-score)
        totals = {path: _sum_up(sorted(found, reverse=True)) for path, found in scores.items()}
        return sorted(dict.fromkeys(among), key=lambda path: (-totals.get(path, 0.0), path))

    def _rank(
        self, wording: QuestionWords | None, within: Collection[int] | None, named: Sequence[int], *, limit: int
    ) -> list[list[ScoredChunk]]:
        """The chunks of each note, best first; notes that were named first, then the others by what they score."""
        first = [self._rank_named(note, wording, limit) for note in named]
        found = [] if wording is None else self._matcher.find(wording, within=within, notes=limit + len(named))
        notes: dict[str, list[ScoredChunk]] = {}
        for one in found:
            notes.setdefault(one.path, []).append(one)
        others = sorted(notes.values(), key=lambda chunks: (-_sum_up([one.score for one in chunks]), chunks[0].path))
        return [*first, *(one for one in others if one[0].chunk >> CHUNK_BITS not in named)]

    def _rank_named(self, note: int, wording: QuestionWords | None, limit: int) -> list[ScoredChunk]:
        """The chunks of a note that was named: those that fit, else all of them as they stand."""
        found = [] if wording is None else self._matcher.find(wording, within=[note], notes=1)
        return found or self._list_chunks(note, limit)

    def _list_chunks(self, note: int, limit: int) -> list[ScoredChunk]:
        [(path, count)] = self._file.run("SELECT path, chunks FROM notes WHERE id = ?", (note,))
        return [ScoredChunk((note << CHUNK_BITS) + at, path, 0.0) for at in range(min(count, limit))]

    def _list_within(self, within: Collection[int], limit: int) -> list[list[ScoredChunk]]:
        """Notes that are asked for by where they are alone: the last changed first."""
        rows = self._file.run("SELECT id, COALESCE(since, ''), modified, path FROM notes WHERE fault IS NULL")
        found = sorted((row for row in rows if row[0] in within), key=lambda row: row[3])
        found.sort(key=lambda row: (row[1], row[2]), reverse=True)
        return [chunks for note, *_ in found[:limit] if (chunks := self._list_chunks(note, limit))]

    def _find_named(self, links: Sequence[str]) -> Mapping[str, list[int]]:
        """The notes that each link can mean, those by their paths first."""
        sql = "SELECT notes.id FROM names JOIN notes ON notes.id = names.note WHERE names.name = ? ORDER BY notes.path"
        found = {link: [number for (number,) in self._file.run(sql, (link,))] for link in links}
        return {link: numbers for link, numbers in found.items() if numbers}

    def _find_within(self, asked: Question, now: datetime) -> set[int]:
        """The notes that a question allows."""
        sets = []
        if asked.tags:
            sql = "SELECT note FROM tags WHERE tag = ? OR (tag >= ? AND tag < ?)"
            rows = (self._file.run(sql, (tag, f"{tag}/", f"{tag}0")) for tag in asked.tags)
            sets.append({number for found in rows for (number,) in found})
        if asked.folders:
            paths = self._file.run("SELECT id, path FROM notes")
            sets.append({number for number, path in paths if any(_is_below(path, one) for one in asked.folders)})
        if asked.days:
            sets.append(self._find_dated(asked.days, now))
        return set.intersection(*sets)

    def _find_dated(self, days: DaySpan, now: datetime) -> set[int]:
        """Notes of these days by their names; where a name says nothing, by when the file was changed."""
        rows = self._file.run(
            "SELECT id FROM notes WHERE (since < :end AND until > :start)"
            " OR (since IS NULL AND modified >= :after AND modified < :before)",
            {
                "start": days.start.isoformat(),
                "end": days.end.isoformat(),
                "after": _count_ns(days.start, now),
                "before": _count_ns(days.end, now),
            },
        )
        return {number for (number,) in rows}

    def _make_hits(self, found: Sequence[ScoredChunk], asked: Question, wording: QuestionWords | None) -> list[NoteHit]:
        needles = None if wording is None else Needles(wording.words)
        rows = self._file.run(_ROWS, (json.dumps([one.chunk for one in found]),))
        fields = {number: dict(zip(_COLUMNS, row, strict=True)) for number, *row in rows}
        days = self._tell_days(found) if asked.days else {}
        return [
            _make_hit(one, fields[one.chunk], asked=asked, needles=needles, day=days.get(one.chunk, ""))
            for one in found
        ]

    def _tell_days(self, found: Sequence[ScoredChunk]) -> Mapping[int, str]:
        """The day that each chunk is of: that in its note's name, else when the file was changed."""
        notes = self._file.run(_NOTES, (json.dumps(list({one.chunk >> CHUNK_BITS for one in found})),))
        days = {number: since or _tell_day(modified) for number, since, modified in notes}
        return {one.chunk: days[one.chunk >> CHUNK_BITS] for one in found}


def _spread(ranked: Sequence[Sequence[ScoredChunk]], limit: int) -> list[ScoredChunk]:
    """The best of every note, then the second of every note, and so on."""
    levels: Iterator[tuple[ScoredChunk | None, ...]] = zip_longest(*ranked)
    return [one for level in levels for one in level if one is not None][:limit]


def _sum_up(scores: Sequence[float]) -> float:
    """What a note scores by its chunks, best first."""
    return scores[0] + _REST * sum(scores[1 : 1 + _RESTS])


def _is_below(path: str, folder: str) -> bool:
    wanted, found = folder.casefold(), path.casefold()
    return found == wanted or found.startswith(f"{wanted}/")


def _count_ns(day: date, now: datetime) -> int:
    """When a day begins where the question was asked, in nanoseconds; days at the end of all time stay there."""
    if day in (date.min, date.max):
        return 0 if day == date.min else 2**63 - 1
    return int(datetime.combine(day, time(), tzinfo=now.tzinfo).timestamp()) * 1_000_000_000


def _make_hit(
    one: ScoredChunk, fields: Mapping[str, str], *, asked: Question, needles: Needles | None, day: str
) -> NoteHit:
    title = fields["title"].partition("\n")[0]
    told = [tell_words(needles, fields) if needles is not None else "", *_tell_place(asked, day)]
    return NoteHit(
        id=fields["name"],
        path=one.path,
        title=title,
        heading=fields["headings"],
        text=fields["body"],
        excerpt=cut_passage(fields["body"], needles),
        score=round(one.score, _DIGITS),
        why="; ".join(filter(None, told)) or f"named [[{title}]]",
        number=one.chunk & _PLACE,
    )


def _tell_place(asked: Question, day: str) -> Iterator[str]:
    if asked.tags:
        yield "tagged " + ", ".join(f"#{tag}" for tag in asked.tags)
    if asked.folders:
        yield "in " + ", ".join(asked.folders)
    if asked.days:
        yield f"{asked.days.words}: {day}"


def _tell_day(modified: int) -> str:
    return f"{datetime.fromtimestamp(modified / 1e9).astimezone():%Y-%m-%d}"
