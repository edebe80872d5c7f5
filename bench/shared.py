"""What short chats cost that begin with the same system prompt, beside appending, at several gaps between the chats."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random

from bench.layouts.caches import MARKS, Block, count, open_cache
from bench.layouts.strategies import START, Sent, read_blocks, write_facts
from bench.layouts.texts import load_texts
from bench.text import make_text
from bench.verdicts import Verdicts
from lamella import Conversation
from lamella.core.values import replace
from lamella.wiring.services import read_services
from lamella.wiring.stores import open_backend

# Some 2,800 tokens.
_SYSTEM = make_text(79, 15_350)
_CHATS = 40
_SEEDS = 12
_MODEL = "anthropic:bench-hours"
_SHORT = "5m"
# The median of the seconds between the last request of a chat and the first of the next one, and the bound over a store
# that learns nothing.
GAPS = {10.0: 0.82, 150.0: 0.66, 1_200.0: 0.63, 7_200.0: 1.02}
# How far pauses spread, within a chat and between two chats.
_SPREAD = 1.2
# Where the bound is not reached even by who knows all pauses: so many times that.
_TIMES_BEST = 1.04


def make_chats(seed: int, gap: float) -> list[list[tuple[float, str, str]]]:
    """Return chats as turns: the second in which a question is asked, the question and the reply.

    Half of the chats have one question, the others up to four.
    """
    dice, talk = Random(f"shared {seed}"), load_texts().talk
    chats: list[list[tuple[float, str, str]]] = []
    at = 0.0
    for _ in range(_CHATS):
        turns: list[tuple[float, str, str]] = []
        for text, reply in dice.choice(talk)[: dice.choice((1, 1, 2, 4))]:
            turns.append((at, text, reply))
            at += dice.lognormvariate(3.807, _SPREAD)
        at = turns[-1][0] + gap * dice.lognormvariate(0.0, _SPREAD)
        chats.append(turns)
    return chats


def append(chats: Sequence[Sequence[tuple[float, str, str]]], *, marks_system: bool) -> Iterator[Sent]:
    """Yield requests that append every message, with a breakpoint at the end, and perhaps after the system prompt."""
    for turns in chats:
        said = [Block(_SYSTEM, _SHORT if marks_system else None)]
        for at, text, reply in turns:
            said.append(Block(text))
            yield at, [*said[:-1], said[-1]._replace(mark=_SHORT)]
            said.append(Block(reply))


def play(chats: Sequence[Sequence[tuple[float, str, str]]], *, learns: bool) -> Iterator[Sent]:
    """Yield the requests of conversations in one store, which learns how often their system prompt is used or not."""
    services = read_services({"model_facts": write_facts()})
    backend = open_backend("memory:", services=services)
    backend = backend if learns else replace(backend, shared_prefixes=None)
    for number, turns in enumerate(chats):
        chat = Conversation.open(
            backend, f"chat {number}", {"system": _SYSTEM, "model": _MODEL, "layout": "auto", "window": 10**9}
        )
        for at, text, reply in turns:
            turn = chat.ask(text, at=START + timedelta(seconds=at))
            yield at, read_blocks(turn.request("anthropic"))
            chat.reply(reply, at=START + timedelta(seconds=at))


def _bill(requests: Iterator[Sent]) -> float:
    cache = open_cache(MARKS)
    for at, blocks in requests:
        cache.take(blocks, at)
    return cache.bill.cost


def find_best_prompt_cost(chats: Sequence[Sequence[tuple[float, str, str]]], *, always_short: bool = False) -> float:
    """Return the least that the system prompt can cost in these chats for somebody who knows all pauses.

    At each write they choose the lifetime. With ``always_short`` it is always the shorter one.
    """
    tokens, states = count(_SYSTEM), {(0.0, 0.0): 0.0}
    lifetimes = [(MARKS.lifetime, MARKS.write)] if always_short else [(MARKS.lifetime, MARKS.write), (3_600.0, 2.0)]
    for at in sorted(at for turns in chats for at, _, _ in turns):
        found: dict[tuple[float, float], float] = {}
        for (until, lasts), cost in states.items():
            is_cached = lasts > 0 and at <= until
            options = [(lasts, MARKS.read)] if is_cached else lifetimes
            for seconds, price in options:
                key = (at + seconds, seconds)
                found[key] = min(found.get(key, float("inf")), cost + price * tokens)
        states = found
    return min(states.values())


def measure_shared(gap: float, *, odd: bool = True) -> dict[str, float]:
    """Return the costs of strategies over those of a store that learns nothing.

    They are measured on odd seeds, or on those that rules may be tuned on.
    """
    costs: dict[str, float] = {}
    for seed in range(int(odd), _SEEDS, 2):
        chats = make_chats(seed, gap)
        strategies = {
            "append": append(chats, marks_system=False),
            "append, system prompt marked": append(chats, marks_system=True),
            _UNLEARNT: play(chats, learns=False),
            "auto": play(chats, learns=True),
        }
        billed = {name: _bill(requests) for name, requests in strategies.items()}
        saved = find_best_prompt_cost(chats, always_short=True) - find_best_prompt_cost(chats)
        billed[_BEST] = billed[_UNLEARNT] - saved
        for name, cost in billed.items():
            costs[name] = costs.get(name, 0.0) + cost
    return {name: cost / costs[_UNLEARNT] for name, cost in costs.items()}


_UNLEARNT, _BEST = "auto, nothing learnt", "the best lifetimes, with all pauses known"


def bench_shared(verdicts: Verdicts) -> None:
    """What short chats with a shared system prompt cost, on seeds that nobody tuned on."""
    print("shared: short chats with a shared system prompt, cost over that of a store that learns nothing", flush=True)
    for gap, bound in GAPS.items():
        ratios, name = measure_shared(gap), f"shared, {gap:,.0f} s between chats: auto over nothing learnt"
        print(f"  {gap:>7,.0f} s: " + "  ".join(f"{one} {ratio:.3f}" for one, ratio in ratios.items()), flush=True)
        if ratios[_BEST] <= bound:
            verdicts.at_most(name, ratios["auto"], bound)
            continue
        print(f"  {name}: {ratios['auto']:.3f}; no choice of lifetimes reaches {bound:.2f}")
        verdicts.at_most(f"{name}, over the best lifetimes", ratios["auto"] / ratios[_BEST], _TIMES_BEST)
