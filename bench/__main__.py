"""Run the measures, print each beside its bound, and write them to ``build/bench.json``.

All of them, or those named, such as ``python -m bench build memory``.
"""

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.agent import bench_agent
from bench.agents import bench_agents
from bench.build import measure_beside, measure_builds, measure_steady, slope, steady_slope
from bench.code import bench_code
from bench.compaction import LAYOUTS, bench_compaction
from bench.compat import bench_compat
from bench.evidence import bench_evidence
from bench.layouts.measure import bench_layouts
from bench.live import bench_live
from bench.local import Served, make_talk, play_layered, play_naive, share_of_earlier
from bench.loop import CHATS, QUICK_TURNS, TURNS, measure_gaps, measure_rates
from bench.memory import measure_memory
from bench.recall import bench_recall
from bench.replay import AT_TURNS, measure_replay, replay_slope
from bench.retrieval import bench_retrieval
from bench.sending import measure_overhead
from bench.serving import bench_server
from bench.shared import bench_shared
from bench.start import measure_starts
from bench.stores import ENDLESS, TIGHT, Kept, measure_raw_commits, measure_store
from bench.stores import TURNS as STORED_TURNS
from bench.verdicts import Verdicts


def bench_build(verdicts: Verdicts) -> None:
    """Building a turn beside joining and hashing the same bytes once."""
    for layout in LAYOUTS:
        print(f"build per turn, {layout}: 10 new notes of 4 kB a turn, unlimited window, ledger on", flush=True)
        points = measure_builds(layout)
        for point in points:
            print(
                f"  turn {point.turn:>5,}: {point.request_bytes / 1e6:8.2f} MB"
                f"  build {point.build_seconds * 1e3:8.2f} ms"
                f"  join and hash {point.floor_seconds * 1e3:8.2f} ms  ratio {point.ratio:5.2f}"
            )
        verdicts.at_most(f"{layout}: build over join and hash at turn {points[-1].turn:,}", points[-1].ratio, 5.0)
        verdicts.at_most(f"{layout}: growth with the request's bytes, log-log slope", slope(points), 1.05)
    _bench_auto(verdicts)
    _bench_steady(verdicts)


def _bench_steady(verdicts: Verdicts) -> None:
    """Builds where the request stays as large as it is, while more and more was attached before."""
    print("build per turn, auto: 10 new notes of 4 kB a turn, the last turns shown, every turn folds", flush=True)
    points = measure_steady()
    for point in points:
        print(
            f"  turn {point.turn:>5,}: {point.request_bytes / 1e6:8.2f} MB  median {point.median_seconds * 1e3:6.2f} ms"
            f"  99th percentile {point.slowest_seconds * 1e3:6.2f} ms"
        )
        over = point.slowest_seconds / point.median_seconds
        verdicts.at_most(f"auto: 99th percentile of builds over the median at turn {point.turn:,}", over, 3.0)
    verdicts.at_most("auto: growth with the turns at a constant request, log-log slope", steady_slope(points), 0.15)


def _bench_auto(verdicts: Verdicts) -> None:
    """A plan by price beside none: the same turns in ``auto`` and ``in_place``, and how that grows."""
    print("build per turn, auto beside in_place: 10 new notes of 4 kB a turn, all of them stay attached", flush=True)
    auto, in_place = measure_beside("auto", "in_place")
    for one, other in zip(auto, in_place, strict=True):
        ratio = one.build_seconds / other.build_seconds
        print(
            f"  turn {one.turn:>5,}: {one.request_bytes / 1e6:8.2f} MB  auto {one.build_seconds * 1e3:8.2f} ms"
            f"  in_place {other.build_seconds * 1e3:8.2f} ms  ratio {ratio:5.2f}"
        )
        verdicts.at_most(f"auto: build over that of in_place at turn {one.turn:,}", ratio, 2.0)
    verdicts.at_most("auto: growth with the request's bytes, log-log slope", slope(auto), 1.05)


def bench_replay(verdicts: Verdicts) -> None:
    """Building every turn of long small talk beside the bytes that its requests send."""
    for layout in LAYOUTS:
        print(f"replay, {layout}: small talk, every request rendered, ledger on", flush=True)
        short, long = (measure_replay(turns, layout) for turns in AT_TURNS)
        for one in (short, long):
            print(f"  {one.turns:>5,} turns: {one.sent_bytes / 1e6:8.1f} MB sent, {one.seconds:7.2f} s", flush=True)
        verdicts.at_most(
            f"{layout}: growth of replay with the bytes sent, log-log slope", replay_slope(short, long), 1.05
        )


def bench_memory(verdicts: Verdicts) -> None:
    """Holding and sending 10,000 artifacts beside their bytes."""
    print("memory: 10,000 notes of 4 kB in 100 turns", flush=True)
    for layout in LAYOUTS:
        verdicts.at_most(f"{layout}: peak memory over the bytes of the artifacts", measure_memory(layout), 4.0)


def bench_stores(verdicts: Verdicts) -> None:
    """Appending and opening a conversation of 1,000 turns, a note of 4 kB in every tenth."""
    from tests.servers import SAFE, running  # only this measure needs a PostgreSQL server

    with TemporaryDirectory() as folder:
        print("sqlite", flush=True)
        raw = measure_raw_commits(Path(folder))
        kept = _bench_store(verdicts, "sqlite", f"sqlite:///{folder}/chats.db")
        verdicts.at_least("sqlite: append rate over raw single-row commits", raw / kept.append_seconds, 0.5)
    print("postgresql", flush=True)
    with running(SAFE) as server:
        _bench_store(verdicts, "postgresql", server.make_store_url())


def _bench_store(verdicts: Verdicts, name: str, url: str) -> Kept:
    short, long = _measure_store(url, layout="in_place", turns=100), _measure_store(url, layout="in_place")
    others = [_measure_store(url, layout=layout) for layout in ("library", "auto")]
    tight = [_measure_store(url, layout=layout, window=TIGHT) for layout in ("in_place", "auto")]
    for kept in (long, *others, *tight):
        how = f"{kept.layout}, {kept.compactions} compactions" if kept.compactions else kept.layout
        verdicts.at_most(f"{name}, {how}: opening and the next turn over the next turn warm", kept.open_ratio, 3.0)
    growth = math.log(long.open_seconds / short.open_seconds) / math.log(long.turns / short.turns)
    verdicts.at_most(f"{name}: growth of opening with the turns, log-log slope", growth, 1.05)
    return long


def _measure_store(url: str, *, layout: str, turns: int = STORED_TURNS, window: int = ENDLESS) -> Kept:
    kept = measure_store(url, layout=layout, turns=turns, window=window)
    print(
        f"  {kept.turns:>5,} turns, {kept.layout}, {kept.compactions} compactions:"
        f" append {kept.append_seconds * 1e3:7.2f} ms  next turn warm {kept.warm_seconds * 1e3:7.2f} ms"
        f"  opened in a new process {kept.open_seconds * 1e3:7.2f} ms, {kept.open_ratio:5.2f} times that",
        flush=True,
    )
    return kept


def bench_sending(verdicts: Verdicts) -> None:
    """A turn sent through Lamella beside the same answer from the provider alone. There is no bound to hold."""
    with TemporaryDirectory() as folder:
        found = measure_overhead(f"sqlite:///{folder}/chats.db")
    print(
        f"sending: a turn {found.sent_seconds * 1e3:.2f} ms, the scripted provider alone"
        f" {found.alone_seconds * 1e3:.2f} ms, added {found.added_seconds * 1e3:.2f} ms",
        flush=True,
    )
    verdicts.measured["sending: milliseconds added per turn"] = found.added_seconds * 1e3


def bench_loop(verdicts: Verdicts) -> None:
    """How long an event loop is held up while many chats send at once, and how many turns get done meanwhile."""
    from tests.servers import SAFE, running  # as for stores

    print(f"loop: {CHATS} chats of {TURNS} turns at once, on one store, beside an idle program", flush=True)
    with TemporaryDirectory() as folder:
        _bench_loop(verdicts, "sqlite", f"sqlite:///{folder}/chats.db")
    with running(SAFE) as server:
        _bench_loop(verdicts, "postgresql", server.make_store_url())


def _bench_loop(verdicts: Verdicts, name: str, url: str) -> None:
    idle, busy = measure_gaps(url)
    print(
        f"  {name}: gaps 99 % {busy.usual * 1e3:.1f} ms, longest {busy.longest * 1e3:.1f} ms;"
        f" idle {idle.usual * 1e3:.1f} and {idle.longest * 1e3:.1f} ms; {busy.seconds:.1f} s",
        flush=True,
    )
    verdicts.at_most(
        f"loop, {name}: milliseconds of the 99th percentile of gaps over idle", _over(busy.usual, idle.usual), 50.0
    )
    verdicts.at_most(
        f"loop, {name}: milliseconds of the longest gap over idle", _over(busy.longest, idle.longest), 250.0
    )
    rates = measure_rates(url)
    print(
        f"  {name}: {CHATS} tasks of {QUICK_TURNS} turns, {rates.turns:.0f} turns a second,"
        f" {rates.work * 1e3:.2f} ms of the processor each; their events appended raw {rates.raw:.0f} turns a second;"
        f" single events {rates.appends:.0f}, turns over these {rates.turns / rates.appends:.2f}",
        flush=True,
    )
    verdicts.at_least(f"loop, {name}: turns over raw appends of the same events", rates.turns / rates.raw, 0.5)
    verdicts.measured[f"loop, {name}: turns over single appends"] = rates.turns / rates.appends


def _over(busy: float, idle: float) -> float:
    return (busy - idle) * 1e3


def bench_local(verdicts: Verdicts) -> None:
    """Ten turns on the embedded model, in layers and in the naive layout."""
    talk = make_talk()
    naive = play_naive(talk)
    _print_served("naive", naive)
    for layout in LAYOUTS:
        served = play_layered(talk, layout=layout)
        _print_served(layout, served)
        exact = sum(one.as_forecast for one in served) / len(served)
        verdicts.at_least(f"local, {layout}: share of forecasts that came true to the token", exact, 1.0)
        if layout == "in_place":
            share = share_of_earlier(served)
            verdicts.at_least(f"local, {layout}: share of earlier tokens served from cache", share, 0.99)
        prefill = sum(one.seconds for one in served) / sum(one.seconds for one in naive)
        verdicts.at_most(f"local, {layout}: time to read prompts in over naive", prefill, 1.0)


def _print_served(name: str, served: Sequence[Served]) -> None:
    prompt, cached = sum(one.prompt for one in served), sum(one.cached for one in served)
    print(
        f"  {name:>8}: {len(served)} turns, {prompt:6,} tokens sent, {cached:6,} from cache ({cached / prompt:6.1%}),"
        f" prompts read in {sum(one.seconds for one in served):6.1f} s",
        flush=True,
    )


def bench_start(verdicts: Verdicts) -> None:
    """Starting the command beside starting Python."""
    print("start: CPU time of a fresh process over that of a bare Python", flush=True)
    with TemporaryDirectory() as folder:
        found = measure_starts(Path(folder))
    for words, bound in _STARTS.items():
        verdicts.at_most(f"lamella {words}", found[words], bound)


_STARTS = {"--version": 12.0, "chats list": 25.0}
MEASURES: dict[str, Callable[[Verdicts], None]] = {
    "build": bench_build,
    "replay": bench_replay,
    "memory": bench_memory,
    "stores": bench_stores,
    "sending": bench_sending,
    "loop": bench_loop,
    "agent": bench_agent,
    "agents": bench_agents,
    "compat": bench_compat,
    "server": bench_server,
    "local": bench_local,
    "compaction": bench_compaction,
    "recall": bench_recall,
    "layouts": bench_layouts,
    "shared": bench_shared,
    "evidence": bench_evidence,
    "live": bench_live,
    "retrieval": bench_retrieval,
    "code": bench_code,
    "start": bench_start,
}


def main(names: list[str]) -> int:
    """Measure, print, write. 1 if a bound is broken, 2 for a measure that does not exist."""
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        print(f"error: no measure {', '.join(unknown)}\nhint: measures are {', '.join(MEASURES)}", file=sys.stderr)
        return 2
    verdicts = Verdicts()
    for name in names or list(MEASURES):
        MEASURES[name](verdicts)
    out = Path("build/bench.json")
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(verdicts.measured, indent=2) + "\n", encoding="utf-8")
    print(f"written to {out}")
    return 0 if verdicts.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
