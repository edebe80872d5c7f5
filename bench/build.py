"""What building a turn costs beside joining and hashing the same bytes once."""

import gc
import math
import statistics
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from bench.text import make_notes
from lamella import Conversation, Turn

NOTES_A_TURN = 10
AT_TURNS = (10, 100, 1_000)
SAMPLES = 9
BESIDE_TURNS = (20, 100, 400)
START = datetime(2026, 11, 17, tzinfo=UTC)
STEADY_TURNS = (10, 100, 1_000)
STEADY_SAMPLES = 100
STEADY_HISTORY = 8


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
    chat = Conversation(system="You are terse.", layout=layout, window=10**12, keep_ledger=ledger)
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


def measure_beside(
    layout: str, other: str, *, at_turns: tuple[int, ...] = BESIDE_TURNS
) -> tuple[list[Point], list[Point]]:
    """The builds of two layouts, turn by turn in one run, where all that was attached stays attached.

    Times are those of the processor, so that whatever else runs counts for neither.
    """
    chats = {one: _Growing(one) for one in (layout, other)}
    for number in range(1, max(at_turns) + 1):
        for chat in chats.values():
            chat.grow(number, at_turns)
    return chats[layout].points, chats[other].points


class _Growing:
    """A conversation that nothing is taken out of, a minute from turn to turn."""

    def __init__(self, layout: str) -> None:
        self._chat = Conversation(
            system="You are terse.", layout=layout, window=10**12, attachments="sticky", model="claude-sonnet-5"
        )
        self._builds: list[float] = []
        self._floors: list[float] = []
        self.points: list[Point] = []

    def grow(self, number: int, at_turns: tuple[int, ...]) -> None:
        """One turn more; a point where there is to be one."""
        sampled = any(end - SAMPLES < number <= end for end in at_turns)
        notes, at = make_notes(number, NOTES_A_TURN), START + timedelta(minutes=number)
        gc.collect() if sampled else None
        started = time.process_time()
        turn = self._chat.ask(f"Question {number}: what do these notes say?", attach=notes, at=at)
        texts = [message.text for message in turn.messages]
        built = time.process_time() - started
        self._chat.reply(f"Answer {number}: they say what they say.", at=at)
        if sampled:
            self._builds.append(built)
            self._floors.append(_floor(turn))
        if number in at_turns:
            size = sum(len(text.encode()) for text in texts)
            self.points.append(_point(number, size, self._builds, self._floors))
            self._builds, self._floors = [], []


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyPoint:
    """The builds of some turns at a length of conversation: median and 99th percentile of processor time."""

    turn: int
    request_bytes: int
    median_seconds: float
    slowest_seconds: float


def measure_steady(*, at_turns: tuple[int, ...] = STEADY_TURNS, samples: int = STEADY_SAMPLES) -> list[SteadyPoint]:
    """Builds in ``auto`` where each turn brings new notes, and the request stays as large as it is.

    The cache expires before each turn, and the request has the last turns only. So each turn folds, which is the most
    that a turn can do. Times are those of the processor.
    """
    chat = Conversation(
        system="You are terse.",
        layout="auto",
        window=10**12,
        model="claude-sonnet-5",
        history="window",
        history_turns=STEADY_HISTORY,
        linger=2,
    )
    points: list[SteadyPoint] = []
    builds: list[float] = []
    for number in range(1, max(at_turns) + 1):
        notes, at = make_notes(number, NOTES_A_TURN), START + timedelta(minutes=20 * number)
        started = time.process_time()
        turn = chat.ask(f"Question {number}: what do these notes say?", attach=notes, at=at)
        texts = [message.text for message in turn.messages]
        builds.append(time.process_time() - started)
        chat.reply(f"Answer {number}: they say what they say.", at=at)
        if number in at_turns:
            # The first turns load modules.
            seen = sorted(builds[-samples:] if number > samples else builds[-number // 2 :])
            slowest = seen[math.ceil(0.99 * len(seen)) - 1]
            size = sum(len(text.encode()) for text in texts)
            points.append(
                SteadyPoint(
                    turn=number,
                    request_bytes=size,
                    median_seconds=statistics.median(seen),
                    slowest_seconds=slowest,
                )
            )
    return points


def steady_slope(points: list[SteadyPoint]) -> float:
    """How build time grows with the turns, on logarithmic scales; 0 is not at all."""
    first, last = points[0], points[-1]
    return math.log(last.median_seconds / first.median_seconds) / math.log(last.turn / first.turn)


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
