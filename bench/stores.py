"""What keeping a conversation costs: appending beside raw commits, opening it beside building its next turn warm.

It is opened in new processes, several times; each answer is the median.
"""

import sqlite3
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import lamella
from bench.opening import measure_opening
from bench.text import make_text
from lamella import Conversation, Note

TURNS = 1_000
NOTE_EVERY = 10
OPENINGS = 9
# So much that nothing is ever compacted, and so little that a conversation of a thousand turns is four times.
ENDLESS = 10**12
TIGHT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One conversation in a store: what an append, a warm turn, and opening plus a turn take."""

    turns: int
    layout: str
    compactions: int
    append_seconds: float
    warm_seconds: float
    open_seconds: float
    open_ratio: float


def measure_store(url: str, *, layout: str, turns: int = TURNS, window: int = ENDLESS) -> Kept:
    """Fill a conversation, then measure its next turn in new processes: from opening it, and warm."""
    name = f"bench-{layout}-{turns}-{window}"
    with lamella.open(url) as engine:
        conversation = engine.chat(name, layout=layout, window=window)
        for number in range(turns):
            _exchange(conversation, number)
        compactions = len(conversation.receipts())
        titles = engine.chat(f"{name}-titles")
        appends = [_append(titles, number) for number in range(turns)]
    openings = [measure_opening(url, name) for _ in range(OPENINGS)]
    return Kept(
        turns=turns,
        layout=layout,
        compactions=compactions,
        append_seconds=statistics.median(appends),
        warm_seconds=statistics.median(preamble.warm for preamble in openings),
        open_seconds=statistics.median(preamble.opened for preamble in openings),
        open_ratio=statistics.median(preamble.ratio for preamble in openings),
    )


def _exchange(chat: Conversation, number: int) -> None:
    """One turn of the past."""
    notes = [Note(path=f"notes/{number:05}.md", text=make_text(number))] if number % NOTE_EVERY == 0 else []
    chat.ask(f"Question {number}: {make_text(number, 200)}", attach=notes)
    chat.reply(make_text(number, 400))


def _append(chat: Conversation, number: int) -> float:
    """What one append takes: an event of about the size of a reply that builds no turn."""
    title = make_text(number, 400)
    started = time.perf_counter()
    chat.rename(title)
    return time.perf_counter() - started


def measure_raw_commits(folder: Path, *, commits: int = 500) -> float:
    """The median time of a single-row commit on the same disk, as durable as the store's own."""
    database = sqlite3.connect(folder / "raw.db", isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT)")
    body = make_text(1, 400)
    times: list[float] = []
    for _ in range(commits):
        started = time.perf_counter()
        database.execute("INSERT INTO raw (body) VALUES (?)", (body,))
        times.append(time.perf_counter() - started)
    database.close()
    return statistics.median(times)
