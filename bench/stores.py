"""What keeping a conversation costs: appending beside raw commits, opening it beside building its next turn warm."""

import sqlite3
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import lamella
from bench.text import make_text
from lamella import Chat, Note

TURNS = 1_000
NOTE_EVERY = 10
SAMPLES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One store at one length: what an append, a warm turn, and opening plus a turn take."""

    turns: int
    append_seconds: float
    warm_seconds: float
    open_seconds: float

    @property
    def open_ratio(self) -> float:
        return self.open_seconds / self.warm_seconds


def measure_store(url: str, *, turns: int = TURNS) -> Kept:
    """Fill a conversation, then measure its next turn: warm, and from a fresh opening of it."""
    name = f"bench-{turns}"
    with lamella.open(url) as engine:
        chat = engine.chat(name, layout="in_place", window=10**12)
        for number in range(turns):
            _exchange(chat, number)
        titles = engine.chat(f"{name}-titles")
        appends = [_append(titles, number) for number in range(turns)]
        warm = [_turn(chat) for _ in range(SAMPLES)]
        opened: list[float] = []
        for _ in range(SAMPLES):
            started = time.perf_counter()
            again = engine.chat(name)
            opened.append(time.perf_counter() - started + _turn(again))
    return Kept(
        turns=turns,
        append_seconds=statistics.median(appends),
        warm_seconds=statistics.median(warm),
        open_seconds=statistics.median(opened),
    )


def _exchange(chat: Chat, number: int) -> None:
    """One turn of the past."""
    notes = [Note(path=f"notes/{number:05}.md", text=make_text(number))] if number % NOTE_EVERY == 0 else []
    chat.ask(f"Question {number}: {make_text(number, 200)}", attach=notes)
    chat.reply(make_text(number, 400))


def _append(chat: Chat, number: int) -> float:
    """What one append takes: an event of about the size of a reply that builds no turn."""
    title = make_text(number, 400)
    started = time.perf_counter()
    chat.rename(title)
    return time.perf_counter() - started


def _turn(chat: Chat) -> float:
    started = time.perf_counter()
    turn = chat.ask("And what follows from that?")
    taken = time.perf_counter() - started
    if not turn.messages:
        raise AssertionError("nothing was built")
    chat.reply("Nothing.")
    return taken


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
