"""The ledger predicts what provider caches cost, in every layout, on chats over notes, long chats and chats over code."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random

import pytest
from bench.text import make_text
from tests.invariants.provider_caches import ProviderRules, SimulatedProvider

from lamella import Conversation, Note
from lamella.tokenizers.counter import OfflineTokenCounter

START = datetime(2026, 11, 17, tzinfo=UTC)
SYSTEM = make_text(77, 5_000)
MODEL = "anthropic:{}"
FACTS = """
[[model]]
match = "with-breakpoints"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
lifetime = 300
read = 0.1
lifetimes = [{name = "5m", seconds = 300, write = 1.25}]

[[model]]
match = "every-prefix"
as_of = 2026-11-17
like = "claude-sonnet-5"
minimum = 1024
granularity = 128
lifetime = 300
read = 0.1
breakpoints = 0
implicit = true
lifetimes = [{name = "5m", seconds = 300, write = 1.25}]
"""
RULES = {
    "with-breakpoints": ProviderRules(read=0.1, write=1.25, lifetime=300, minimum=1_024, lookback=20),
    "every-prefix": ProviderRules(read=0.1, write=1.25, lifetime=300, minimum=1_024, step=128),
}


@dataclass(frozen=True)
class Step:
    """One turn: the pause before it, everything attached in it by path, and how long question and answer are."""

    pause: float
    attached: Mapping[str, str]
    question: str
    reply: str


@cache
def make_chat(kind: str) -> tuple[Step, ...]:
    """Return a chat whose attachments come, change and go; code chats change most of what is attached in each turn."""
    turns, size, changes, drops = {
        "note": (24, 3_000, 0.08, 0.15),
        "long": (90, 1_500, 0.08, 0.25),
        "code": (24, 6_000, 0.5, 0.2),
    }[kind]
    random, attached, steps = Random(kind), dict[str, str](), list[Step]()
    for number in range(turns):
        attached = {path: text for path, text in attached.items() if random.random() >= drops}
        for path in attached:
            if random.random() < changes:
                lines = attached[path].split("\n")
                lines[random.randrange(len(lines))] = f"Changed in turn {number}: {random.random():.6f}."
                attached[path] = "\n".join(lines)
        for _ in range(random.choices(range(4), weights=(45, 35, 15, 5))[0]):
            path = f"{kind}/{random.randrange(60)}.md"
            attached.setdefault(path, make_text(random.randrange(10_000), size))
        steps.append(
            Step(
                pause=random.lognormvariate(3.807, 1.2),
                attached=dict(attached),
                question=make_text(20_000 + number, 240),
                reply=make_text(30_000 + number, 1_200),
            )
        )
    return tuple(steps)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("facts") / "models.toml"
    file.write_text(FACTS, encoding="utf-8")
    return file


@pytest.mark.parametrize("model", RULES)
@pytest.mark.parametrize("kind", ["note", "long", "code"])
@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
def test_predicted_cost_agrees_with_a_simulated_provider(facts: Path, model: str, kind: str, layout: str) -> None:
    chat = Conversation(
        system=SYSTEM,
        model=MODEL.format(model),
        model_facts=str(facts),
        window=10**9,
        attachments="sticky",
        layout=layout,
        linger=0,
    )
    rules, predicted, read = RULES[model], 0.0, 0
    provider = SimulatedProvider(rules, OfflineTokenCounter().get_tokenizer(MODEL.format("claude-sonnet-5")).count)
    at, known = 0.0, dict[str, str]()
    for step in make_chat(kind):
        at += step.pause
        new = {path: text for path, text in step.attached.items() if known.get(path) != text}
        turn = chat.ask(
            step.question,
            attach=[Note(path=path, text=text) for path, text in new.items()],
            detach=[path for path in known if path not in step.attached],
            at=START + timedelta(seconds=at),
        )
        known = dict(step.attached)
        chat.reply(step.reply)
        provider.send(turn.request("anthropic"), at)
        usage = turn.cache
        assert usage is not None
        predicted += usage.read * rules.read + usage.write * rules.write + usage.uncached
        read += usage.read
    assert predicted == pytest.approx(provider.cost, rel=0.05)
    assert read == pytest.approx(provider.read, rel=0.05)
