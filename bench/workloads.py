"""Conversations to compact: long small talk with facts in it, and work in which every turn has a large tool result.

The same in every run, and nobody's own words; and real chats and agents' work, where they are beside the checkout.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.layouts.texts import Texts
from bench.text import make_text
from lamella import ToolResult

# How many real questions one conversation has, and how many of agents' conversations it is made of.
_CHATS, _TRAJECTORIES = 300, 12
_SYSTEM_CHARACTERS = 4_000
_OUTPUT_CHARACTERS = 6_000

_OPENERS = ("By the way", "Good morning", "Back again", "Since we last talked", "You may remember this", "Long day")
_DEEDS = ("planted", "repaired", "sold", "painted", "counted", "found", "ordered", "moved", "measured", "gave away")
_THINGS = ("tomatoes", "bicycles", "chairs", "window frames", "books", "lamps", "boxes", "apple trees", "old letters")
_PLACES = ("behind the workshop", "at the lake", "in the attic", "near the station", "on the balcony", "at the market")
_FEELINGS = ("I am still tired from it", "it went better than I thought", "next time I would start earlier")
_ANSWERS = ("That sounds like a full day", "Good to hear", "That is more than last time", "What a piece of work")
_THANKS = ("thanks", "ok", "got it", "sounds good", "great")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadMessage:
    """One request and its answer."""

    typed: str
    reply: str
    tools: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A conversation to play. A turn takes so many requests: one, or a second with what a tool answered."""

    name: str
    system: str
    said: tuple[WorkloadMessage, ...]
    requests_a_turn: int = 1


def make_small_talk(*, sessions: int = 30, turns: int = 20) -> Workload:
    """Months of small talk: a session every few days, a fact in most turns, an acknowledgement now and then."""
    words = Random(4)
    said = [_chat(words, session, turn) for session in range(sessions) for turn in range(turns)]
    return Workload(name="small talk", system="You are a good listener and remember what you hear.", said=tuple(said))


def _chat(words: Random, session: int, turn: int) -> WorkloadMessage:
    if turn % 7 == 6:
        return WorkloadMessage(typed=words.choice(_THANKS), reply=f"{words.choice(_ANSWERS)}. Take care.")
    day = f"{1 + session % 28} {('March', 'April', 'May')[session // 28 % 3]}"
    number, place = words.randrange(2, 90), words.choice(_PLACES)
    deed, things = words.choice(_DEEDS), words.choice(_THINGS)
    return WorkloadMessage(
        typed=f"{words.choice(_OPENERS)}: on {day} I {deed} {number} {things} {place}, and {words.choice(_FEELINGS)}.",
        reply=f"{words.choice(_ANSWERS)}: {number} {things} {place}. How long did it take, and who helped with it?",
    )


def make_tool_work(*, turns: int = 30) -> Workload:
    """Work with a tool: each turn a question, the call, 6,000 characters of output, and the answer to it."""
    said = [one for number in range(turns) for one in _look_up(number)]
    return Workload(name="tool work", system=make_text(1, _SYSTEM_CHARACTERS), said=tuple(said), requests_a_turn=2)


def _look_up(number: int) -> tuple[WorkloadMessage, WorkloadMessage]:
    output = make_text(10_000 + number, _OUTPUT_CHARACTERS)
    result = ToolResult(name="read_log", arguments={"page": number}, output=output)
    return (
        WorkloadMessage(
            typed=f"Task {number}: {make_text(20_000 + number, 200)}", reply=f"I read page {number} of the log."
        ),
        WorkloadMessage(typed=f"Go on with task {number}.", reply=make_text(30_000 + number, 400), tools=(result,)),
    )


def join_chats(texts: Texts, seed: int) -> Workload:
    """What people asked and were answered, one after the other, in an order of the seed."""
    pairs = [pair for pair in texts.pairs if pair[0].strip() and pair[1].strip()]
    Random(seed).shuffle(pairs)
    said = tuple(WorkloadMessage(typed=asked, reply=answer) for asked, answer in pairs[:_CHATS])
    return Workload(name="chats", system="You are a helpful assistant.", said=said)


def join_agents(texts: Texts, seed: int) -> Workload:
    """Agents at work, one after the other: questions with what tools gave for them, and answers."""
    trajectories = list(texts.trajectories)
    Random(seed).shuffle(trajectories)
    said = tuple(one for _, messages in trajectories[:_TRAJECTORIES] for one in _list_answered(messages))
    return Workload(name="agents' work", system=trajectories[0][0], said=said, requests_a_turn=2)


def _list_answered(messages: tuple[dict[str, Any], ...]) -> Iterator[WorkloadMessage]:
    typed, results, calls = "", list[ToolResult](), dict[str, dict[str, str]]()
    for message in messages:
        content = str(message.get("content") or "")
        calls |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
        if message["role"] == "user":
            typed, results = content, []
        elif message["role"] == "tool" and typed:
            call = calls[message["tool_call_id"]]
            arguments = json.loads(call["arguments"])
            results.append(ToolResult(name=call["name"], arguments=arguments, output=content))
        elif content and typed:
            yield WorkloadMessage(typed=typed, reply=content, tools=tuple(results))
            typed = ""
