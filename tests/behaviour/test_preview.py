from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from lamella import Conversation, Note
from lamella.conversation.turn import ModelAnswer, TurnRequest
from lamella.core.artifacts.kinds import make_artifact
from lamella.core.artifacts.model import ArtifactKind, ArtifactSource
from lamella.core.messages import Message, ModelReply, StopReason, ToolCall
from lamella.wiring import open_backend

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOTE = make_artifact(ArtifactKind.NOTE, text="# Garden\nBeans.\n", source=ArtifactSource(path="garden.md"))
CALL = ToolCall(id="c1", name="look", arguments="{}")


class Counted:
    """A summariser that knows how often it was asked."""

    asked = 0

    def summarize(self, messages: Sequence[Message], *, max_tokens: int) -> str:
        self.asked += 1
        return "Beans."


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_preview_matches_ask_and_stores_nothing(layout: str) -> None:
    backend = open_backend("memory:")
    chat = Conversation.open(backend, "demo", {"layout": layout, "model": "local"})
    chat.ask(TurnRequest(text="Hello?", attach=(NOTE,)))
    chat.reply("Yes.")
    version = chat.version
    turn_request = TurnRequest(text="And now?", attach=(NOTE,))
    turn = chat.preview(turn_request)
    assert chat.version == version == len(backend.store.load(chat.id))
    assert chat.ask(turn_request) == turn


def test_preview_with_pending_turn_treats_it_as_unanswered() -> None:
    chat = Conversation.open(open_backend("memory:"), "demo", {"layout": "in_place", "model": "local"})
    chat.ask(TurnRequest(text="Hello?"))
    turn_request = TurnRequest(text="Nobody there?")
    assert chat.preview(turn_request).messages == chat.ask(turn_request).messages


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_preview_after_rewritten_history_matches_ask(layout: str) -> None:
    chat = Conversation.open(open_backend("memory:"), "demo", {"layout": layout, "model": "local"})
    for text in ("Hello?", "And now?", "And then?"):
        chat.ask(TurnRequest(text=text, attach=(NOTE,)))
        chat.reply("Yes.")
    chat.delete(chat.turns()[1].message.id)
    turn_request = TurnRequest(text="What is left?")
    turn = chat.preview(turn_request)
    assert turn.prefix_change.cause == "history_edited"
    assert chat.ask(turn_request).envelope == turn.envelope


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("deed", ["fork", "switch"])
@pytest.mark.parametrize("answered", [True, False])
def test_preview_on_other_branch_matches_ask(layout: str, deed: str, *, answered: bool) -> None:
    chat = Conversation.open(open_backend("memory:"), "demo", {"layout": layout, "model": "local"})
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for number, text in enumerate(("Hello?", "And now?", "And then?")):
        chat.ask(TurnRequest(text=text, attach=(NOTE,)), at=start + timedelta(minutes=number))
        chat.reply("Yes.")
    record = chat.turns()[1]
    (chat.fork if deed == "fork" else chat.switch)(record.reply.id if record.reply and answered else record.message.id)
    turn_request, at = TurnRequest(text="What is left?", attach=(NOTE,)), start + timedelta(hours=1)
    ahead = chat.preview(turn_request, at=at)
    assert ahead.seconds_since_previous_turn == 59 * 60
    assert chat.ask(turn_request, at=at) == ahead


def test_preview_with_pending_calls_on_other_branch_matches_ask() -> None:
    chat = Conversation.open(open_backend("memory:"), "demo", {"layout": "in_place", "model": "local"})
    chat.ask(TurnRequest(text="Hello?"))
    chat.reply("Yes.")
    first = chat.head
    chat.ask(TurnRequest(text="Look it up."))
    chat.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(CALL,))))
    waits = chat.head
    chat.fork(first)
    chat.switch(waits)
    turn_request = TurnRequest(text="Never mind.")
    assert [call.id for call in chat.pending_tool_calls] == [CALL.id]
    ahead = chat.preview(turn_request)
    assert "look({}): failed" in ahead.messages[-2].text
    assert chat.ask(turn_request) == ahead


def test_preview_in_memory_changes_nothing() -> None:
    chat = Conversation(system="Be terse.", model="anthropic:claude-opus-5-5")
    chat.ask("Hello?")
    chat.reply("Yes.")
    note = Note(path="a.md", text="# A")
    ahead = chat.preview("And now?", attach=[note])
    turn = chat.ask("And now?", attach=[note])
    assert (ahead.number, ahead.messages, ahead.tokens, ahead.cost) == (2, turn.messages, turn.tokens, turn.cost)
    assert ahead.cache == turn.cache
    assert chat.preview().number == 3


@pytest.mark.parametrize("layout", ["library", "in_place", "auto"])
@pytest.mark.parametrize("compacts", [False, True])
def test_preview_of_oversized_turn_matches_ask(layout: str, *, compacts: bool) -> None:
    settings = {"layout": layout, "model": "local", "window": 3000, "reserve": 500, "summarizer": "off"}
    chat = Conversation.open(open_backend("memory:"), "demo", settings)
    large = "\n".join(f"## Bed {number}\n\n{'Beans and peas. ' * 60}" for number in range(30))
    for number in range(8 if compacts else 1):
        chat.ask(TurnRequest(text=f"What of bed {number}? {'Tell me more. ' * 20}"), at=NOW)
        chat.reply(f"It has {number} beans. {'They grow. ' * 60}", at=NOW)
    note = make_artifact(ArtifactKind.NOTE, text=large, source=ArtifactSource(path="large.md"))
    turn_request = TurnRequest(text="And now?", attach=() if compacts else (note,))
    if compacts:
        turn_request = TurnRequest(text=f"And now? {'Tell me more. ' * 80}")
    ahead = chat.preview(turn_request, at=NOW)
    turn = chat.ask(turn_request, at=NOW)
    assert ahead.messages == turn.messages
    assert ahead.envelope.warnings == turn.envelope.warnings
    assert (turn.compaction is not None) is compacts
    assert (ahead.compaction is not None) is compacts


def test_preview_calls_no_summarizer_and_says_where_summary_would_be() -> None:
    summarizer = Counted()
    chat = Conversation(window=3000, reserve=500, summarizer=summarizer)
    note = Note(path="large.md", text="\n".join(f"## Bed {one}\n\n{'Beans. ' * 90}" for one in range(30)))
    ahead = chat.preview("What is there?", attach=[note])
    assert summarizer.asked == 0
    assert ahead.tokens.total < 2500
    assert any("No summary is asked for ahead" in one for one in ahead.envelope.warnings)
