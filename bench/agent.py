"""An agent's loop of twenty rounds beside a bare one over the same SDK and wire, and what a cache would serve of it."""

import asyncio
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lamella
from bench.text import make_text
from bench.verdicts import Verdicts
from lamella.core.messages import ToolCall
from lamella.providers.openai_chat import OpenAIChatProvider
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

ROUNDS = 20
LOOPS = 5
MODEL = "anthropic:claude-opus-5-5"
QUESTION = "Which of my notes speak of the garden, and what was decided there?"
_CHARACTERS = 2_000


def search_notes(query: str) -> str:
    """Search the notes."""
    return make_text(int(query.rpartition(" ")[2]), _CHARACTERS)


def _query(number: int) -> str:
    # No word of it is in two of them but one, so that none repeats another.
    return f"word{number} term{number} topic {number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Seconds of a whole loop, with Lamella and without: the medians of several."""

    agent_seconds: float
    bare_seconds: float


def measure_loops() -> LoopTimes:
    """The same rounds on one server, by the agent and by a few lines over the SDK, one after the other."""
    return asyncio.run(_measure_loops())


async def _measure_loops() -> LoopTimes:
    from tests.wire.openai_caching import KEY, LOCAL_MODEL
    from tests.wire.openai_chat_server import chat_server
    from tests.wire.script import Say, Wanted

    calls = [Wanted(id=f"c{at}", name="search_notes", arguments={"query": _query(at)}) for at in range(ROUNDS)]
    acts = [*(Say(text="", calls=(call,)) for call in calls), Say(text="It was decided.")]
    agent: list[float] = []
    bare: list[float] = []
    with chat_server(*(acts * (2 * LOOPS))) as server, TemporaryDirectory() as folder:
        for number in range(LOOPS):
            url = f"{server.url}/v1"
            agent.append(await _run_agent(Path(folder) / f"{number}.db", url, key=KEY, model=LOCAL_MODEL))
            bare.append(await _run_bare(url, key=KEY, model=LOCAL_MODEL))
    return LoopTimes(agent_seconds=statistics.median(agent), bare_seconds=statistics.median(bare))


async def _run_agent(file: Path, url: str, *, key: str, model: str) -> float:
    provider = OpenAIChatProvider(key=key, address=url, timeout=60.0)
    async with lamella.open(f"sqlite:///{file}", model=model, provider=provider) as engine:
        conversation = await engine.conversation("bench", layout="in_place", window=10**9)
        started = time.perf_counter()
        async for _ in conversation.send(QUESTION, runner="agent", tools=[search_notes], steps=ROUNDS + 1):
            pass
        seconds = time.perf_counter() - started
        assert len(conversation.ledger()[-1]) == ROUNDS + 1, "a round for every call, and the answer"
    await provider.close()
    return seconds


async def _run_bare(url: str, *, key: str, model: str) -> float:
    from openai import AsyncOpenAI

    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    tool = {"name": "search_notes", "description": "Search the notes.", "parameters": parameters}
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    async with AsyncOpenAI(base_url=url, api_key=key) as client:
        started = time.perf_counter()
        while True:
            create: Any = client.chat.completions.create
            stream = await create(
                model=model,
                messages=messages,
                tools=[{"type": "function", "function": tool}],
                stream=True,
                stream_options={"include_usage": True},
            )
            calls = [call async for chunk in stream for call in _list_calls(chunk)]
            if not calls:
                return time.perf_counter() - started
            messages += _answer(calls)


def _list_calls(chunk: Any) -> Sequence[Any]:  # noqa: ANN401 - an object of the SDK
    return [call for choice in chunk.choices for call in choice.delta.tool_calls or ()]


def _answer(calls: Sequence[Any]) -> list[dict[str, Any]]:
    """A call and its result, as they are sent on; a call may come in pieces."""
    name, arguments = calls[0].function.name, "".join(call.function.arguments or "" for call in calls)
    asked = {"id": calls[0].id, "type": "function", "function": {"name": name, "arguments": arguments}}
    found = search_notes(**json.loads(arguments))
    said = {"role": "assistant", "content": "", "tool_calls": [asked]}
    return [said, {"role": "tool", "tool_call_id": calls[0].id, "content": found}]


def measure_cached_share() -> float:
    """What the cache is predicted to serve over a loop, as a share of all that was sent in the request before each."""
    return asyncio.run(_measure_cached_share())


async def _measure_cached_share() -> float:
    lines = [
        ScriptedReply(calls=(ToolCall(id=f"c{at}", name="search_notes", arguments=json.dumps({"query": _query(at)})),))
        for at in range(ROUNDS)
    ]
    provider = ScriptedProvider(*lines, "It was decided.")
    async with lamella.open("memory:", model=MODEL, provider=provider) as engine:
        conversation = await engine.conversation("bench", layout="in_place", window=10**9)
        sending = conversation.send(QUESTION, runner="agent", tools=[search_notes], steps=ROUNDS + 1)
        turns = [event.turn async for event in sending if event.kind == "envelope" and event.turn is not None]
    served = allowed = 0
    for before, after in pairwise(turns):
        assert after.cache is not None
        served += after.cache.read
        allowed += before.tokens.total
    return served / allowed


def bench_agent(verdicts: Verdicts) -> None:
    """An agent's loop beside a bare one, and its cache."""
    print(f"agent: {ROUNDS} rounds and an answer, on a loopback server, through the SDK", flush=True)
    found = measure_loops()
    rounds = ROUNDS + 1
    agent, bare = found.agent_seconds / rounds * 1e3, found.bare_seconds / rounds * 1e3
    print(f"  a round {agent:.2f} ms, by a bare loop {bare:.2f} ms, added {agent - bare:.2f} ms", flush=True)
    verdicts.measured["agent: milliseconds added per round"] = agent - bare
    verdicts.at_most("agent: a round over one of a bare loop on the same wire", agent / bare, 3.0)
    verdicts.at_least("agent: tokens predicted cached over those of the request before", measure_cached_share(), 0.95)
