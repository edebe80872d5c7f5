"""What agents with tools cost in layout ``auto``, beside appending everything and clearing old results at a threshold.

The sessions are made from real source files. An agent searches, reads, edits and runs tests. An edit needs the file that
was read before it: if its result is no longer in the prompt, the agent recalls it, which costs a request and its tokens.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from random import Random
from types import SimpleNamespace

from bench.layouts.caches import DEAR, MARKS, Block, Rates, count, open_cache
from bench.layouts.strategies import START, Sent, read_blocks, write_facts
from bench.layouts.texts import load_texts
from bench.text import make_text
from bench.verdicts import Verdicts
from lamella import Conversation, Tool, ToolOutput, Turn
from lamella.core.compaction.clearing import MIN_CLEARED_TOKENS, RESULTS_WORTH_RECALL

_MODELS = {MARKS.name: "bench-marks", DEAR.name: "bench-dear"}
_PACKAGES = ("rich", "prompt_toolkit", "hypothesis", "typer", "pydantic", "starlette")
_SYSTEM = make_text(78, 9_000)
_SEEDS = 16
_CLEARED = "[result cleared: make the call again]"
_SHORT = "5m"
# A tool's result: name and arguments of the call, and the text.
_NAMES = ("search", "read_file", "edit_file", "run_tests", "look_up")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A tool call with its result. ``needs`` is the number of an earlier action whose result it needs, if any."""

    name: str
    arguments: Mapping[str, object]
    output: str
    needs: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """A question, the actions for it, and the reply; ``pause`` is in seconds before it."""

    text: str
    actions: tuple[Action, ...]
    reply: str
    pause: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Tasks of one conversation, under one system prompt."""

    tasks: tuple[AgentTask, ...]
    system: str = _SYSTEM
    is_agent: bool = True


@cache
def load_files() -> tuple[tuple[str, str], ...]:
    """Return the source files of installed packages, by path, in order."""
    files: list[tuple[str, str]] = []
    for name in _PACKAGES:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for file in sorted(folder.rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            if 1_500 < len(text) < 40_000:
                files.append((f"{name}/{file.relative_to(folder).as_posix()}", text))
    return tuple(files)


class _Maker:
    """Makes the actions of a session with one random generator."""

    def __init__(self, seed: str) -> None:
        self.dice = Random(seed)
        package = self.dice.choice(_PACKAGES)
        self.files = [one for one in load_files() if one[0].startswith(f"{package}/")]
        # The number of the last action that read each file.
        self.read: dict[str, int] = {}
        self.number = 0

    def make_task(self, actions: int, *, focus: list[tuple[str, str]]) -> AgentTask:
        made = [self._search(focus)]
        while len(made) < actions:
            made.append(self._next(focus))
        return AgentTask(
            text=make_text(self.dice.randrange(10**6), self.dice.randrange(80, 600)),
            actions=tuple(made),
            reply=make_text(self.dice.randrange(10**6), self.dice.randrange(300, 1_500)),
            pause=self.dice.lognormvariate(4.2, 1.0),
        )

    def choose_focus(self, before: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
        focus = self.dice.sample(self.files, self.dice.randrange(2, 6))
        return [*focus, *(one for one in before if self.dice.random() < 0.15)]

    def _add(self, action: Action) -> Action:
        self.number += 1
        return action

    def _search(self, focus: Sequence[tuple[str, str]]) -> Action:
        word = self.dice.choice([one for one in focus[0][1].split() if one.isidentifier()] or ["def"])
        lines = [
            f"{path}:{number}: {line.strip()}"
            for path, text in self.files
            for number, line in enumerate(text.splitlines(), start=1)
            if word in line
        ]
        return self._add(Action(name="search", arguments={"query": word}, output="\n".join(lines[:80])))

    def _next(self, focus: Sequence[tuple[str, str]]) -> Action:
        roll, (path, text) = self.dice.random(), self.dice.choice(focus)
        if roll < 0.15:
            return self._search(focus)
        if roll < 0.35:
            return self._add(self._run_tests())
        if roll < 0.65 and path in self.read:
            done = Action(
                name="edit_file",
                arguments={"path": path, "old": text[200:320], "new": text[200:300]},
                output="The file was changed.",
                needs=self.read[path],
            )
            return self._add(done)
        lines = text.splitlines()
        arguments: dict[str, object] = {"path": path}
        if len(lines) > 250 and self.dice.random() < 0.4:
            first = self.dice.randrange(len(lines) - 200)
            arguments, lines = {"path": path, "first": first, "last": first + 200}, lines[first : first + 200]
        self.read[path] = self.number
        return self._add(Action(name="read_file", arguments=arguments, output="\n".join(lines)))

    def _run_tests(self) -> Action:
        path, text = self.dice.choice(self.files)
        shown = [f"{path}:{number}: {line}" for number, line in enumerate(text.splitlines()[:200], start=1)]
        # The same command each time, with another result.
        return Action(name="run_tests", arguments={"arguments": "-q"}, output="\n".join(shown))


def make_task_session(seed: int) -> Session:
    """Several tasks in one conversation."""
    maker = _Maker(f"tasks {seed}")
    tasks: list[AgentTask] = []
    focus: list[tuple[str, str]] = []
    for _ in range(maker.dice.randrange(5, 11)):
        focus = maker.choose_focus(focus)
        tasks.append(maker.make_task(maker.dice.randrange(6, 26), focus=focus))
    return Session(tasks=tuple(tasks))


def make_long_task(seed: int) -> Session:
    """One task with many actions; the files that it works on change slowly."""
    maker = _Maker(f"long {seed}")
    actions: list[Action] = []
    focus: list[tuple[str, str]] = []
    while len(actions) < 110:
        focus = [*focus[-2:], *maker.choose_focus()]
        actions += maker.make_task(maker.dice.randrange(12, 22), focus=focus).actions
    return Session(tasks=(AgentTask(text=make_text(seed, 900), actions=tuple(actions), reply="Done.", pause=0.0),))


def make_support_chat(seed: int) -> Session:
    """A short conversation of a support agent with tools, as it was recorded."""
    texts = load_texts()
    system, messages = texts.trajectories[seed % len(texts.trajectories)]
    tasks: list[AgentTask] = []
    dice = Random(f"support {seed}")
    asked, actions, called = "", list[Action](), dict[str, str]()
    for said in messages:
        if said["role"] == "user":
            asked, actions = str(said["content"]), []
        elif said["role"] == "tool":
            arguments = called["arguments"]
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
            actions.append(
                Action(name="look_up", arguments={"tool": called["name"], **given}, output=str(said["content"]))
            )
        elif said.get("tool_calls"):
            called = said["tool_calls"][0]["function"]
        else:
            tasks.append(
                AgentTask(
                    text=asked, actions=tuple(actions), reply=str(said["content"]), pause=dice.lognormvariate(3.8, 1)
                )
            )
    return Session(tasks=tuple(tasks), system=system, is_agent=False)


SESSIONS: Mapping[str, Callable[[int], Session]] = {
    "several tasks": make_task_session,
    "one long task": make_long_task,
    "support chat": make_support_chat,
}


def send_fixed(
    session: Session, *, clear_over: int | None = None, at_least: int = 0, presence: "Presence | None" = None
) -> Iterator[Sent]:
    """Yield the requests that append everything, or clear all but three results over a number of tokens.

    An agent that needs a cleared file reads it again. That result is then the newest, and is cleared like any other.
    """
    tools = [Block(json.dumps({"name": name, "description": "", "input_schema": {}})) for name in _NAMES]
    said = [*tools, Block(session.system, _SHORT)]
    at, total = 0.0, sum(count(block.text) for block in said)
    actions = [action for task in session.tasks for action in task.actions]
    seen = Presence() if presence is None else presence
    # The places of results that are in full, with the numbers of their actions.
    full: dict[int, int] = {}

    def clear() -> None:
        nonlocal total
        old = list(full)[:-3]
        freed = sum(count(said[place].text) - count(_CLEARED) for place in old)
        if clear_over is None or total <= clear_over or freed < at_least:
            return
        for place in old:
            said[place] = Block(_CLEARED)
            del full[place]
        total -= freed

    def add(text: str) -> None:
        nonlocal total
        said.append(Block(text))
        total += count(text)

    def act(action: Action, number: int) -> list[Block]:
        add(f"{action.name} {json.dumps(dict(action.arguments))}")
        full[len(said)] = number
        add(action.output)
        clear()
        return _mark_last(said)

    number = 0
    for task in session.tasks:
        at += task.pause
        add(task.text)
        clear()
        yield at, _mark_last(said)
        for action in task.actions:
            if action.needs is not None:
                seen.needs += 1
                if action.needs not in full.values():
                    seen.recalls += 1
                    at += 5
                    yield at, act(actions[action.needs], action.needs)
            at += 8
            yield at, act(action, number)
            number += 1
        add(task.reply)


def _mark_last(said: Sequence[Block]) -> list[Block]:
    return [*said[:-1], said[-1]._replace(mark=_SHORT)]


@dataclass(slots=True)
class Presence:
    """How many results of the task under way were in the prompt, over all requests.

    A result counts while it is the newest of its call. ``needs`` are the actions that need the result of an earlier one,
    and ``recalls`` those of them that did not find it in the prompt.
    """

    newest: int = 0
    present: int = 0
    needs: int = 0
    recalls: int = 0

    @property
    def share(self) -> float:
        return self.present / self.newest if self.newest else 1.0

    @property
    def found_share(self) -> float:
        """The share of actions that found the result they need."""
        return 1 - self.recalls / self.needs if self.needs else 1.0


def send_auto(session: Session, presence: Presence, *, facts: str, model: str) -> Iterator[Sent]:
    """Yield the requests of layout ``auto`` with recall."""
    chat = Conversation(
        system=session.system,
        model=f"anthropic:{model}",
        model_facts=facts,
        window=10**9,
        keep_ledger=False,
        layout="auto",
    )
    tools = [Tool(name=name) for name in _NAMES]
    at, outputs = 0.0, list[str]()
    has_recall = False
    for task in session.tasks:
        at += task.pause
        first = len(outputs)
        now = START + timedelta(seconds=at)
        # A conversation that only looks things up gets the tool by the rule of ``may_clear_later``.
        enough = MIN_CLEARED_TOKENS if task.pause > MARKS.lifetime else RESULTS_WORTH_RECALL
        needs_recall = session.is_agent or sum(map(count, outputs)) >= enough
        if needs_recall and not has_recall:
            tools, has_recall = [*tools, chat.recall_tool], True
        turn = chat.ask(task.text, tools=tools, at=now)
        yield at, read_blocks(turn.request("anthropic"))
        for action in task.actions:
            presence.needs += action.needs is not None
            if action.needs is not None and not _shows(turn, outputs[action.needs]):
                presence.recalls += 1
                at += 5
                turn = _call(chat, "recall", {"query": "file"}, outputs[action.needs], START + timedelta(seconds=at))
                yield at, read_blocks(turn.request("anthropic"))
            at += 8
            turn = _call(chat, action.name, action.arguments, action.output, START + timedelta(seconds=at))
            outputs.append(action.output)
            shown = {message.text for message in turn.messages}
            newest = {_call_key(one): output for one, output in zip(task.actions, outputs[first:], strict=False)}
            presence.newest += len(newest)
            presence.present += sum(output in shown for output in newest.values())
            yield at, read_blocks(turn.request("anthropic"))
        chat.reply(task.reply, at=START + timedelta(seconds=at))


def find_least_cost(session: Session, rates: Rates, *, share: float) -> float:
    """Return the least that a session of one task can cost if this share of its results is in the prompt.

    Everything is written once and read in each later request, and whatever leaves does so for nothing. What may be
    absent are the largest results, in the requests that read them.
    """
    (task,) = session.tasks
    talk = sum(count(text) for text in (session.system, task.text))
    cost, read, newest = rates.write * talk, list[int](), dict[str, int]()
    for action in task.actions:
        call, size = count(_call_key(action)), count(action.output)
        newest.pop(_call_key(action), None)
        read += newest.values()
        cost += rates.read * (talk + sum(newest.values())) + rates.write * (call + size)
        newest[_call_key(action)] = size
        talk += call
    absent = sorted(read, reverse=True)[: int((1 - share) * (len(read) + len(task.actions)))]
    return cost - rates.read * sum(absent)


def _call_key(action: Action) -> str:
    return f"{action.name} {json.dumps(dict(action.arguments))}"


def _shows(turn: Turn, output: str) -> bool:
    return any(message.text == output for message in turn.messages)


def _call(chat: Conversation, name: str, arguments: Mapping[str, object], output: str, now: datetime) -> Turn:
    function = SimpleNamespace(name=name, arguments=json.dumps(dict(arguments)))
    message = {"content": "", "tool_calls": [{"id": "", "type": "function", "function": vars(function)}]}
    response = {"object": "chat.completion", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    reply = chat.reply(response, at=now)
    return chat.submit_tool_outputs([ToolOutput(call=call.id, output=output) for call in reply.calls], at=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCosts:
    """Costs of strategies over those of appending, by strategy and rates, and what was in the prompt of each."""

    ratios: Mapping[tuple[str, str], float]
    presence: Mapping[str, Presence]


def measure_sessions(kind: str, *, odd: bool = True, seeds: int = _SEEDS) -> AgentCosts:
    """Measure the sessions of a kind with odd seeds, or those that rules may be tuned on."""
    facts, costs = write_facts(), dict[tuple[str, str], float]()
    presence = {name: Presence() for name in (*_CLEAR_OVER, "auto")}

    def bill(strategy: str, rates: Rates, requests: Iterator[Sent]) -> None:
        cache = open_cache(rates)
        for at, blocks in requests:
            cache.take(blocks, at)
        add(strategy, rates, cache.bill.cost)

    def add(strategy: str, rates: Rates, cost: float) -> None:
        costs[strategy, rates.name] = costs.get((strategy, rates.name), 0.0) + cost

    for seed in range(int(odd), seeds, 2):
        session = SESSIONS[kind](seed)
        for rates in (MARKS, DEAR):
            seen = presence if rates is MARKS else {name: Presence() for name in presence}
            bill("append", rates, send_fixed(session))
            for name, over in _CLEAR_OVER.items():
                bill(name, rates, send_fixed(session, clear_over=over, at_least=10_000, presence=seen[name]))
            bill("auto", rates, send_auto(session, seen["auto"], facts=facts, model=_MODELS[rates.name]))
            if len(session.tasks) == 1:
                add(_LEAST, rates, find_least_cost(session, rates, share=_MIN_PRESENT))
    ratios = {(name, rates): cost / costs["append", rates] for (name, rates), cost in costs.items()}
    return AgentCosts(ratios=ratios, presence=presence)


_CLEAR_OVER = {"clear at 30k": 30_000, "clear at 100k": 100_000}
# Of appending everything, at the prices of a cache with breakpoints.
_BOUNDS = {"several tasks": 0.45, "one long task": 0.75, "support chat": 1.01}
_MIN_PRESENT = 0.98
# The least that a plan can cost that keeps the results of the task in the prompt.
_LEAST = "keep 98 %, at least"
_BEATEN = {"several tasks": ("clear at 30k", "clear at 100k"), "one long task": ("clear at 100k",)}


def bench_agents(verdicts: Verdicts) -> None:
    """What agents cost in ``auto`` beside appending everything, on seeds that nobody tuned on."""
    print("agents: cost over appending, on seeds that nobody tuned on; recalls are paid", flush=True)
    for kind, bound in _BOUNDS.items():
        found = measure_sessions(kind)
        for (strategy, rates), ratio in found.ratios.items():
            print(f"  {kind:>14}, {rates:>9}: {strategy:>19} {ratio:5.3f}", flush=True)
        for name, seen in found.presence.items():
            print(f"  {kind:>14}, {name:>13}: {_describe_presence(seen)}", flush=True)
        _judge(verdicts, kind, found, bound)


def _describe_presence(seen: Presence) -> str:
    kept = f"{seen.share:.3f} of the results of the task in the prompt, " if seen.newest else ""
    return f"{kept}{seen.needs - seen.recalls} of {seen.needs} actions found the result that they need in it"


def _judge(verdicts: Verdicts, kind: str, found: AgentCosts, bound: float) -> None:
    auto, seen = found.ratios["auto", MARKS.name], found.presence["auto"]
    verdicts.at_most(f"agents, {kind}: auto over appending", auto, bound)
    if kind != "one long task":
        verdicts.at_least(f"agents, {kind}: results of the task in the prompt", seen.share, _MIN_PRESENT)
    else:
        # A plan that keeps nearly all of them costs more than clearing at 30k, whatever its rule is.
        verdicts.at_least(
            f"agents, {kind}: actions that find their result in the prompt", seen.found_share, _MIN_PRESENT
        )
        least = found.ratios[_LEAST, MARKS.name]
        print(f"  {kind}: auto over clear at 30k {auto / found.ratios['clear at 30k', MARKS.name]:.2f}, NOT at most 1")
        verdicts.measured[f"agents, {kind}: keeping 98 % over clear at 30k"] = (
            least / found.ratios["clear at 30k", MARKS.name]
        )
    for other in _BEATEN.get(kind, ()):
        verdicts.at_most(f"agents, {kind}: auto over {other}", auto / found.ratios[other, MARKS.name], 1.0)
