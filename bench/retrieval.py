"""Searching a vault beside SQLite's own full-text search with its defaults, in the same run and over the same chunks.

Times are those of the processor, the least of several rounds taken in turn, so that a busy machine slows both alike.
"""

import math
import os
import re
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.vaults import (
    inflect,
    make_many,
    make_wide_notes,
    pick_substrings,
    read_vault,
    split_questions,
    take_headings,
    write_vault,
)
from bench.verdicts import Verdicts
from lamella.notes import NoteIndex, open_index

ROUNDS = 7
FIRST = 10
FIRST_OF_PAIRS = 20
FEW, MANY = 1_000, 10_000
GROWTH_ROUNDS = 4
_WORD = re.compile(r"[^\W_]+")
Find = Callable[[str], Sequence[str]]
Questions = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How often the right note is among the first ten, and the mean of one over its place."""

    recall: float
    reciprocal: float


class PlainSearch:
    """FTS5 as it comes: its own tokenizer and ranking, a row for each text, words joined by OR."""

    def __init__(self, path: Path) -> None:
        self.database = sqlite3.connect(path, isolation_level=None)
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = NORMAL")
        self.database.execute("CREATE VIRTUAL TABLE plain USING fts5(path, title, tags, heading, properties, body)")

    def fill(self, rows: Sequence[tuple[str, ...]]) -> None:
        self.database.execute("BEGIN")
        self.database.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.database.execute("COMMIT")

    def replace(self, rows: Sequence[tuple[str, ...]], numbers: Sequence[int]) -> None:
        self.database.execute("BEGIN")
        self.database.executemany("DELETE FROM plain WHERE rowid = ?", [(number,) for number in numbers])
        self.database.executemany("INSERT INTO plain VALUES (?, ?, ?, ?, ?, ?)", rows)
        self.database.execute("COMMIT")

    def find(self, query: str) -> list[str]:
        """The best passages, as many as ours are, with all that is shown of them."""
        match = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        sql = "SELECT * FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"
        return [path for path, *_ in self.database.execute(sql, (match, FIRST))]

    def find_notes(self, query: str) -> list[str]:
        """The notes of the best passages."""
        match = " OR ".join(f'"{word}"' for word in _WORD.findall(query))
        sql = "SELECT path FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 200"
        return list(dict.fromkeys(path for (path,) in self.database.execute(sql, (match,))))


def bench_retrieval(verdicts: Verdicts) -> None:
    """Index, update and query beside FTS5; what is found of headings, word forms and pairs of characters; growth."""
    with TemporaryDirectory() as folder:
        os.environ["LAMELLA_INDEX_FOLDER"] = f"{folder}/indexes"
        try:
            _bench_times(verdicts, Path(folder))
            _bench_quality(verdicts, Path(folder))
            _bench_pairs(verdicts, Path(folder))
            _bench_growth(verdicts, Path(folder))
        finally:
            del os.environ["LAMELLA_INDEX_FOLDER"]


def _bench_times(verdicts: Verdicts, folder: Path) -> None:
    notes = read_vault()
    vault = write_vault(folder / "timed", notes)
    questions = [heading for heading, _ in take_headings(notes)[1]][:200]
    with open_index(vault) as index:
        index.refresh()
        rows = read_chunks(index.file)
        whole = [(path, "", "", "", "", text) for path, text in notes.items()]
        ours, theirs, by_note = [], [], []
        for number in range(ROUNDS):
            ours.append(_time_new(vault, folder / f"new-{number}"))
            plain, noted = (PlainSearch(folder / f"{name}-{number}.db") for name in ("plain", "noted"))
            theirs.append(_time(partial(_read_and_fill, plain, vault, rows)))
            by_note.append(_time(partial(_read_and_fill, noted, vault, whole)))
        size = sum(map(len, notes.values())) / 1e6
        print(f"retrieval: {len(notes)} notes, {size:.1f} MB, {len(rows):,} chunks; index {min(ours) * 1e3:.0f} ms")
        print(f"  FTS5 {min(theirs) * 1e3:.0f} ms, of whole notes {min(by_note) * 1e3:.0f} ms", flush=True)
        verdicts.at_most("retrieval: index over FTS5's", min(ours) / min(theirs), 3.0)
        _bench_update(verdicts, vault, index, plain)
        asked = min(_time(lambda: [index.search(one, refresh=False) for one in questions]) for _ in range(ROUNDS))
        plainly = min(_time(lambda: [plain.find(one) for one in questions]) for _ in range(ROUNDS))
        print(f"  query {asked / len(questions) * 1e3:.2f} ms, FTS5 {plainly / len(questions) * 1e3:.2f} ms")
        verdicts.at_most("retrieval: query over FTS5's", asked / plainly, 3.0)


def _bench_update(verdicts: Verdicts, vault: Path, index: NoteIndex, plain: PlainSearch) -> None:
    """The same note changed again and again, and indexed each time."""
    sizes = {
        path: (vault / path).stat().st_size
        for path in (one.relative_to(vault).as_posix() for one in vault.rglob("*.md"))
    }
    path = sorted(sizes, key=sizes.__getitem__)[len(sizes) // 2]
    text = (vault / path).read_text("utf-8")
    ours, theirs, looks = [], [], []
    for number in range(ROUNDS * 3):
        (vault / path).write_text(f"{text}\n\nAdded {number}.\n", "utf-8")
        ours.append(_time(lambda: index.refresh(only_paths=[path])))
        rows = read_chunks(index.file, path)
        numbers = [number for (number,) in plain.database.execute("SELECT rowid FROM plain WHERE path = ?", (path,))]
        theirs.append(_time(partial(plain.replace, rows, numbers)))
        looks.append(_time(index.refresh))
    print(
        f"  update of one note {median(ours) * 1e3:.2f} ms, FTS5 {median(theirs) * 1e3:.2f} ms;"
        f" looking for changes in {len(sizes)} notes {median(looks) * 1e3:.2f} ms"
    )
    verdicts.at_most("retrieval: update of a note over FTS5's", median(ours) / median(theirs), 3.0)


def _bench_quality(verdicts: Verdicts, folder: Path) -> None:
    bare, questions = take_headings(read_vault())
    _, held = split_questions(questions)
    with open_index(write_vault(folder / "bare", bare)) as index:
        index.refresh()
        chunks, whole = PlainSearch(folder / "chunks.db"), PlainSearch(folder / "whole.db")
        chunks.fill(read_chunks(index.file))
        whole.fill([(path, "", "", "", "", text) for path, text in bare.items()])
        changed = [(inflect(question), path) for question, path in held]
        for name, asked in (("headings", held), ("word forms", changed)):
            ours = measure(lambda query: _search(index, query, FIRST), asked)
            plain = [measure(search.find_notes, asked) for search in (chunks, whole)]
            recall, reciprocal = (max(getattr(one, field) for one in plain) for field in ("recall", "reciprocal"))
            print(
                f"  {name}, {len(asked)} questions: recall@10 {ours.recall:.3f}, FTS5 {recall:.3f};"
                f" MRR {ours.reciprocal:.3f}, FTS5 {reciprocal:.3f}"
            )
            verdicts.at_least(f"retrieval, {name}: recall@10 over FTS5's", ours.recall / recall, 1.005)
            verdicts.at_least(f"retrieval, {name}: MRR over FTS5's", ours.reciprocal / reciprocal, 1.005)


def _bench_pairs(verdicts: Verdicts, folder: Path) -> None:
    languages = {"ja": "Japanese", "zh": "Chinese"}
    notes = {path: text for language in languages for path, text in make_wide_notes(language).items()}
    with open_index(write_vault(folder / "wide", notes)) as index:
        index.refresh()
        for language, name in languages.items():
            own = {path: text for path, text in notes.items() if path.startswith(language)}
            pairs = pick_substrings(own)
            found = sum(path in _search(index, pair, FIRST_OF_PAIRS) for pair, path in pairs)
            verdicts.at_least(f"retrieval: {name} pairs of characters among the first 20", found / len(pairs), 0.6)


def _bench_growth(verdicts: Verdicts, folder: Path) -> None:
    notes = read_vault()
    questions = [heading for heading, _ in split_questions(take_headings(notes)[1])[1]][:100]
    vaults = [write_vault(folder / f"many-{count}", dict(make_many(notes, count))) for count in (FEW, MANY)]
    sizes = [sum(path.stat().st_size for path in vault.rglob("*.md")) for vault in vaults]
    # The small one as often as it fits into the large one, in turn with it: what else the machine does falls on both.
    rounds = [
        (
            median(_time_new(vaults[0], folder / f"few-{number}-{again}") for again in range(MANY // FEW // 2)),
            _time_new(vaults[1], folder / f"many-new-{number}"),
        )
        for number in range(GROWTH_ROUNDS)
    ]
    few, many = (min(times) for times in zip(*rounds, strict=True))
    slope = math.log(many / few) / math.log(sizes[1] / sizes[0])
    asked = []
    for count, vault, size, times in zip((FEW, MANY), vaults, sizes, zip(*rounds, strict=True), strict=True):
        with open_index(vault) as index:
            index.refresh()
            index.search("warm", refresh=False)
            passes = [[_time(partial(index.search, one, refresh=False)) for one in questions] for _ in range(ROUNDS)]
            asked.append(min(map(median, passes)))
            looked = _time(index.refresh)
        print(
            f"  {count:,} notes, {size / 1e6:.1f} MB: index {min(times):.2f} s, query {asked[-1] * 1e3:.2f} ms,"
            f" looking for changes {looked * 1e3:.0f} ms",
            flush=True,
        )
    verdicts.at_most("retrieval: growth of indexing with the bytes, log-log slope", slope, 1.05)
    verdicts.at_most("retrieval: query in 10,000 notes over query in 1,000", asked[1] / asked[0], 3.0)


def measure(find: Find, questions: Questions) -> Quality:
    """How well notes are found."""
    places = [(list(find(question))[:FIRST], path) for question, path in questions]
    ranks = [found.index(path) + 1 for found, path in places if path in found]
    return Quality(recall=len(ranks) / len(places), reciprocal=sum(1 / rank for rank in ranks) / len(places))


def read_chunks(file: Path, path: str | None = None) -> list[tuple[str, ...]]:
    """The chunks of an index, of all notes or of one, as plain FTS5 is given them."""
    with closing(sqlite3.connect(file)) as database:
        sql = (
            "SELECT notes.path, chunks.title, chunks.tags, chunks.headings, chunks.properties, chunks.body FROM chunks"
            " JOIN notes ON notes.id = (chunks.rowid >> 20)"
        )
        found = database.execute(
            sql if path is None else f"{sql} WHERE notes.path = ?", () if path is None else (path,)
        )
        return found.fetchall()


def _search(index: NoteIndex, query: str, limit: int) -> list[str]:
    return list(dict.fromkeys(hit.path for hit in index.search(query, limit=limit, refresh=False)))


def _read_and_fill(plain: PlainSearch, vault: Path, rows: Sequence[tuple[str, ...]]) -> None:
    """Whoever indexes a vault reads it."""
    for path in sorted(vault.rglob("*.md")):
        path.read_text("utf-8")
    plain.fill(rows)


def _time_new(vault: Path, folder: Path) -> float:
    """How long it takes to index a vault that has no index yet."""
    before = os.environ["LAMELLA_INDEX_FOLDER"]
    os.environ["LAMELLA_INDEX_FOLDER"] = str(folder)
    try:
        with open_index(vault) as index:
            return _time(index.refresh)
    finally:
        os.environ["LAMELLA_INDEX_FOLDER"] = before


def _time(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
