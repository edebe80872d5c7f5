"""An answer that is changed on its way: what is shown is what is written down, whole or stopped in the middle."""

import asyncio
from contextlib import aclosing

import pytest
from tests.unit.conversation.turn_runner.test_sending import Sleeping, Ticking, limited, stored

from lamella.conversation.conversation import Conversation
from lamella.conversation.stream import AnswerEditor
from lamella.conversation.tool_executor import LocalToolset
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_runner import EventName, SendContext, TurnEvent, TurnRunner
from lamella.core.log.turn import StoredCitation
from lamella.core.messages import ToolCall, Usage
from lamella.errors import LamellaError, ProviderUnreachableError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply
from lamella.stores.memory import InMemoryStore

SOURCE = StoredCitation(id="a.md")


class Shouting:
    """Says everything in capitals, one word later than it came, and ends with a mark."""

    def __init__(self) -> None:
        self._held = ""
        self.sources: tuple[StoredCitation, ...] = ()

    def feed(self, text: str) -> str:
        whole, space, self._held = (self._held + text).rpartition(" ")
        self.sources = (SOURCE,) if whole else self.sources
        return (whole + space).upper()

    def finish(self, *, has_tool_calls: bool) -> str:
        rest, self._held = self._held.upper(), ""
        return rest if has_tool_calls else f"{rest}!"


def run(
    chat: Conversation,
    provider: ScriptedProvider,
    *,
    editor: AnswerEditor | None = None,
    stop_after: int | None = None,
) -> list[TurnEvent]:
    async def collect() -> list[TurnEvent]:
        at = SendContext(
            provider=provider, clock=Ticking(), sleep=Sleeping(), jitter=lambda: 0.5, editor=editor or Shouting()
        )
        events: list[TurnEvent] = []
        async with aclosing(TurnRunner(chat, at, toolset=LocalToolset()).ask(TurnRequest(text="Well?"))) as coming:
            async for event in coming:
                events.append(event)
                if stop_after is not None and len(events) == stop_after:
                    break
        return events

    return asyncio.run(collect())


def said(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events)


def kept(chat: Conversation) -> str | None:
    reply = chat.turns()[-1].reply
    return None if reply is None else reply.text


def test_shown_text_equals_stored_text_with_sources() -> None:
    chat = stored(InMemoryStore())
    usage = Usage(plain=10, read=0, write=0, output=3)
    events = run(chat, ScriptedProvider(ScriptedReply(text="so it is", chunk_size=3, usage=usage)))
    assert said(events) == kept(chat) == "SO IT IS!"
    assert "" not in [event.text for event in events if event.kind is EventName.DELTA]
    assert chat.turns()[-1].sources == (SOURCE,)
    assert chat.ledger()[0][0].usage.output == 3


@pytest.mark.parametrize("stop_after", range(2, 6))
def test_text_shown_before_stop_is_stored(stop_after: int) -> None:
    chat = stored(InMemoryStore())
    events = run(chat, ScriptedProvider(ScriptedReply(text="so it is, I say", chunk_size=3)), stop_after=stop_after)
    assert said(events) == kept(chat) != ""


def test_answer_without_shown_text_leaves_question_pending() -> None:
    chat = stored(InMemoryStore())
    error = ProviderUnreachableError("Gone.", hint="Wait.")
    with pytest.raises(LamellaError):
        run(chat, ScriptedProvider(ScriptedReply(text="so", error=error), "never asked"))
    assert kept(chat) is None


def test_empty_attempt_is_retried_with_same_editor() -> None:
    chat = stored(InMemoryStore())
    assert said(run(chat, ScriptedProvider(ScriptedReply(error=limited()), "so it is"))) == kept(chat) == "SO IT IS!"


def test_one_editor_processes_all_rounds() -> None:
    chat = stored(InMemoryStore())
    call = ToolCall(id="1", name="look", arguments="{}")
    events = run(chat, ScriptedProvider(ScriptedReply(text="let me see", calls=(call,)), "so it is"))
    assert said(events) == "LET ME SEESO IT IS!"
    assert kept(chat) == "SO IT IS!"
