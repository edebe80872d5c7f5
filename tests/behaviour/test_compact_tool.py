"""The compact tool: a model frees space at once, is told what was freed, and nothing is lost."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.conversation.backends import make_chat

import lamella
from lamella import Conversation, Note
from lamella.conversation.recall import describe_freed_space
from lamella.conversation.turn import ModelAnswer
from lamella.core.messages import ModelReply, StopReason
from lamella.providers import ToolCall, ToolOutput
from lamella.stores.memory import InMemoryStore
from lamella.testing import ScriptedProvider, ScriptedReply

SPEC = "# Spec\nThe desk has the code K-37.\n" + "It stands by the window. " * 200
CALL = ToolCall(id="c", name="compact", arguments="{}")
SMALL = {"layout": "in_place", "window": 8_000, "reserve": 500}


def talk(chat: Conversation | Conversation, turns: int = 8) -> None:
    chat.ask("What is this?", attach=[Note(path="spec.md", text=SPEC)])
    chat.reply("A desk.")
    for number in range(turns):
        chat.ask(f"Question {number} about shelf {number * 7}, please." + " More words." * 60)
        chat.reply(f"Answer {number}." + " And so on." * 80)


def send(chat: Conversation, text: str, **given: object) -> list[ToolOutput]:
    async def follow() -> list[ToolOutput]:
        return [event.output async for event in chat.send(text, **given) if event.output]  # type: ignore[arg-type]

    return asyncio.run(follow())


def test_compact_tool_tells_model_what_it_freed() -> None:
    provider = ScriptedProvider(ScriptedReply(text="", calls=(CALL,)), ScriptedReply(text="Now there is room."))
    with lamella.open("memory:", model="scripted:x", provider=provider) as engine:
        conversation = engine.chat("demo", **SMALL)
        talk(conversation)
        (output,) = send(
            conversation, "Make room, then go on.", tools=[conversation.compact_tool, conversation.recall_tool]
        )
        (receipt,) = conversation.receipts()
        assert output.output == describe_freed_space(receipt)
        assert f"Freed {receipt.tokens_before - receipt.tokens_after:,} tokens" in output.output
        first, second = provider.requests
        assert sum(len(m.text) for m in second.messages) < sum(len(m.text) for m in first.messages)
        assert conversation.recall('"code K-37"')[0].passage.text == SPEC
        assert conversation.turns()[-1].reply is not None


def test_compact_tool_with_own_client_reopens_the_same() -> None:
    store = InMemoryStore()
    conversation = make_chat(store, **SMALL)
    talk(conversation)
    turn = conversation.ask("Go on.", tools=[conversation.compact_tool])
    conversation.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    run = conversation.compact_tool.run
    assert run is not None
    told: str = asyncio.run(run())  # type: ignore[arg-type]
    assert "Freed" in told
    # Before the result is given: nothing that was written down is in the way of reading it again.
    assert [call.id for call in make_chat(store).pending_tool_calls] == ["c"]
    after = conversation.submit_tool_outputs([ToolOutput(call="c", output=told)])
    assert after.tokens.total < turn.tokens.total
    again = make_chat(store).prepare_pending_turn()
    assert again is not None
    assert [message.text for message in again.messages] == [message.text for message in after.messages]
    conversation.reply("Done.")
    conversation.undo()
    assert not conversation.receipts()


def test_compact_tool_between_turns_is_ordinary_compaction() -> None:
    chat = Conversation(**SMALL)  # type: ignore[arg-type]
    talk(chat)
    run = chat.compact_tool.run
    assert run is not None
    assert "Freed" in asyncio.run(run())  # type: ignore[arg-type]
    assert len(chat.receipts()) == 1
    assert chat.recall('"code K-37"')[0].passage.text == SPEC
    # Running it twice changes nothing.
    assert "nothing to compact" in asyncio.run(run())  # type: ignore[arg-type]
    assert len(chat.receipts()) == 1


def test_compact_tool_reports_nothing_to_compact() -> None:
    chat = Conversation()
    chat.ask("Hello")
    run = chat.compact_tool.run
    assert run is not None
    assert "nothing to compact" in asyncio.run(run())  # type: ignore[arg-type]
    assert not chat.receipts()


@pytest.mark.parametrize("runner", ["agent", "project"])
def test_runners_with_tools_offer_recall_and_compact(runner: str, tmp_path: object) -> None:
    provider = ScriptedProvider(ScriptedReply(text="Fine."))
    with lamella.open("memory:", model="scripted:x", provider=provider, vault=str(tmp_path)) as engine:
        conversation = engine.chat("demo", runner=runner)
        send(conversation, "Hello")
    names: Sequence[str] = [tool.name for tool in provider.requests[0].tools]
    assert {"recall", "compact"} <= set(names)
