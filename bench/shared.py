"""What short chats cost that begin with the same system prompt, beside appending, at several gaps between the chats."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random

from bench.layouts.caches import MARKS, Block, open_cache
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
_SEEDS = 6
_MODEL = "anthropic:bench-hours"
_SHORT = "5m"
# Seconds between the last request of a chat and the first of the next one, and the bound.
GAPS = {10.0: 0.82, 150.0: 0.66, 1_200.0: 0.63, 7_200.0: 1.02}


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
            at += dice.lognormvariate(3.807, 1.2)
        at = turns[-1][0] + gap
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


def measure_shared(gap: float, *, odd: bool = True) -> dict[str, float]:
    """Return the costs of strategies over those of appending, on odd seeds or those that rules may be tuned on."""
    costs: dict[str, float] = {}
    for seed in range(int(odd), _SEEDS, 2):
        chats = make_chats(seed, gap)
        strategies = {
            "append": append(chats, marks_system=False),
            "append, system prompt marked": append(chats, marks_system=True),
            "auto, nothing learnt": play(chats, learns=False),
            "auto": play(chats, learns=True),
        }
        for name, requests in strategies.items():
            costs[name] = costs.get(name, 0.0) + _bill(requests)
    return {name: cost / costs["append"] for name, cost in costs.items()}


def bench_shared(verdicts: Verdicts) -> None:
    """What short chats with a shared system prompt cost, on seeds that nobody tuned on."""
    print("shared: short chats with a shared system prompt, cost over appending", flush=True)
    for gap, bound in GAPS.items():
        ratios = measure_shared(gap)
        print(f"  {gap:>7,.0f} s: " + "  ".join(f"{name} {ratio:.3f}" for name, ratio in ratios.items()), flush=True)
        verdicts.at_most(f"shared, {gap:,.0f} s between chats: auto over appending", ratios["auto"], bound)
