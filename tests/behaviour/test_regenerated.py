"""A question that is answered again: its call is predicted, priced, judged, and in the ledger beside the first."""

import asyncio
from decimal import Decimal

import lamella
from lamella import Conversation, ModelCall
from lamella.core.log.call import CacheOutcome
from lamella.core.messages import Usage
from lamella.testing import ScriptedProvider, ScriptedReply

MODEL = "anthropic:claude-opus-5-5"
LONG = "What of this? " + "word " * 3_000


async def drain(chat: Conversation, what: object) -> None:
    async for _ in chat.send(what):  # type: ignore[arg-type]  # a text, or a turn
        pass


def talk(*, reopens: bool) -> tuple[list[ModelCall], list[str]]:
    """A question asked and answered again; its calls, and what the next turn says of its prefix."""
    first = Usage(plain=3, read=0, write=3_098, output=5)
    again = Usage(plain=3, read=3_098, write=0, output=5)

    async def talking() -> tuple[list[ModelCall], list[str]]:
        script = ScriptedProvider(ScriptedReply(text="One.", usage=first), ScriptedReply(text="Two.", usage=again))
        async with lamella.open("memory:", model=MODEL, provider=script) as engine:
            conversation = engine.chat("chat")
            await drain(conversation, LONG)
            conversation = engine.chat("chat") if reopens else conversation
            turn = conversation.regenerate()
            assert turn.cache is not None
            assert turn.cost is not None
            await drain(conversation, turn)
            conversation = engine.chat("chat") if reopens else conversation
            (calls,) = conversation.ledger()
            return list(calls), [conversation.ask("And?").prefix_change.cause]

    return asyncio.run(talking())


def test_regenerated_call_is_predicted_priced_and_judged() -> None:
    for reopens in (False, True):
        calls, causes = talk(reopens=reopens)
        again = calls[-1]
        assert again.predicted is not None
        assert again.predicted.read > 3_000, "it was sent a moment ago"
        assert again.cost is not None
        assert again.cost.amount is not None
        assert again.cost.amount > Decimal(0)
        assert again.billed is not None
        assert again.verdict.outcome is CacheOutcome.HIT
        assert causes == ["none"]


def test_ledger_has_every_call_of_a_question() -> None:
    calls, _ = talk(reopens=False)
    assert [call.verdict.outcome for call in calls] == [CacheOutcome.FIRST, CacheOutcome.HIT]
