"""Workloads: conversations with notes that come, change and go, with pauses; drawn by seeds, the same in every run."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any

from bench.layouts.commits import load_commits, make_commits, show_change
from bench.layouts.texts import load_texts
from bench.text import make_text

_SYSTEM = make_text(77, 5_000)
_ZIPF = 1.1
_MOST_HELD = 6
# How many notes a turn brings.
_DRAWN = (45, 35, 15, 5)
_CHANGES = 0.08
_GIVES = 0.15
# Pauses: their median in seconds, and how far they spread; some 6 % are longer than five minutes.
_PAUSE = (3.807, 1.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a model asked of a tool, and what it gave."""

    name: str
    arguments: Mapping[str, Any]
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn. ``held`` is all that is attached in it, by path; ``detach`` what was until now; ``pause`` before it."""

    text: str
    reply: str
    pause: float
    held: Mapping[str, str] = field(default_factory=dict)
    detach: tuple[str, ...] = ()
    output: str | None = None
    rounds: tuple[Round, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A conversation to play."""

    name: str
    steps: tuple[Step, ...]
    system: str = _SYSTEM
    window: int = 10**9


def make_note_chat(seed: int, *, turns: int = 40, drops: float = 0.15, name: str = "note chat") -> Workload:
    """A chat over a vault: notes are attached, edited, dropped, attached again; tools give something now and then."""
    dice, texts = Random(f"{name} {seed}"), load_texts()
    paths = list(texts.notes)
    dice.shuffle(paths)
    weights = list(accumulate(1 / rank**_ZIPF for rank in range(1, len(paths) + 1)))
    at: dict[str, int] = dict.fromkeys(paths, 0)
    held: list[str] = []
    steps: list[Step] = []
    for _ in range(turns):
        gone = tuple(path for path in held if dice.random() < drops)
        held = [path for path in held if path not in gone]
        for path in held:
            at[path] = min(at[path] + (dice.random() < _CHANGES), len(texts.notes[path]) - 1)
        for _ in range(min(dice.choices(range(4), weights=_DRAWN)[0], _MOST_HELD - len(held))):
            held.append(_draw(dice, paths, weights, held))
        text, reply = dice.choice(texts.pairs)
        steps.append(
            Step(
                text=text,
                reply=reply,
                pause=dice.lognormvariate(*_PAUSE),
                held={path: texts.notes[path][at[path]] for path in held},
                detach=tuple(path for path in gone if path not in held),
                output=dice.choice(texts.outputs)[:8_000] if dice.random() < _GIVES else None,
            )
        )
    return Workload(name=name, steps=tuple(steps), window=128_000)


def _draw(dice: Random, paths: list[str], weights: list[float], held: list[str]) -> str:
    """A note that is not attached yet; a few of them are wanted again and again."""
    while (path := dice.choices(paths, cum_weights=weights)[0]) in held:
        pass
    return path


def make_long_chat(seed: int) -> Workload:
    """The same for hundreds of turns, with notes that go sooner, in a window that appending outgrows."""
    return make_note_chat(seed, turns=300, drops=0.25, name="long chat")


def make_code_chat(seed: int, *, turns: int = 50) -> Workload:
    """A turn for each change: attached are the files it touches as they were, and those of the two changes before.

    The changes are commits of this project, with their real differences; without a history, edits of notes.
    """
    dice, texts = Random(f"code chat {seed}"), load_texts()
    commits = load_commits()[turns * seed : turns * (seed + 1)]
    changes = commits if len(commits) == turns else make_commits(dice, texts.notes, turns)
    steps: list[Step] = []
    held: dict[str, str] = {}
    for number, change in enumerate(changes):
        before = held
        recent = changes[max(0, number - 2) : number]
        held = {path: after for one in recent for path, (_, after) in one.touched.items()}
        held |= {path: as_it_was for path, (as_it_was, _) in change.touched.items()}
        steps.append(
            Step(
                text=f"{change.subject}. Please change {', '.join(change.touched)}.",
                reply="\n".join(show_change(path, *two) for path, two in change.touched.items()),
                pause=dice.lognormvariate(*_PAUSE),
                held=held,
                detach=tuple(path for path in before if path not in held),
            )
        )
    return Workload(name="code chat", steps=tuple(steps), window=128_000)


def make_agent(seed: int) -> Workload:
    """An agent's trajectory: rounds of tools between question and answer, nothing attached."""
    texts = load_texts()
    dice = Random(f"agent {seed}")
    system, messages = texts.trajectories[seed % len(texts.trajectories)]
    steps: list[Step] = []
    for at, said in enumerate(messages):
        if said["role"] == "user":
            steps.append(_follow(messages[at:], pause=dice.lognormvariate(*_PAUSE)))
    return Workload(name="agent", steps=tuple(steps), system=system)


def _follow(messages: tuple[dict[str, Any], ...], *, pause: float) -> Step:
    rounds: list[Round] = []
    called: dict[str, Any] = {}
    reply = ""
    for said in messages[1:]:
        if said["role"] == "user":
            break
        for call in said.get("tool_calls") or ():
            called = call["function"]
        if said["role"] == "tool":
            arguments = called["arguments"]
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
            rounds.append(Round(name=called["name"], arguments=given, output=str(said["content"])))
        elif not said.get("tool_calls"):
            reply = str(said["content"])
    return Step(text=str(messages[0]["content"]), reply=reply, pause=pause, rounds=tuple(rounds))


def make_short_chat(seed: int) -> Workload:
    """A few questions, a note with some of them."""
    dice, texts = Random(f"short chat {seed}"), load_texts()
    paths = [path for path, versions in texts.notes.items() if len(versions[0]) < 20_000]
    held: dict[str, str] = {}
    steps: list[Step] = []
    for text, reply in texts.talk[seed % len(texts.talk)][:4]:
        if dice.random() < 0.5 or not steps:
            path = dice.choice(paths)
            held = {**held, path: texts.notes[path][0]}
        steps.append(Step(text=text, reply=reply, pause=dice.lognormvariate(*_PAUSE), held=held))
    return Workload(name="short chat", steps=tuple(steps))


# Each kind with how many seeds of it are played; even ones were looked at while rules were tuned, odd ones are told.
KINDS: Mapping[str, tuple[Callable[[int], Workload], int]] = {
    "note chat": (make_note_chat, 20),
    "long chat": (make_long_chat, 4),
    "code chat": (make_code_chat, 6),
    "agent": (make_agent, 12),
    "short chat": (make_short_chat, 24),
}
