"""What building a turn costs beside joining and hashing the same bytes once."""

import gc
import math
import statistics
import time
from dataclasses import dataclass
from hashlib import sha256

from bench.text import make_notes
from lamella import Conversation, Turn

NOTES_A_TURN = 10
AT_TURNS = (10, 100, 1_000)
SAMPLES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One length of conversation: the bytes of its request, and the two times for them."""

    turn: int
    request_bytes: int
    build_seconds: float
    floor_seconds: float

    @property
    def ratio(self) -> float:
        return self.build_seconds / self.floor_seconds


def measure_builds(layout: str, *, ledger: bool = True, at_turns: tuple[int, ...] = AT_TURNS) -> list[Point]:
    """Median build and median floor over the turns that end at each of the lengths, with or without the ledger."""
    chat = Conversation(system="You are terse.", layout=layout, window=10**12, ledger=ledger)
    points: list[Point] = []
    builds: list[float] = []
    floors: list[float] = []
    for number in range(1, max(at_turns) + 1):
        sampled = any(end - SAMPLES < number <= end for end in at_turns)
        notes = make_notes(number, NOTES_A_TURN)
        gc.collect() if sampled else None
        started = time.perf_counter()
        turn = chat.ask(f"Question {number}: what do these notes say?", attach=notes)
        texts = [message.text for message in turn.messages]
        built = time.perf_counter() - started
        chat.reply(f"Answer {number}: they say what they say.")
        if sampled:
            builds.append(built)
            floors.append(_floor(turn))
        if number in at_turns:
            size = sum(len(text.encode()) for text in texts)
            points.append(_point(number, size, builds, floors))
            builds, floors = [], []
    return points


def _floor(turn: Turn) -> float:
    pieces = [piece for message in turn.messages for piece in message.pieces]
    started = time.perf_counter()
    sha256("".join(pieces).encode()).hexdigest()
    return time.perf_counter() - started


def _point(turn: int, size: int, builds: list[float], floors: list[float]) -> Point:
    return Point(
        turn=turn,
        request_bytes=size,
        build_seconds=statistics.median(builds),
        floor_seconds=statistics.median(floors),
    )


def slope(points: list[Point]) -> float:
    """How build time grows with the bytes of the request, on logarithmic scales; 1 is in proportion."""
    first, last = points[0], points[-1]
    return math.log(last.build_seconds / first.build_seconds) / math.log(last.request_bytes / first.request_bytes)
