"""Run all measures, print them beside their bounds, and write them to ``build/bench.json``."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from bench.build import measure_builds, slope
from bench.memory import measure_memory

LAYOUTS = ("library", "in_place")
MAX_RATIO = 5.0
MAX_SLOPE = 1.05
MAX_MEMORY = 4.0


def main() -> int:
    """Measure, print, write. 1 if a bound is broken."""
    results: dict[str, object] = {}
    good = True
    for layout in LAYOUTS:
        print(f"build per turn, {layout}: 10 new notes of 4 kB a turn, unlimited window")
        points = measure_builds(layout)
        for point in points:
            print(
                f"  turn {point.turn:>5,}: {point.request_bytes / 1e6:8.2f} MB"
                f"  build {point.build_seconds * 1e3:8.2f} ms"
                f"  join and hash {point.floor_seconds * 1e3:8.2f} ms  ratio {point.ratio:5.2f}"
            )
        growth = slope(points)
        good &= _verdict(f"ratio at turn {points[-1].turn:,}", points[-1].ratio, MAX_RATIO)
        good &= _verdict("growth with bytes, log-log slope", growth, MAX_SLOPE)
        memory = measure_memory(layout)
        good &= _verdict("peak memory over the bytes of 10,000 artifacts", memory, MAX_MEMORY)
        results[layout] = {
            "points": [{**asdict(point), "ratio": point.ratio} for point in points],
            "slope": growth,
            "memory": memory,
        }
    out = Path("build/bench.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {out}")
    return 0 if good else 1


def _verdict(what: str, value: float, bound: float) -> bool:
    good = value <= bound
    print(f"  {what}: {value:.2f} (at most {bound:.2f}) {'ok' if good else 'TOO MUCH'}")
    return good


if __name__ == "__main__":
    sys.exit(main())
