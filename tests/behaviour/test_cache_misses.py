"""What a cache miss cost is the same in the ledger, in an explanation, and in a conversation that was opened again."""

import asyncio
from decimal import Decimal
from pathlib import Path

import lamella
from lamella import Conversation, build_ledger_rows, total_ledger_rows
from lamella.core.ledger.entry import CacheMiss
from lamella.core.messages import Usage
from lamella.testing import ScriptedProvider, ScriptedReply

MODEL = "anthropic:claude-opus-5-5"
LONG = "What of this? " + "word " * 3_000
# The second request reads everything, the third nothing, although no byte before it changed, and the fourth all again.
USAGES = (
    Usage(plain=0, read=0, write=3_000, output=5),
    Usage(plain=0, read=3_000, write=20, output=5),
    Usage(plain=40, read=0, write=3_000, output=5),
    Usage(plain=0, read=3_000, write=60, output=5),
)
# At $4 per million, read tokens cost 0.05 times that: 3,000 were written for 1.25 times, and 20 were plain input.
COST = Decimal("0.014476")


async def ask(conversation: Conversation, text: str) -> None:
    async for _ in conversation.send(text):
        pass


def check(conversation: Conversation) -> None:
    first, second, third, fourth = conversation.cache_misses()
    assert (first, second, fourth) == (None, None, None)
    assert third == CacheMiss(tokens=3_020, cost=COST)
    rows = build_ledger_rows(conversation.turns(), conversation.ledger(), (), conversation.cache_misses())
    assert [row.cache_miss for row in rows] == [None, None, third, None]
    assert total_ledger_rows(rows).cache_miss == third
    (explained,) = conversation.why("turn:3").cache_misses
    assert (explained.turn, explained.tokens, explained.cost) == (3, 3_020, COST)
    assert explained.why == "the provider dropped its cache entry"
    assert conversation.why("turn:2").cache_misses == ()


def test_cost_of_a_miss_is_the_same_after_reopening(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"

    async def talk() -> None:
        script = ScriptedProvider(*(ScriptedReply(text="Yes.", usage=usage) for usage in USAGES))
        async with lamella.open(url, model=MODEL, provider=script) as engine:
            conversation = engine.chat("chat")
            for number in range(len(USAGES)):
                await ask(conversation, LONG if not number else f"Question {number}?")
            check(conversation)

    asyncio.run(talk())
    with lamella.open(url) as engine:
        check(engine.chat("chat"))


def test_a_changed_instruction_names_the_misses_that_it_caused(tmp_path: Path) -> None:
    async def talk() -> None:
        script = ScriptedProvider(*(ScriptedReply(text="Yes.", usage=usage) for usage in (USAGES[0], USAGES[2])))
        async with lamella.open(f"sqlite:///{tmp_path / 'chats.db'}", model=MODEL, provider=script) as engine:
            conversation = engine.chat("chat")
            await ask(conversation, LONG)
            conversation.set(system={"instructions": "Answer in one word."})
            await ask(conversation, "Why?")
            (explained,) = conversation.why("instructions").cache_misses
            assert (explained.turn, explained.tokens) == (2, 3_000)
            assert explained.why == "the prefix changed: system_changed(instructions)"

    asyncio.run(talk())
