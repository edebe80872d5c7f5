"""Questions with retrieval: recorded at once, with the cost of their auxiliary calls."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.runner_provider import Speaker

import lamella
from lamella import Conversation, Engine, Note, Tool
from lamella.conversation.runner_context import record_question, record_retrieved, was_retrieval_done
from lamella.providers import ModelRequest, TextDelta, Usage
from lamella.testing import ScriptedReply

PLAN = '[{"tool": "look", "arguments": {"query": "frost"}}]'
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
LOOK = Tool(name="look", description="Looks.", parameters=QUERY, run=lambda query: f"{query}: in May")


class Slow(Speaker):
    """Never ends what it says on the way."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.spoke = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[object]:
        if request.conversation is None:
            self.asides.append(request)
            yield TextDelta(text="Well, ")
            self.spoke.set()
            await asyncio.sleep(3_600)
        async for delta in super().stream(request):
            yield delta


def open_at(folder: Path, speaker: Speaker) -> Engine:
    vault = folder / "notes"
    vault.mkdir(exist_ok=True)
    (vault / "frost.md").write_text("# Frost\n\nFrost comes in May.\n", encoding="utf-8")
    url = f"sqlite:///{folder}/chats.db"
    return lamella.open(url, model="scripted:x", provider=speaker, vault=vault, max_attempts=1)  # type: ignore[arg-type]


async def stop_in_the_middle(chat: Conversation, speaker: Slow, runner: str) -> None:
    """Send a question, and stop as soon as something is asked on the way to its answer."""

    async def send() -> None:
        async for _ in chat.send("When does it come, this year?", runner=runner, tools=[LOOK]):
            pass

    sending = asyncio.create_task(send())
    await speaker.spoke.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


async def say(chat: Conversation, text: str) -> str:
    return "".join([event.text async for event in chat.send(text)])


async def resume(chat: Conversation) -> str:
    return "".join([event.text async for event in chat.resume(tools=[LOOK])])


@pytest.mark.parametrize("runner", ["plus", "vault_qa"])
def test_question_stopped_before_sending_is_pending_with_its_cost(tmp_path: Path, runner: str) -> None:
    slow = Slow("Frost is near.")
    with open_at(tmp_path, slow) as engine:
        conversation = engine.chat("garden")
        asyncio.run(say(conversation, "What of frost?"))
        asyncio.run(stop_in_the_middle(conversation, slow, runner))
        last = conversation.turns()[-1]
        assert (last.message.text, last.reply) == ("When does it come, this year?", None)
    speaker = Speaker("In May.", aside=PLAN)
    with open_at(tmp_path, speaker) as engine:
        conversation = engine.chat("garden")
        assert [call.purpose for call in conversation.ledger()[-1]] == ["plan" if runner == "plus" else "question"]
        assert asyncio.run(resume(conversation)).startswith("In May.")
        purposes = [call.purpose for call in conversation.ledger()[-1]]
        assert purposes == [*2 * ["plan" if runner == "plus" else "question"], "answer"]
        assert "May" in speaker.requests[-1].messages[-1].text
        assert (len(conversation.turns()), len(conversation.branches())) == (2, 1)
        assert list(engine.verify()) == []


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_retrieved_text_joins_question_and_attachments(tmp_path: Path, layout: str) -> None:
    speaker = Speaker("Yes.", "In May.", "Sure.", aside=PLAN)
    with open_at(tmp_path, speaker) as engine:
        conversation = engine.chat("garden", layout=layout)
        asyncio.run(say(conversation, "What of frost?"))
        conversation.attach(Note(path="waits.md", text="It waited."))

        async def ask() -> None:
            note = Note(path="beds.md", text="Three beds.")
            async for _ in conversation.send("And now?", runner="plus", attach=[note], tools=[LOOK], pin=["turn:1"]):
                pass

        asyncio.run(ask())
        asked = speaker.requests[-1].messages[-1].text
        assert [word in asked for word in ("It waited.", "Three beds.", "frost: in May")] == [True] * 3
        assert asked.endswith("[User query]:\nAnd now?")
        assert (len(conversation.turns()), len(conversation.branches()), conversation.pending_commands.attach) == (
            2,
            1,
            (),
        )
        assert [call.purpose for call in conversation.ledger()[-1]] == ["plan", "answer"]
        assert list(engine.verify()) == []
        then = [message.text for message in conversation.preview("And then?").messages]
    with open_at(tmp_path, Speaker()) as engine:
        assert [message.text for message in engine.chat("garden").preview("And then?").messages] == then


def test_plan_that_used_up_limit_retrieves_nothing(tmp_path: Path) -> None:
    speaker = Speaker("I do not know.", aside=ScriptedReply(text=PLAN, usage=Usage(plain=90, output=10)))
    called: list[str] = []
    look = Tool(name="look", parameters=QUERY, run=lambda query: called.append(query) or "found")  # type: ignore[func-returns-value]
    with open_at(tmp_path, speaker) as engine:
        conversation = engine.chat("garden")

        async def ask() -> list[str]:
            events = [e async for e in conversation.send("Frost?", runner="plus", tools=[look], turn_tokens=1)]
            return [line for event in events if event.turn for line in event.turn.envelope.warnings]

        told = asyncio.run(ask())
    assert called == []
    assert [line for line in told if "Nothing was looked up: a turn has at most 1 tokens" in line]


def test_runner_preparation_functions_are_callable() -> None:
    assert all(map(callable, (record_question, record_retrieved, was_retrieval_done)))
