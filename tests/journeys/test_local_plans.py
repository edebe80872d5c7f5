"""The embedded engine serves what the planner predicted, message by message."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bench.local import Talker

from lamella import Conversation, Message, Note, Turn
from lamella.core.messages import ModelRequest

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
# What the chat format of this model puts behind the last message: the beginning of an answer.
OPENS = 3
TIDE = "The tide turns twice a day, and nobody can keep it from that. "


def note(name: str, lines: int, *, more: str = "") -> Note:
    told = "\n".join(f"Line {at} of {name} says that the tide turns." for at in range(lines))
    return Note(path=f"{name}.md", text=told + more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What is asked, so many minutes after the step before, and how many messages the plan keeps; none for all."""

    keeps: int | None = None
    attach: tuple[Note, ...] = ()
    pin: tuple[str, ...] = ()
    fold: bool = False
    minutes: int = 1
    answer: str = "It turns. It turns. It turns."


STEPS = (
    Step(keeps=0, attach=(note("a", 10),)),
    # A pause: nothing lapses in this process.
    Step(minutes=24 * 60, pin=("a.md",)),
    Step(attach=(note("b", 14),)),
    # Another text, and an answer that leaves too little room for all of it.
    Step(attach=(note("a", 10, more="\nOne more line."),), answer=TIDE * 4),
    # What is pinned moves behind the cut, and what nobody needs leaves.
    Step(keeps=5),
    Step(keeps=1, fold=True),
    Step(),
)


async def count(talker: Talker, messages: Sequence[Message]) -> int:
    """The tokens of messages as the engine reads them."""
    request = ModelRequest(model="local", messages=tuple(messages), max_output_tokens=1)
    return (await talker.forecast(request)).prompt_tokens - OPENS


async def play() -> list[tuple[Turn, tuple[int, int, int]]]:
    """Each turn, with what the engine served, and the ends of the last message it should and of the next."""
    talker, at, played = Talker(window=1_024), NOON, []
    chat = Conversation(
        system="You are terse.",
        layout="auto",
        model="local",
        window=1_000,
        reserve=100,
        linger=0,
        trigger=0.7,
        target=0.65,
    )
    for step in STEPS:
        at += timedelta(minutes=step.minutes)
        turn = chat.ask("And now?", attach=step.attach, pin=step.pin, fold=step.fold, at=at)
        await talker.say(turn.messages, answer=1)
        served = turn.envelope.prompt.layout_plan.cached_message
        kept = 0 if served is None else served + 1
        ends = [await count(talker, turn.messages[:end]) if end else 0 for end in (kept, kept + 1)]
        played.append((turn, (ends[0], talker.served[-1].cached, ends[1])))
        # Another answer than the model's own: what it said itself is no part of the plan.
        chat.reply(step.answer)
    await talker.close()
    return played


def test_local_engine_serves_planned_prefix_through_pause_update_cut_and_fold() -> None:
    played = asyncio.run(play())
    assert [turn.envelope.prompt.layout_plan.keep_messages for turn, _ in played] == [step.keeps for step in STEPS]
    assert all(turn.compaction is None for turn, _ in played)
    forms = [segment.form.value for layer in played[3][0].envelope.layers for segment in layer.segments]
    assert "update" in forms
    for turn, (least, cached, most) in played:
        # All that was planned, and of the next message nothing but how it begins.
        assert least <= cached < most, (turn.number, turn.layout_reason)
