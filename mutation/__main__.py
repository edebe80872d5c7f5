"""Puts faults into the rooms of the core and tells which no test notices: ``python -m mutation [ROOM ...]``."""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from mutation.bed import HERE, Fate
from mutation.floor import Floor, load_floor, save_floor
from mutation.room import OtherTests, Project, RoomScore, try_room

CORE = Project(
    root=HERE,
    source=HERE / "src",
    rooms=HERE / "src" / "lamella" / "core",
    tests="tests/unit/core",
    others=("tests/unit/core", "tests/behaviour", "tests/golden"),
    modules=("lamella.wiring",),
)


def _stop(*_: object) -> NoReturn:
    # Raised as an exception, so that the copies are removed on the way out.
    sys.exit(128 + signal.SIGTERM)


def main(arguments: Sequence[str]) -> int:
    """Try the rooms that are named, or all; 1 if one has more survivors than its floor allows."""
    signal.signal(signal.SIGTERM, _stop)
    floor, there = load_floor(), CORE.find_rooms()
    options = _parse(arguments, there, floor)
    found: dict[str, int] = {}
    wrong: list[str] = []
    others = OtherTests(CORE.others)
    for room in options.room or there:
        score = try_room(CORE, room, others, size=options.sample, seed=floor.seed)
        print("\n".join(describe_score(score)), flush=True)
        found[room] = len(score.survivors)
        if not options.record and (told := floor.judge(room, found[room])):
            wrong.append(f"{room}: {told}")
    if options.record:
        save_floor(floor.lower(found))
    for breach in wrong:
        print(breach, file=sys.stderr)
    return 1 if wrong else 0


def describe_score(score: RoomScore) -> Iterator[str]:
    """A room's line, and below it each mutant that survived."""
    counts = ", ".join(f"{score.count(fate)} {fate}" for fate in Fate)
    yield f"{score.room}: {len(score.fates)} mutants, {counts}"
    yield from (f"  src/{mutant.path}:{mutant.line}  {mutant.change}" for mutant in score.survivors)


def _parse(arguments: Sequence[str], rooms: Sequence[str], floor: Floor) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation")
    parser.add_argument("room", nargs="*", help=f"rooms of the core: {', '.join(rooms)}")
    parser.add_argument("--sample", type=int, default=floor.sample, help="mutants per room")
    parser.add_argument("--record", action="store_true", help="record floors that are lower, or new")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.room) - set(rooms)):
        parser.error(f"there is no room {', '.join(unknown)}; there are {', '.join(rooms)}")
    if options.record and options.sample < floor.sample:
        parser.error(f"a floor is recorded for {floor.sample} mutants per room, not for {options.sample}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
