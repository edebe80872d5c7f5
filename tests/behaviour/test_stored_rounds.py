"""Tool rounds of a stored conversation: written as they happen, and resumed after any interruption."""

from collections.abc import Callable

import pytest
from tests.unit.conversation.backends import make_backend

from lamella.archive.markdown import parse_archive, render_archive
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.turn import BuiltTurn, ModelAnswer, TurnRequest
from lamella.core.log.events.kinds import EventKind
from lamella.core.messages import ModelReply, ProviderReply, StopReason, ToolCall, ToolOutput, Usage
from lamella.errors import ContextBudgetExceededError
from lamella.stores.memory import InMemoryStore

# What a model thought, as its provider wants it back: more letters than tokens were counted for.
THOUGHTS = " deep thoughts" * 500
USAGE = Usage(plain=50, output=400)


class Tooled:
    """A chat over a store, opened again before every step if it is ``killed`` after each."""

    def __init__(self, *, killed: bool, layout: str) -> None:
        self.store = InMemoryStore()
        self.backend = make_backend(self.store)
        self._killed = killed
        self._layout = layout
        self._chat: Conversation | None = None

    @property
    def chat(self) -> Conversation:
        if self._chat is None or self._killed:
            self._chat = Conversation.open(self.backend, "chat", {"layout": self._layout})
        return self._chat

    def call(self, *names: str) -> None:
        calls = tuple(ToolCall(id=name, name="look", arguments=f'{{"at":"{name}"}}') for name in names)
        carried = ProviderReply(format="wire", json=f'["{names}"]' + THOUGHTS)
        said = ModelReply(
            text="Let me see.", stop=StopReason.TOOL_CALLS, calls=calls, provider_reply=carried, usage=USAGE
        )
        self.chat.reply(ModelAnswer(reply=said))

    def give(self, *names: str) -> BuiltTurn:
        return self.chat.submit_tool_outputs([ToolOutput(call=name, output=f"found {name}") for name in names])


def sent(turn: BuiltTurn) -> list[object]:
    return [(message.to_dict(), message.provider_reply, message.tokens) for message in turn.messages]


def talk(tooled: Tooled) -> list[list[object]]:
    """Two turns with three rounds; what is sent each time."""
    turns = [tooled.chat.ask(TurnRequest(text="What is there?"))]
    tooled.call("a", "b")
    turns.append(tooled.give("a", "b"))
    tooled.call("c")
    turns.append(tooled.give("c"))
    tooled.chat.reply("A lot.")
    turns.append(tooled.chat.ask(TurnRequest(text="And else?")))
    tooled.call("d")
    turns.append(tooled.give("d"))
    tooled.chat.reply("Nothing.")
    turns.append(tooled.chat.ask(TurnRequest(text="Good.")))
    return [sent(turn) for turn in turns]


@pytest.mark.parametrize("layout", ["in_place", "library"])
def test_killed_between_any_two_steps_sends_the_same(layout: str) -> None:
    through, killed = Tooled(killed=False, layout=layout), Tooled(killed=True, layout=layout)
    assert talk(through) == talk(killed)
    written = [[(one.kind, one.contents) for one in tooled.store.load("chat")] for tooled in (through, killed)]
    assert written[0] == written[1]
    assert list(ConversationRepository(killed.store, killed.backend.clock).verify("chat")) == []


def test_provider_reply_tokens_count_in_budget_and_ledger_while_sent() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    tooled.chat.ask(TurnRequest(text="What is there?"))
    tooled.call("a")
    first = tooled.give("a")
    tooled.call("b")
    second = tooled.give("b")
    assert [message.tokens for message in second.messages if message.provider_reply] == [400, 400]
    assert second.tokens.by_layer["L3_TURN"] > 800
    assert first.cache is not None
    assert second.cache is not None
    assert first.cache.total > 400
    assert second.cache.read > 400
    assert second.cache.total == second.tokens.total > 800
    tooled.chat.reply("A lot.")
    assert tooled.chat.ask(TurnRequest(text="Fold it.", fold=True)).tokens.total < 400


def test_reasoning_alone_can_make_turn_too_large() -> None:
    chat = Conversation.open(make_backend(InMemoryStore()), "chat", {"window": 600, "reserve": 100})
    chat.ask(TurnRequest(text="What is there?"))
    calls = (ToolCall(id="a", name="look", arguments="{}"),)
    carried = ProviderReply(format="wire", json=THOUGHTS)
    chat.reply(ModelAnswer(reply=ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=calls, provider_reply=carried)))
    with pytest.raises(ContextBudgetExceededError):
        chat.submit_tool_outputs([ToolOutput(call="a", output="found")])


def test_rounds_are_stored_before_they_count() -> None:
    tooled = Tooled(killed=False, layout="in_place")
    tooled.chat.ask(TurnRequest(text="What is there?"))
    tooled.call("a")
    assert tooled.store.load("chat")[-1].kind is EventKind.CALLS
    tooled.give("a")
    assert tooled.store.load("chat")[-1].kind is EventKind.RESULTS


@pytest.mark.parametrize(
    "leave", [lambda chat: chat.ask(TurnRequest(text="Never mind.")), lambda chat: chat.reply("Enough.")]
)
def test_missing_call_results_are_marked_failed_on_continue(
    leave: Callable[[Conversation], object],
) -> None:
    tooled = Tooled(killed=True, layout="in_place")
    tooled.chat.ask(TurnRequest(text="What is there?"))
    tooled.call("a")
    assert [call.id for call in tooled.chat.pending_tool_calls] == ["a"]
    leave(tooled.chat)
    record = tooled.chat.turns()[0]
    assert [[result.failed for result in done.results or ()] for done in record.completed_rounds] == [[True]]
    assert list(ConversationRepository(tooled.store, tooled.backend.clock).verify("chat")) == []


def test_calls_of_each_round_are_in_ledger_once() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    talk(tooled)
    assert [len(calls) for calls in tooled.chat.ledger()] == [2, 1, 0]


def test_archive_with_rounds_continues_like_store() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    talk(tooled)
    tooled.call("e")
    conversations = ConversationRepository(tooled.store, tooled.backend.clock)
    export = conversations.export_conversation("chat")
    parsed = parse_archive(render_archive(export), sources=None)
    assert parsed == export
    other = Tooled(killed=True, layout="in_place")
    ConversationRepository(other.store, other.backend.clock).import_conversation(parsed)
    assert sent(other.give("e")) == sent(tooled.give("e"))


def test_tool_result_can_be_erased_by_id() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    turn = tooled.chat.ask(TurnRequest(text="What is there?"))
    tooled.call("a")
    turn = tooled.give("a")
    tooled.chat.reply("A lot.")
    conversations = ConversationRepository(tooled.store, tooled.backend.clock)
    (name,) = {
        segment.id
        for layer in turn.envelope.layers
        for segment in layer.segments
        if segment.id.startswith("tool:look:")
    }
    assert conversations.erase_artifact("chat", name) == 1
    after = tooled.chat.ask(TurnRequest(text="And now?"))
    assert "found a" not in str(sent(after))
    assert list(conversations.verify("chat")) == []
    assert list(conversations.verify_erased("chat")) == []


def test_line_of_erased_result_names_its_id() -> None:
    lines = []
    for erases in (False, True):
        tooled = Tooled(killed=True, layout="library")
        tooled.chat.ask(TurnRequest(text="What is there?"))
        tooled.call("a")
        turn = tooled.give("a")
        tooled.chat.reply("A lot.")
        (name,) = [segment.id for layer in turn.envelope.layers for segment in layer.segments if segment.kind == "tool"]
        if erases:
            ConversationRepository(tooled.store, tooled.backend.clock).erase_artifact("chat", name)
        lines.append(tooled.chat.ask(TurnRequest(text="And now?")).messages[1].text)
        assert name in lines[-1]
        assert [found.passage.text for found in tooled.chat.recall(name)] == [
            "[This result was erased.]" if erases else "found a"
        ]
    assert lines[0] == lines[1]
