"""The search index of a repository: symbols, texts and commits, and the ranking of files for a question.

``CodeIndexRefresher`` updates an index; only files that changed are read. ``CodeRanker`` ranks files, and the
score is a sum of named parts. SQLite scores each column by the rarity of the words in it (bm25). Added to it are
commits about the same subject, how recently a file changed, whether the conversation has used it already, and paths
and names that the question contains. For bm25, a word that half of the files contain counts next to nothing. Among two
or three files that is every word, so with few files each word is scored separately.

``extract_symbols`` finds the names that a file defines by how lines of most languages begin. A parser finds a few more
names, but the ranking is no better with them (docs/decisions/code-ranking.md).
"""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import log
from time import time_ns
from typing import Any, NamedTuple, Protocol

from lamella.codebase.repository import (
    CodeFiles,
    CodeListing,
    FindSecrets,
    GitFolder,
    SourceFileState,
    decode_code_file,
    hash_content,
    try_read_code_bytes,
)
from lamella.core.search.language import is_stop_word
from lamella.retrieval.database import IndexTables, SqlValues
from lamella.retrieval.words import TOKENIZER, WORD_RULES_VERSION, extra_search_words, parse_query_words

_DEFINITION_KEYWORDS = (
    "def|class|func|function|fn|interface|struct|enum|trait|type|impl|module|namespace|record|protocol|object|macro"
    "|union|package|sub|proc|defmodule|defp?|defmacro|extension|actor|mixin|typedef|contract|message|service"
)
# Modifiers before the keyword are plain words, matched possessively, so that no text is tried twice.
_KEYWORD_DEFINITION = re.compile(
    rf"^[ \t]*(?:(?:[a-z]++(?:\([a-z]*\))?+[ \t]++){{0,4}}?)(?:{_DEFINITION_KEYWORDS})\*?[ \t]++"
    r"(?:\([^()\n]*\)[ \t]*+)?([A-Za-z_$][\w$]*)",
    re.MULTILINE,
)
_CONSTANT_DEFINITION = re.compile(
    r"^(?:export[ \t]+)?(?:const|let|var|val|static|final|#define)[ \t]+([A-Za-z_$][\w$]*)", re.MULTILINE
)
_ASSIGNMENT = re.compile(r"^([A-Za-z_]\w{2,})(?:[ \t]*:[^=\n]{1,80})?[ \t]*=(?!=)", re.MULTILINE)
# A return type, a name and parentheses, as in C. A brace must follow; calls end in a semicolon.
_TYPED_FUNCTION = re.compile(
    r"^[ \t]*+[A-Za-z_][\w<>\[\],:*& \t]{1,80}[ \t*&]([A-Za-z_]\w*)[ \t]*\([^;{}()\n]{0,200}\)[^;\n]{0,40}\{",
    re.MULTILINE,
)
_MAX_SYMBOLS = 4_000


def extract_symbols(text: str) -> list[str]:
    """Return the names that a text defines, without duplicates."""
    return list(dict.fromkeys(_iter_symbols(text)))[:_MAX_SYMBOLS]


def _iter_symbols(text: str) -> Iterator[str]:
    for pattern in (_KEYWORD_DEFINITION, _CONSTANT_DEFINITION, _ASSIGNMENT, _TYPED_FUNCTION):
        yield from (found[1] for found in pattern.finditer(text))


# Tables, in a file or in memory.

# Increase this with any change of the tables, of their contents, or of the rules that leave files out.
_FORMAT_VERSION = 1
_SCHEMA = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, state TEXT NOT NULL, settled INTEGER NOT NULL,
    hash BLOB NOT NULL, fault TEXT
);
CREATE VIRTUAL TABLE words USING fts5(path, symbols, body, extra, tokenize = '{TOKENIZER}');
CREATE VIRTUAL TABLE subjects USING fts5(subject, tokenize = '{TOKENIZER}');
CREATE TABLE touches (path TEXT NOT NULL, made INTEGER NOT NULL, PRIMARY KEY (path, made)) WITHOUT ROWID;
CREATE INDEX touches_of_commits ON touches (made);
CREATE TABLE skeletons (hash BLOB PRIMARY KEY, rules TEXT NOT NULL, text TEXT) WITHOUT ROWID;
"""
CODE_TABLES = IndexTables(
    schema=_SCHEMA,
    table_names=("skeletons", "touches", "subjects", "words", "files", "facts"),
    full_text_table="words",
    version=f"code {_FORMAT_VERSION} {WORD_RULES_VERSION}",
)


class CodeTables(Protocol):
    """The database of a code index."""

    def execute(self, sql: str, values: SqlValues = ()) -> list[Any]: ...

    def execute_many(self, sql: str, rows: Sequence[SqlValues]) -> None: ...

    def insert(self, sql: str, values: SqlValues) -> int: ...

    def write_transaction(self) -> AbstractContextManager[None]: ...


class InMemoryTables:
    """A code index in memory, for a single use."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in CODE_TABLES.schema.split(";\n"):
            self._connection.execute(statement)
        self._connection.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'words', 'row')")

    def execute(self, sql: str, values: SqlValues = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Sequence[SqlValues]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, sql: str, values: SqlValues) -> int:
        return int(self._connection.execute(sql, values).lastrowid or 0)

    @contextmanager
    def write_transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def close(self) -> None:
        self._connection.close()


# Commits and the files they touched. The newest commit has number 1.

# Older commits say little about current work.
MOST_COMMITS = 2_000
# A commit that touches more files than this says little about each of them.
_MAX_FILES_PER_COMMIT = 30
_COMMIT_HEADER = re.compile(rb"\n?\x01[0-9a-f]{40,64} ?(.*)", re.DOTALL)


class Commit(NamedTuple):
    """A commit: its subject line, and the files it touched."""

    subject: str
    paths: Sequence[str]


def refresh_commit_tables(tables: CodeTables, git: GitFolder) -> None:
    """Rebuild the commit tables if HEAD has moved since the last time."""
    facts = dict(tables.execute("SELECT name, value FROM facts WHERE name = 'head'"))
    head = git.head_commit()
    if head == facts.get("head", ""):
        return
    log = git.read_log(maximum=MOST_COMMITS) if head else b""
    with tables.write_transaction():
        for table in ("subjects", "touches"):
            tables.execute(f"DELETE FROM {table}")
        for number, commit in enumerate(parse_focused_commits(log or b""), start=1):
            tables.execute("INSERT INTO subjects (rowid, subject) VALUES (?, ?)", (number, commit.subject))
            touched = [(path, number) for path in dict.fromkeys(commit.paths)]
            tables.execute_many("INSERT INTO touches VALUES (?, ?)", touched)
        tables.execute("INSERT OR REPLACE INTO facts VALUES ('head', ?)", (head,))


def parse_focused_commits(log: bytes) -> Iterator[Commit]:
    """Yield the commits of a log that touch few files, newest first."""
    for header, names in _split_commits(log):
        paths = [name.decode("utf-8", "replace") for name in names if name]
        if 0 < len(paths) <= _MAX_FILES_PER_COMMIT:
            yield Commit(header[1].decode("utf-8", "replace"), paths)


def _split_commits(log: bytes) -> Iterator[tuple[re.Match[bytes], list[bytes]]]:
    header: re.Match[bytes] | None = None
    names: list[bytes] = []
    for piece in log.split(b"\0"):
        found = _COMMIT_HEADER.fullmatch(piece)
        if found is None:
            names.append(piece.lstrip(b"\n"))
            continue
        if header is not None:
            yield header, names
        header, names = found, []
    if header is not None:
        yield header, names


# Ranking.

# The weight of each part. Tuned on one half of the questions of ``bench/code.py`` (2026-11-17).
SCORE_WEIGHTS: Mapping[str, float] = {
    "path": 2.0,
    "symbols": 0.75,
    "text": 1.0,
    "parts": 1.5,
    "commits": 0.5,
    "recent": 2.0,
    "touched": 4.0,
    "named": 12.0,
}
_SCORE_COLUMNS = ("path", "symbols", "text", "parts")
# How many files and how many commits are scored in detail.
_MAX_SCORED_FILES = 400
_MAX_SCORED_COMMITS = 60
# The weight of further commits of a file compared with the best one, and how many of them count.
_FURTHER_COMMIT_WEIGHT, _MAX_FURTHER_COMMITS = 0.3, 4
# The number of newer commits after which the bonus for a recent change is halved.
_RECENCY_HALVING_COMMITS = 200
# Among so few files the words decide, and a recent change only breaks ties.
_FEW_FILES = 10
_TIE_BREAK_WEIGHT = 0.01
# SQLite's lower limit for the rarity of a word that half of the files or more contain.
_MIN_RARITY = 1e-6
_PATH_OR_NAME = re.compile(r"[\w./\\-]*[\w-]\.[A-Za-z]\w{0,9}\b|\w+(?:/[\w.-]+)+|\b\w*[a-z]\w*(?:_\w+|[A-Z]\w*)+\b")
# Names are found in these runs of characters. Longer ones are no paths, and the search takes quadratic time in a run.
_PATH_CHARACTERS = re.compile(r"[\w./\\-]+")
_MAX_PATH_CHARS = 1_000
_MIN_NAME_LENGTH = 4
# The column weights in this statement are those of WEIGHTS.
_SELECT_BEST_FILES = (
    "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 2.0, 0.75, 1.0, 1.5), rowid LIMIT ?"
)
_SELECT_SCORES = """
SELECT files.path, -bm25(words, 1, 0, 0, 0), -bm25(words, 0, 1, 0, 0), -bm25(words, 0, 0, 1, 0),
    -bm25(words, 0, 0, 0, 1)
FROM words JOIN files ON files.id = words.rowid
WHERE words MATCH ? AND words.rowid IN (SELECT value FROM json_each(?))
"""
_COUNT_FILES = "SELECT count(*) FROM (SELECT rowid FROM words LIMIT ?)"
_SELECT_COMMITS = (
    "SELECT rowid, -bm25(subjects) FROM subjects WHERE subjects MATCH ? ORDER BY bm25(subjects), rowid LIMIT ?"
)
_SELECT_TOUCHED_FILES = "SELECT made, path FROM touches WHERE made IN (SELECT value FROM json_each(?))"


class RankedFile(NamedTuple):
    """A file with its score and the weighted parts of it."""

    path: str
    score: float
    score_parts: Mapping[str, float]


class CodeRanker:
    """Ranks the files of one index."""

    def __init__(self, tables: CodeTables) -> None:
        self._tables = tables

    def rank(
        self, question: str, *, candidates: Collection[str], recent_paths: Collection[str] = ()
    ) -> list[RankedFile]:
        """Return the paths ``candidates`` with their scores, the best first and equal scores by path."""
        parts: dict[str, dict[str, float]] = {path: {} for path in candidates}
        terms = build_fts_terms(question)
        ((count,),) = self._tables.execute(_COUNT_FILES, (_MAX_SCORED_FILES + 1,))
        few = count if count <= _MAX_SCORED_FILES else None
        if terms:
            self._add_word_scores(terms, parts, file_count=few)
            self._add_commit_scores(" OR ".join(terms), parts)
        self._add_recency_scores(parts, weight=1.0 if count > _FEW_FILES else _TIE_BREAK_WEIGHT)
        for path in recent_paths:
            if path in parts:
                parts[path]["touched"] = 1.0
        for path in files_named_in(question, candidates):
            parts[path]["named"] = 1.0
        ranked = [_to_ranked_file(path, found) for path, found in parts.items()]
        return sorted(ranked, key=lambda one: (-one.score, one.path))

    def _add_word_scores(
        self, terms: Sequence[str], parts: dict[str, dict[str, float]], *, file_count: int | None
    ) -> None:
        match = " OR ".join(terms)
        first = json.dumps(
            [number for (number,) in self._tables.execute(_SELECT_BEST_FILES, (match, _MAX_SCORED_FILES))]
        )
        for asked in [match] if file_count is None else terms:
            found = [row for row in self._tables.execute(_SELECT_SCORES, (asked, first)) if row[0] in parts]
            again = 1.0 if file_count is None else _rarity_factor(file_count, len(found))
            for path, *scores in found:
                word_scores = {
                    name: again * score for name, score in zip(_SCORE_COLUMNS, scores, strict=True) if score > 0
                }
                parts[path].update({name: parts[path].get(name, 0.0) + score for name, score in word_scores.items()})

    def _add_commit_scores(self, match: str, parts: dict[str, dict[str, float]]) -> None:
        found = dict(self._tables.execute(_SELECT_COMMITS, (match, _MAX_SCORED_COMMITS)))
        touches: dict[int, list[str]] = {}
        for made, path in self._tables.execute(_SELECT_TOUCHED_FILES, (json.dumps(list(found)),)):
            touches.setdefault(made, []).append(path)
        commit_scores: dict[str, list[float]] = {}
        for made, paths in touches.items():
            for path in paths:
                # The more files a commit touches, the less it says about each.
                commit_scores.setdefault(path, []).append(found[made] / len(paths) ** 0.5)
        for path, scores in commit_scores.items():
            if path in parts:
                best, *others = sorted(scores, reverse=True)
                parts[path]["commits"] = best + _FURTHER_COMMIT_WEIGHT * sum(others[:_MAX_FURTHER_COMMITS])

    def _add_recency_scores(self, parts: dict[str, dict[str, float]], *, weight: float) -> None:
        for path, last in self._tables.execute("SELECT path, min(made) FROM touches GROUP BY path"):
            if path in parts:
                parts[path]["recent"] = weight / (1 + last / _RECENCY_HALVING_COMMITS)


def _rarity_factor(files: int, files_with_word: int) -> float:
    """Return the factor for SQLite's score of a word that many of a few files contain.

    It replaces SQLite's rarity of the word, which would be close to zero, with one that stays positive.
    """
    rare = (files - files_with_word + 0.5) / (files_with_word + 0.5)
    return log(1 + rare) / max(log(rare), _MIN_RARITY)


def build_fts_terms(question: str) -> list[str]:
    """Return the search terms of a question: its significant words, in all their forms."""
    # If every word is common, all words are searched.
    asked = [word for word in parse_query_words(question) if not is_stop_word(word.text.lower())] or parse_query_words(
        question
    )
    terms = [one for word in asked for one in (word.text, *word.other_terms)]
    return list(dict.fromkeys(f'"{one}"' for one in terms))


def files_named_in(question: str, candidates: Collection[str]) -> list[str]:
    """Return the files that a question names: by a path, or by a name that only one file has."""
    runs = [run for run in _PATH_CHARACTERS.findall(question) if len(run) <= _MAX_PATH_CHARS]
    written = {word.replace("\\", "/").strip("./").lower() for run in runs for word in _PATH_OR_NAME.findall(run)}
    written = {word for word in written if len(word) >= _MIN_NAME_LENGTH}
    if not written:
        return []
    names: dict[str, list[str]] = {}
    for path in candidates:
        lowered = path.lower()
        base = lowered.rpartition("/")[2]
        for name in {lowered, base, base.rpartition(".")[0] or base}:
            names.setdefault(name, []).append(path)
    found = [path for word in sorted(written) for path in _files_matching_word(word, names, candidates)]
    return list(dict.fromkeys(found))


def _files_matching_word(word: str, names: Mapping[str, Sequence[str]], candidates: Collection[str]) -> list[str]:
    exact = names.get(word, ())
    if "/" in word and not exact:
        exact = [path for path in candidates if path.lower().endswith(f"/{word}")]
    return list(exact) if len(exact) == 1 else []


def _to_ranked_file(path: str, parts: Mapping[str, float]) -> RankedFile:
    weighted_scores = {name: SCORE_WEIGHTS[name] * value for name, value in parts.items()}
    return RankedFile(path, sum(weighted_scores.values()), weighted_scores)


ProgressCallback = Callable[[int, int], None]
# The size of a batch in characters. A batch takes about a second, which is the work lost by an interruption.
_BATCH_CHARS = 8_000_000
_FILE_OVERHEAD_CHARS = 2_000
_INSERT_FILE = "INSERT INTO files (path, state, settled, hash, fault) VALUES (?, ?, ?, ?, ?)"
_INSERT_WORDS = "INSERT INTO words (rowid, path, symbols, body, extra) VALUES (?, ?, ?, ?, ?)"


class _CodeEntry(NamedTuple):
    """A file prepared for the index: its words, or the reason why it is left out."""

    path: str
    state: SourceFileState
    hash: bytes
    words: tuple[str, str, str, str] | None
    exclusion_reason: str | None


class CodeIndexRefresher:
    """Updates one index with its files. ``anchors`` and ``find_secrets`` detect secrets."""

    def __init__(
        self,
        tables: CodeTables,
        files: CodeFiles,
        *,
        anchors: Sequence[str],
        find_secrets: FindSecrets,
        now_ns: Callable[[], int] = time_ns,
    ) -> None:
        self._tables, self._files, self._now_ns = tables, files, now_ns
        self._anchors, self._find_secrets = anchors, find_secrets

    def refresh(self, *, report: ProgressCallback | None = None) -> CodeListing:
        """Update the index and return the files that can be selected, with the reasons for the others."""
        listing = self._files.list_files(now=self._now_ns())
        known = {
            path: rest for path, *rest in self._tables.execute("SELECT path, id, state, settled, fault FROM files")
        }
        deleted_ids = [known[path][0] for path in known if path not in listing.states]
        stale = [path for path, state in listing.states.items() if not _is_up_to_date(known.get(path), state)]
        self._remove_files(deleted_ids)
        self._index_files(stale, listing, known, report=report)
        faults = self._tables.execute("SELECT path, fault FROM files WHERE fault IS NOT NULL")
        bad = {path for path, _ in faults}
        states = {path: state for path, state in listing.states.items() if path not in bad}
        return CodeListing(states, tuple(sorted((*listing.left_out, *map(tuple, faults)))), listing.warnings)

    def _index_files(
        self,
        stale: Sequence[str],
        listing: CodeListing,
        known: dict[str, list[Any]],
        *,
        report: ProgressCallback | None,
    ) -> None:
        batch: list[_CodeEntry] = []
        size = 0
        for done, path in enumerate(stale, start=1):
            entry = self._prepare_entry(path, listing.states[path])
            batch.append(entry)
            size += _FILE_OVERHEAD_CHARS + (len(entry.words[2]) if entry.words else 0)
            if size > _BATCH_CHARS:
                self._write_batch(batch, known)
                batch, size = [], 0
            if report is not None:
                report(done, len(stale))
        self._write_batch(batch, known)

    def _prepare_entry(self, path: str, state: SourceFileState) -> _CodeEntry:
        data, fault = try_read_code_bytes(self._files, path)
        if fault is not None:
            # Not settled, so that it is tried again: a change of permissions does not always change the file's state.
            return _CodeEntry(path, SourceFileState(state.stamp, settled=False), b"", None, fault)
        text, fault = decode_code_file(data, anchors=self._anchors, find_secrets=self._find_secrets)
        words = None if fault is not None else make_searchable_columns(path, text)
        return _CodeEntry(path, state, hash_content(data), words, fault)

    def _write_batch(self, batch: Sequence[_CodeEntry], known: dict[str, list[Any]]) -> None:
        if not batch:
            return
        with self._tables.write_transaction():
            for entry in batch:
                # Another process may have indexed the file meanwhile. The process that writes last has read it last.
                for (number,) in self._tables.execute("SELECT id FROM files WHERE path = ?", (entry.path,)):
                    self._delete_file(number)
                row = (entry.path, entry.state.stamp, entry.state.settled, entry.hash, entry.exclusion_reason)
                number = self._tables.insert(_INSERT_FILE, row)
                if entry.words is not None:
                    self._tables.execute(_INSERT_WORDS, (number, *entry.words))

    def _remove_files(self, file_ids: Sequence[int]) -> None:
        if file_ids:
            with self._tables.write_transaction():
                for number in file_ids:
                    self._delete_file(number)

    def _delete_file(self, file_id: int) -> None:
        self._tables.execute("DELETE FROM words WHERE rowid = ?", (file_id,))
        self._tables.execute("DELETE FROM files WHERE id = ?", (file_id,))


def make_searchable_columns(path: str, text: str) -> tuple[str, str, str, str]:
    """Return the searchable columns of a file: its path, the names it defines, its text, and parts of names in it."""
    symbols = " ".join(extract_symbols(text))
    stem = path.rpartition(".")[0] or path
    return (
        f"{path} {extra_search_words(stem)}",
        f"{symbols} {extra_search_words(symbols)}",
        text,
        extra_search_words(text),
    )


def _is_up_to_date(known: list[Any] | None, state: SourceFileState) -> bool:
    return known is not None and known[1] == state.stamp and bool(known[2])
