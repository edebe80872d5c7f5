"""History: what the last commits say of the files they touched. The newest of them is number 1."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lamella.adapters.sources.code.index.tables import CodeTables
from lamella.adapters.sources.code.repository.git import GitFolder

# What is older tells little of what is worked on now.
MOST_COMMITS = 2_000
# A commit that touches more files than this says nothing of any of them.
_MOST_FILES = 30
_HEADER = re.compile(rb"\n?\x01[0-9a-f]{40,64} ?(.*)", re.DOTALL)


class Commit(NamedTuple):
    """A commit: what it says, and the files it touched."""

    subject: str
    paths: Sequence[str]


def refresh_history(tables: CodeTables, git: GitFolder) -> None:
    """Take in what was committed since the last time; all of it where history was rewritten."""
    facts = dict(tables.run("SELECT name, value FROM facts WHERE name = 'head'"))
    head = git.find_head()
    if head == facts.get("head", ""):
        return
    log = git.read_log(most=MOST_COMMITS) if head else b""
    with tables.writing():
        for table in ("subjects", "touches"):
            tables.run(f"DELETE FROM {table}")
        for number, commit in enumerate(read_commits(log or b""), start=1):
            tables.run("INSERT INTO subjects (rowid, subject) VALUES (?, ?)", (number, commit.subject))
            touched = [(path, number) for path in dict.fromkeys(commit.paths)]
            tables.run_each("INSERT INTO touches VALUES (?, ?)", touched)
        tables.run("INSERT OR REPLACE INTO facts VALUES ('head', ?)", (head,))


def read_commits(log: bytes) -> Iterator[Commit]:
    """The commits of a log, newest first, that touch few files."""
    for header, names in _split(log):
        paths = [name.decode("utf-8", "replace") for name in names if name]
        if 0 < len(paths) <= _MOST_FILES:
            yield Commit(header[1].decode("utf-8", "replace"), paths)


def _split(log: bytes) -> Iterator[tuple[re.Match[bytes], list[bytes]]]:
    header: re.Match[bytes] | None = None
    names: list[bytes] = []
    for piece in log.split(b"\0"):
        found = _HEADER.fullmatch(piece)
        if found is None:
            names.append(piece.lstrip(b"\n"))
            continue
        if header is not None:
            yield header, names
        header, names = found, []
    if header is not None:
        yield header, names
