"""The measure: what each strategy costs relative to the naive layout, on seeds that nobody tuned on, and whether all is there."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bench.layouts.caches import DEAR, MARKS, STEPS, Rates, count, open_cache
from bench.layouts.commits import show_change
from bench.layouts.oracle import find_best_plan
from bench.layouts.strategies import Sent, append, glue, play, write_facts
from bench.layouts.texts import load_texts
from bench.layouts.workloads import KINDS, Step, Workload
from bench.verdicts import Verdicts
from lamella import Turn

_MODELS = {MARKS.name: "bench-marks", STEPS.name: "bench-steps", DEAR.name: "bench-dear"}
# Of the naive layout, or so many times what an expiring cache could serve at best: the larger of the two.
_BOUNDS = {"note chat": (0.56, 1.35), "long chat": (0.63, 1.6), "code chat": (0.54, 1.8)}
_DEAR_BOUND = 0.92
# With default settings, told in each turn what is attached; then where reading costs half.
_DEFAULT_BOUNDS = {"note chat": 0.53, "long chat": 0.56, "code chat": 0.55}
_DEFAULT_DEAR_BOUND = 0.90
# Where the best plan that knows the future costs more than that, or nearly as much: so many times that plan.
_TIMES_BEST_PLAN = 1.04
_LESS = 0.8
_OTHERS = ("append", "diffs", "in_place", "library")


@dataclass(slots=True)
class Sums:
    """What a strategy cost over all conversations of a kind, by rates."""

    costs: dict[tuple[str, str], float] = field(default_factory=dict)
    largest: int = 0
    missing: int = 0
    workloads: list[Workload] = field(default_factory=list)

    def add(self, strategy: str, rates: Rates, cost: float) -> None:
        key = (strategy, rates.name)
        self.costs[key] = self.costs.get(key, 0.0) + cost

    def ratio(self, strategy: str, rates: Rates) -> float:
        """The cost relative to the naive layout."""
        return self.costs[strategy, rates.name] / self.costs["glue", rates.name]

    def best_plan_ratio(self, rates: Rates) -> float:
        """The cost of the best plans that know the future, relative to the naive layout."""
        best = sum(find_best_plan(one.steps, one.system, rates) for one in self.workloads)
        return best / self.costs["glue", rates.name]


def measure_kind(kind: str, *, odd: bool = True) -> Sums:
    """Every strategy on the conversations of a kind: those of odd seeds, or those that rules were tuned on."""
    make, seeds = KINDS[kind]
    sums, facts = Sums(), write_facts()
    for seed in range(int(odd), seeds, 2):
        workload = make(seed)
        sums.workloads.append(workload)
        for name, requests in _list_fixed(workload, facts).items():
            _bill(sums, name, requests, (MARKS, STEPS, DEAR))
        for rates in (MARKS, STEPS, DEAR):
            sums.add("limit", rates, find_limit(workload.steps, workload.system, rates))
            played = play(workload, facts=facts, model=_MODELS[rates.name], layout="auto")
            _bill(sums, "auto", _watch(sums, workload, played), (rates,))
        hours = play(workload, facts=facts, model="bench-hours", layout="auto")
        _bill(sums, "auto, two lifetimes", (sent for sent, _ in hours), (MARKS,))
        sums.add("limit, linger 2", MARKS, find_limit(_keep_in_working_set(workload.steps, 2), workload.system, MARKS))
        lingers = play(workload, facts=facts, model="bench-marks", layout="auto", linger=2)
        _bill(sums, "auto, linger 2", (sent for sent, _ in lingers), (MARKS,))
        for rates in (MARKS, DEAR):
            played = play(workload, facts=facts, model=_MODELS[rates.name], layout="auto", linger=None)
            _bill(sums, "auto, defaults", (sent for sent, _ in played), (rates,))
        both = play(workload, facts=facts, model="bench-hours", layout="auto", linger=None)
        _bill(sums, "auto, defaults, two lifetimes", (sent for sent, _ in both), (MARKS,))
    return sums


def _list_fixed(workload: Workload, facts: str) -> dict[str, Iterator[Sent]]:
    """The requests of strategies that look at no price."""
    played = partial(play, workload, facts=facts, model="bench-marks")
    layouts = {name: (sent for sent, _ in played(layout=name)) for name in ("in_place", "library")}
    return {"glue": glue(workload), "append": append(workload), "diffs": append(workload, diffs=True), **layouts}


def _bill(sums: Sums, name: str, requests: Iterator[Sent], rates: tuple[Rates, ...]) -> None:
    caches = [open_cache(one) for one in rates]
    for at, blocks in requests:
        for cache in caches:
            cache.take(blocks, at)
    for cache in caches:
        sums.add(name, cache.rates, cache.bill.cost)


def _watch(sums: Sums, workload: Workload, played: Iterator[tuple[Sent, Turn]]) -> Iterator[Sent]:
    """The requests, each looked through for what has to be in it: notes in their current text, once, and all talk."""
    said: list[str] = []
    number = -1
    for sent, turn in played:
        if turn.number - 1 != number:
            said += [workload.steps[number].text, workload.steps[number].reply] if number >= 0 else []
            number = turn.number - 1
        sums.missing += find_missing(turn, workload.steps[number], said)
        sums.largest = max(sums.largest, turn.tokens.total)
        yield sent


def find_missing(turn: Turn, step: Step, said: list[str]) -> int:
    """How many notes cannot be read as they are now, or appear twice, and how much of the talk is not there."""
    texts = [message.text for message in turn.messages]
    segments = {segment.id: segment for layer in turn.envelope.layers for segment in layer.segments}
    missing = 0
    for path, text in step.held.items():
        times = sum([one.count(text) for one in texts])
        # Told by a difference, the current text is nowhere in one piece: then the envelope says what it adds up to.
        told = path in segments and segments[path].form in ("full", "update", "reference")
        missing += not (times == 1 or (times == 0 and told))
    whole = "\n".join(texts)
    return missing + sum([one not in whole for one in said])


def _keep_in_working_set(steps: Sequence[Step], turns: int) -> list[Step]:
    """Steps in which what is attached stays so for some turns more, in the text that it had last."""
    lasting: list[Step] = []
    for at, step in enumerate(steps):
        held = {path: text for one in steps[max(0, at - turns) : at + 1] for path, text in one.held.items()}
        lasting.append(replace(step, held=held))
    return lasting


def find_limit(steps: Sequence[Step], system: str, rates: Rates) -> float:
    """What a cache that expires could cost at best: everything sent within its lifetime is read, wherever it stood.

    Of a file that changed the text before is read and the difference written, where that costs less.
    """
    at, cost, seen, said = 0.0, 0.0, dict[str, float](), [system]
    held: dict[str, str] = {}

    def pay(text: str) -> float:
        alive = text in seen and at - seen[text] <= rates.lifetime
        return count(text) * (rates.read if alive else rates.write)

    for step in steps:
        at += step.pause
        said.append(step.text)
        given = [] if step.output is None else [step.output]
        rounds = [text for one in step.rounds for text in (one.name, one.output)]
        cost += sum([pay(text) for text in (*said, *given, *rounds)])
        for path, text in step.held.items():
            before = held.get(path, text)
            differs = pay(before) + count(show_change(path, before, text)) * rates.write
            cost += pay(text) if before == text else min(pay(text), differs)
        held |= step.held
        seen |= dict.fromkeys((*said, *given, *rounds, *step.held.values()), at)
        said += [*rounds, step.reply]
    return cost


def bench_layouts(verdicts: Verdicts) -> None:
    """What layouts cost on workloads of notes, code, tools and talk, relative to putting everything into the last message."""
    texts = "real notes, edits and talk" if load_texts().real else "made texts: the real ones are not here"
    print(f"layouts: cost over gluing, on seeds that nobody tuned on; {texts}", flush=True)
    for kind in KINDS:
        sums = measure_kind(kind)
        _print_sums(kind, sums)
        _JUDGES.get(kind, _judge)(verdicts, kind, sums)
        verdicts.at_most(f"layouts, {kind}: notes or talk missing", sums.missing, 0)


def _print_sums(kind: str, sums: Sums) -> None:
    for strategy in dict.fromkeys(name for name, _ in sums.costs):
        known = [rates for rates in (MARKS, STEPS, DEAR) if (strategy, rates.name) in sums.costs]
        print(
            f"  {kind:>10}, {strategy:>29}: "
            + "  ".join(f"{one.name} {sums.ratio(strategy, one):5.2f}" for one in known)
        )


def _judge(verdicts: Verdicts, kind: str, sums: Sums) -> None:
    share, times = _BOUNDS[kind]
    for rates in (MARKS, STEPS):
        auto, bound = sums.ratio("auto", rates), max(share, times * sums.ratio("limit", rates))
        verdicts.at_most(f"layouts, {kind}, {rates.name}: auto over gluing", auto, bound)
        best = min(sums.ratio(other, rates) for other in (*_OTHERS, "glue"))
        verdicts.at_most(f"layouts, {kind}, {rates.name}: auto over the best of the others", auto / best, _LESS)
    verdicts.at_most(f"layouts, {kind}, {DEAR.name}: auto over gluing", sums.ratio("auto", DEAR), _DEAR_BOUND)
    _judge_defaults(verdicts, kind, sums, MARKS, _DEFAULT_BOUNDS[kind])
    _judge_defaults(verdicts, kind, sums, DEAR, _DEFAULT_DEAR_BOUND)
    auto = sums.ratio("auto", MARKS)
    more = 0.08 if kind == "long chat" else 0.04
    lingers = sums.ratio("auto, linger 2", MARKS)
    # What stays longer is read for longer, wherever it is: held, too, against what that costs at best.
    at_best = sums.ratio("limit, linger 2", MARKS) - sums.ratio("limit", MARKS)
    verdicts.at_most(f"layouts, {kind}: linger 2 costs more", lingers - auto, max(more, times * at_best))
    less = -0.01 if kind == "long chat" else 0.0
    verdicts.at_most(f"layouts, {kind}: two lifetimes cost more", sums.ratio("auto, two lifetimes", MARKS) - auto, less)


def _judge_defaults(verdicts: Verdicts, kind: str, sums: Sums, rates: Rates, bound: float) -> None:
    """Hold default settings to their bound or, where that is not reached, to the best plan that knows the future."""
    ratio, name = sums.ratio("auto, defaults", rates), f"layouts, {kind}, {rates.name}: default settings over gluing"
    if ratio <= bound:
        verdicts.at_most(name, ratio, bound)
        return
    best = sums.best_plan_ratio(rates)
    print(
        f"  {name}: {ratio:.3f}, NOT at most {bound:.2f}; the best plan that knows the future: {best:.3f}", flush=True
    )
    verdicts.measured[name] = ratio
    verdicts.at_most(f"{name}, over the best plan that knows the future", ratio / best, _TIMES_BEST_PLAN)


def _judge_agent(verdicts: Verdicts, kind: str, sums: Sums) -> None:
    ratio = sums.ratio("auto", MARKS) / sums.ratio("append", MARKS)
    verdicts.at_most(f"layouts, {kind}: auto over appending", ratio, 1.02)


def _judge_short(verdicts: Verdicts, kind: str, sums: Sums) -> None:
    best = min(sums.ratio(other, MARKS) for other in (*_OTHERS, "glue"))
    verdicts.at_most(f"layouts, {kind}: auto over the best of the others", sums.ratio("auto", MARKS) / best, 1.03)


_JUDGES: dict[str, Callable[[Verdicts, str, Sums], None]] = {"agent": _judge_agent, "short chat": _judge_short}
