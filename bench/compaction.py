"""Compaction: how seldom it breaks the prefix, that it leaves no half of a pair, how long it plans, what it loses."""

from collections.abc import Iterator
from itertools import product
from math import ceil

from bench.facts import SHARES, BadSummarizer, Survival, probe_survival
from bench.layouts.texts import load_texts
from bench.planning import MESSAGES, measure_planning
from bench.planning import SHARES as SHARES_LEFT
from bench.prefixes import FORMER_TARGET, READ_PRICE, SHIPPED_TARGET, WRITE_PRICE, Played, play
from bench.verdicts import Verdicts
from bench.workloads import Workload, join_agents, join_chats, make_small_talk, make_tool_work

LAYOUTS = ("library", "in_place")
HARD = 0.95
# So low that one cut makes room for many turns.
LOW_TARGET = 0.30
# Windows in mean turns. In the smallest no layout keeps the bound, so it is shown beside what any layout needs. The
# others are the first of 8, 12, 16, 24, 32, 48, 64 and 128 in which a target kept it: a guard, not a proof.
SMALLEST = 8
JUDGED = {
    "small talk": ((48, LOW_TARGET), (64, SHIPPED_TARGET)),
    "tool work": ((12, LOW_TARGET), (24, SHIPPED_TARGET)),
}
# Windows in mean turns in which the depth that ships is compared with that of before.
COMPARED = (8, 24)
# Of real talk. Seeds 1 to 4 were looked at while the depth was chosen.
HELD_BACK = (5, 6, 7, 8)


def bench_compaction(verdicts: Verdicts) -> None:
    """Two workloads beside sending everything, then planning, then facts."""
    for workload in (make_small_talk(), make_tool_work()):
        _bench_workload(verdicts, workload)
    _bench_depth(verdicts)
    _bench_planning(verdicts)
    _bench_survival(verdicts)


def _bench_workload(verdicts: Verdicts, workload: Workload) -> None:
    whole = play(workload, layout="in_place")
    turn = mean_turn(whole, workload)
    print(
        f"{workload.name}: {whole.requests} requests, {turn:,.0f} tokens a turn; cost in tokens at {READ_PRICE} for "
        f"what is read and {WRITE_PRICE} for what is written",
        flush=True,
    )
    _print_played("append only", whole, whole)
    orphans = 0
    for layout, turns, target in _cases(workload):
        window = int(turns * turn)
        played = play(workload, layout=layout, window=window, target=target)
        name = f"{layout}, {turns} turns, target {target:.2f}"
        _print_played(name, played, whole, fewest=fewest_breaks(whole, window=window))
        orphans += played.orphans
        if layout == "in_place" and (turns, target) in JUDGED[workload.name]:
            verdicts.at_most(f"{workload.name}, {name}: prefix breaks per 100 requests", played.breaks_per_100, 5)
    verdicts.at_most(f"{workload.name}: requests with an orphaned tool result, all layouts and windows", orphans, 0)


def _bench_depth(verdicts: Verdicts) -> None:
    """How often the prefix breaks, beside the depth of before, for each workload; real ones by held-back seeds."""
    texts = load_texts()
    print(f"depth of a cut: chats and agents' work are {'real' if texts.real else 'made'}", flush=True)
    for workloads in (
        [make_small_talk()],
        [make_tool_work()],
        [join_chats(texts, seed) for seed in HELD_BACK],
        [join_agents(texts, seed) for seed in HELD_BACK],
    ):
        sized = [(one, mean_turn(play(one, layout="in_place"), one)) for one in workloads]
        for turns in COMPARED:
            shipped, former = (
                [play(one, layout="in_place", window=int(turns * turn), target=target) for one, turn in sized]
                for target in (SHIPPED_TARGET, FORMER_TARGET)
            )
            for name, played in (("shipped", shipped), ("former", former)):
                each = ", ".join(f"{one.breaks_per_100:.1f}" for one in played)
                print(
                    f"  {workloads[0].name}, {turns} turns, {name} target: {each} breaks per 100 requests", flush=True
                )
            ratio = sum(one.breaks for one in shipped) / sum(one.breaks for one in former)
            verdicts.at_most(
                f"{workloads[0].name}, {turns} turns: prefix breaks over those of a target of {FORMER_TARGET:.2f}",
                ratio,
                0.6,
            )


def _cases(workload: Workload) -> Iterator[tuple[str, int, float]]:
    """Layouts with windows and targets; where every turn folds, one window tells enough."""
    yield "library", SMALLEST, SHIPPED_TARGET
    for turns in (SMALLEST, *(turns for turns, _ in JUDGED[workload.name])):
        for target in (SHIPPED_TARGET, LOW_TARGET):
            yield "in_place", turns, target


def mean_turn(whole: Played, workload: Workload) -> float:
    """What a turn adds to the request, in tokens."""
    return (whole.last - whole.first) / (whole.requests - 1) * workload.requests_a_turn


def fewest_breaks(whole: Played, *, window: int) -> float:
    """Per 100 requests, what no layout can do without: all of it is sent once, and only so much fits at a time."""
    fills = ceil((whole.last - whole.first) / (HARD * window - whole.first))
    return 100 * max(0, fills - 1) / whole.requests


def _print_played(name: str, played: Played, whole: Played, *, fewest: float = 0.0) -> None:
    print(
        f"  {name:<36} breaks {played.breaks_per_100:5.1f} per 100 (no layout below {fewest:4.1f})"
        f"  sent {played.sent:>10,}  cached {played.read / played.sent:4.0%}"
        f"  cost {played.cost:>9,.0f}, {played.cost / whole.cost:4.2f} of append only"
    )


def _bench_planning(verdicts: Verdicts) -> None:
    for layout, share in product(LAYOUTS, SHARES_LEFT):
        print(f"planning: {MESSAGES:,} messages down to {share:.0%}", flush=True)
        planning = measure_planning(layout, share_left=share)
        print(
            f"  {layout}: plan {planning.plan_seconds * 1e3:7.2f} ms, {planning.removed:,} messages out"
            f"  count from memory {planning.count_seconds * 1e3:7.2f} ms"
        )
        name = f"{layout}, down to {share:.0%}: planning over counting the messages from memory"
        verdicts.at_most(name, planning.ratio, 20.0)


def _bench_survival(verdicts: Verdicts) -> None:
    bad = BadSummarizer()
    for layout in LAYOUTS:
        for name, summarizer in (("deterministic steps", None), ("a bad summariser", bad)):
            survival = probe_survival(layout=layout, summarizer=summarizer)
            print(f"facts, {layout}, {name}: {survival.facts} planted, compacted {len(SHARES)} times", flush=True)
            _print_survival(survival)
            verdicts.at_least(f"{layout}, {name}: % in the prompt or one recall away", survival.share, 100.0)


def _print_survival(survival: Survival) -> None:
    print(
        f"  in the prompt {100 * survival.in_prompt / survival.facts:.1f} %, one recall away"
        f" {100 * survival.recalled / survival.facts:.1f} %; {', '.join(survival.steps)}"
    )
    for why in survival.skipped:
        print(f"  skipped: {why}")
    for question in survival.lost:
        print(f"  lost: {question}")
