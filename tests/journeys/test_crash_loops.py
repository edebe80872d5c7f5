"""Acknowledged means durable for many concurrent tasks: every acknowledged answer is there after a kill, in order."""

import json
import random
import time
from itertools import islice
from pathlib import Path

import pytest
from tests import preloaded, servers

import lamella

KILLS = 3
# Twenty chats of one program talk at once on one store; each turn is printed when its last event has come.
TALK = r"""
import asyncio, json, os, sys
import lamella
from lamella.testing import ScriptedProvider

async def talk(engine, name):
    chat = await engine.conversation(name)
    for number in range(len(chat.turns()), 10_000):
        async for event in chat.send(f"Question {number}?"):
            if event.kind == "done":
                os.write(1, json.dumps([name, number]).encode() + b"\n")

async def main(url):
    script = ScriptedProvider(*["Answer."] * 100_000)
    async with lamella.open(url, model="scripted:x", provider=script) as engine:
        await asyncio.gather(*(talk(engine, f"chat {number}") for number in range(20)))

asyncio.run(main(sys.argv[1]))
"""


def _run_and_kill(url: str, *, turns: int, delay: float) -> list[tuple[str, int]]:
    """The turns that were told to be done before the program was killed."""
    with preloaded.Writing(TALK, url) as process:
        told = list(islice(process.lines, turns))
        time.sleep(delay)
        process.kill()
        told += process.lines
    return [(name, number) for name, number in map(json.loads, told)]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_every_acknowledged_answer_survives_kill(kind: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db" if kind == "sqlite" else servers.shared().make_store_url()
    dice = random.Random(7)
    for _ in range(KILLS):
        told = _run_and_kill(url, turns=dice.randrange(30, 120), delay=dice.random() / 10)
        assert len(told) >= 30
        with lamella.open(url) as engine:
            assert list(engine.verify()) == []
            kept = {listed.name: engine.chat(listed.name).turns() for listed in engine.chats()}
        for name, number in told:
            turn = kept[name][number]
            assert (turn.message.text, turn.reply and turn.reply.text) == (f"Question {number}?", "Answer.")
        for turns in kept.values():
            # In their order, and at most the last one waits; one that waited at an earlier kill was left empty since.
            assert [turn.message.text for turn in turns] == [f"Question {number}?" for number in range(len(turns))]
            assert {turn.reply.text if turn.reply else None for turn in turns[:-1]} <= {"Answer.", ""}
