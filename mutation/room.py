"""Rooms: which there are, and how the mutants of one fare."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from mutation.bed import Fate, Suite, TestBed
from mutation.mutants import Mutant, sample_mutants

PROCESSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """Where the source stands, where its rooms are, and which tests are theirs. Tests are told from ``root``.

    ``modules`` import all that tests need that is not on trial, so that each trial finds it imported.
    """

    root: Path
    source: Path
    rooms: Path
    tests: str
    others: tuple[str, ...]
    modules: tuple[str, ...] = ()

    def find_rooms(self) -> list[str]:
        """Every folder of the core that holds code."""
        return sorted(path.parent.name for path in self.rooms.glob("*/__init__.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomScore:
    """How the mutants of a room fared."""

    room: str
    fates: tuple[tuple[Mutant, Fate], ...]

    def count(self, fate: Fate) -> int:
        """How many fared so."""
        return sum(found is fate for _, found in self.fates)

    @property
    def survivors(self) -> list[Mutant]:
        """Those that no test noticed, by file and line."""
        alive = (mutant for mutant, fate in self.fates if fate is Fate.SURVIVED)
        return sorted(alive, key=lambda mutant: (mutant.path, mutant.line, mutant.change))


class OtherTests:
    """The tests that are run after those of a room, measured once for all rooms: that takes as long as many trials."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._tests = tests
        self._seconds: int | None = None

    def measure(self, bed: TestBed, *, own: str) -> Suite | None:
        """The others without a room's own, with a bound on their work; none if there are none."""
        without = f"--ignore={own}"
        if self._seconds is None:
            measured = bed.measure(self._tests)
            if measured is None:
                return None
            self._seconds = measured.seconds
        return Suite(tests=(*bed.list_there(self._tests), without), seconds=self._seconds)


def try_room(project: Project, room: str, others: OtherTests, *, size: int, seed: int) -> RoomScore:
    """Try a sample of a room's mutants, two at a time, in copies that are gone afterwards."""
    mutants = sample_mutants(project.source, project.rooms / room, size=size, seed=seed)
    if not mutants:
        return RoomScore(room=room, fates=())
    with TemporaryDirectory(prefix="mutation-") as folder, ExitStack() as stack:
        beds = [
            stack.enter_context(
                TestBed(
                    source=project.source,
                    copy=Path(folder) / str(number),
                    project=project.root,
                    modules=project.modules,
                )
            )
            for number in range(min(PROCESSES, len(mutants)))
        ]
        fates = _try_all(beds, mutants, own=f"{project.tests}/{room}", others=others)
    return RoomScore(room=room, fates=tuple(zip(mutants, fates, strict=True)))


def _try_all(beds: Sequence[TestBed], mutants: Sequence[Mutant], *, own: str, others: OtherTests) -> list[Fate]:
    first = beds[0].measure((own,))
    free: SimpleQueue[TestBed] = SimpleQueue()
    for bed in beds:
        free.put(bed)

    def measure_others() -> Suite | None:
        bed = free.get()
        try:
            return others.measure(bed, own=own)
        finally:
            free.put(bed)

    def try_one(mutant: Mutant) -> Fate:
        bed = free.get()
        try:
            return bed.try_mutant(mutant, own=first, others=second.result)
        finally:
            free.put(bed)

    pool = ThreadPoolExecutor(max_workers=len(beds))
    # The others are measured beside the first trials, most of which need none of them.
    second = pool.submit(measure_others)
    try:
        return list(pool.map(try_one, mutants))
    finally:
        pool.shutdown(cancel_futures=True)
