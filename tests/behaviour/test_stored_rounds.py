"""Tool rounds of a conversation that lasts: written as they happen, and gone on from wherever they stopped."""

from collections.abc import Callable

import pytest
from tests.unit.engine.backends import make_backend

from lamella.adapters.archive.markdown import parse_archive, render_archive
from lamella.adapters.stores.memory import MemoryStore
from lamella.core.log.records import EventKind
from lamella.core.messages.delta import NativeReply, Reply, StopReason, ToolCall
from lamella.core.messages.rounds import ToolOutput
from lamella.core.messages.usage import Usage
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.dialogue.turn import TurnView
from lamella.engine.keeping.conversations import Conversations
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import BudgetExceededError

# What a model thought, as its provider wants it back: more letters than tokens were counted for.
THOUGHTS = " deep thoughts" * 500
USAGE = Usage(plain=50, output=400)


class Tooled:
    """A chat over a store, opened anew before every step if it is ``killed`` after each."""

    def __init__(self, *, killed: bool, layout: str) -> None:
        self.store = MemoryStore()
        self.backend = make_backend(self.store)
        self._killed = killed
        self._layout = layout
        self._chat: StoredChat | None = None

    @property
    def chat(self) -> StoredChat:
        if self._chat is None or self._killed:
            self._chat = StoredChat(self.backend, "chat", {"layout": self._layout})
        return self._chat

    def call(self, *names: str) -> None:
        calls = tuple(ToolCall(id=name, name="look", arguments=f'{{"at":"{name}"}}') for name in names)
        carried = NativeReply(format="wire", json=f'["{names}"]' + THOUGHTS)
        said = Reply(text="Let me see.", stop=StopReason.TOOLS, calls=calls, carried=carried, usage=USAGE)
        self.chat.reply(Answer(reply=said))

    def give(self, *names: str) -> TurnView:
        return self.chat.give([ToolOutput(call=name, output=f"found {name}") for name in names])


def sent(turn: TurnView) -> list[object]:
    return [(message.to_dict(), message.carried, message.tokens) for message in turn.messages]


def talk(tooled: Tooled) -> list[list[object]]:
    """Two turns with three rounds; what is sent each time."""
    turns = [tooled.chat.ask(Ask(text="What is there?"))]
    tooled.call("a", "b")
    turns.append(tooled.give("a", "b"))
    tooled.call("c")
    turns.append(tooled.give("c"))
    tooled.chat.reply("A lot.")
    turns.append(tooled.chat.ask(Ask(text="And else?")))
    tooled.call("d")
    turns.append(tooled.give("d"))
    tooled.chat.reply("Nothing.")
    turns.append(tooled.chat.ask(Ask(text="Good.")))
    return [sent(turn) for turn in turns]


@pytest.mark.parametrize("layout", ["in_place", "library"])
def test_killed_between_any_two_steps_it_sends_what_it_would_have(layout: str) -> None:
    through, killed = Tooled(killed=False, layout=layout), Tooled(killed=True, layout=layout)
    assert talk(through) == talk(killed)
    written = [[(one.kind, one.contents) for one in tooled.store.load("chat")] for tooled in (through, killed)]
    assert written[0] == written[1]
    assert list(Conversations(killed.store, killed.backend.clock).verify("chat")) == []


def test_what_a_provider_wants_back_is_counted_in_budget_and_ledger_while_it_is_sent() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    tooled.chat.ask(Ask(text="What is there?"))
    tooled.call("a")
    first = tooled.give("a")
    tooled.call("b")
    second = tooled.give("b")
    assert [message.tokens for message in second.messages if message.carried] == [400, 400]
    assert second.tokens.by_layer["L3_TURN"] > 800
    assert first.cache is not None
    assert second.cache is not None
    assert first.cache.total > 400
    assert second.cache.read > 400
    assert second.cache.total == second.tokens.total > 800
    tooled.chat.reply("A lot.")
    assert tooled.chat.ask(Ask(text="Fold it.", fold=True)).tokens.total < 400


def test_thoughts_alone_make_a_turn_too_large() -> None:
    chat = StoredChat(make_backend(MemoryStore()), "chat", {"window": 600, "reserve": 100})
    chat.ask(Ask(text="What is there?"))
    calls = (ToolCall(id="a", name="look", arguments="{}"),)
    carried = NativeReply(format="wire", json=THOUGHTS)
    chat.reply(Answer(reply=Reply(text="", stop=StopReason.TOOLS, calls=calls, carried=carried)))
    with pytest.raises(BudgetExceededError):
        chat.give([ToolOutput(call="a", output="found")])


def test_rounds_are_written_before_they_count() -> None:
    tooled = Tooled(killed=False, layout="in_place")
    tooled.chat.ask(Ask(text="What is there?"))
    tooled.call("a")
    assert tooled.store.load("chat")[-1].kind is EventKind.CALLS
    tooled.give("a")
    assert tooled.store.load("chat")[-1].kind is EventKind.RESULTS


@pytest.mark.parametrize("leave", [lambda chat: chat.ask(Ask(text="Never mind.")), lambda chat: chat.reply("Enough.")])
def test_calls_that_nobody_made_are_told_so_when_the_conversation_goes_on(
    leave: Callable[[StoredChat], object],
) -> None:
    tooled = Tooled(killed=True, layout="in_place")
    tooled.chat.ask(Ask(text="What is there?"))
    tooled.call("a")
    assert [call.id for call in tooled.chat.calls] == ["a"]
    leave(tooled.chat)
    told = tooled.chat.turns()[0]
    assert [[result.failed for result in done.results or ()] for done in told.rounds] == [[True]]
    assert list(Conversations(tooled.store, tooled.backend.clock).verify("chat")) == []


def test_the_calls_of_every_round_are_in_the_ledger_once() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    talk(tooled)
    assert [len(calls) for calls in tooled.chat.ledger()] == [2, 1, 0]


def test_an_archive_carries_rounds_and_goes_on_as_the_store_does() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    talk(tooled)
    tooled.call("e")
    conversations = Conversations(tooled.store, tooled.backend.clock)
    chronicle = conversations.take_out("chat")
    parsed = parse_archive(render_archive(chronicle), sources=None)
    assert parsed == chronicle
    other = Tooled(killed=True, layout="in_place")
    Conversations(other.store, other.backend.clock).take_in(parsed)
    assert sent(other.give("e")) == sent(tooled.give("e"))


def test_a_result_can_be_erased_by_its_id() -> None:
    tooled = Tooled(killed=True, layout="in_place")
    turn = tooled.chat.ask(Ask(text="What is there?"))
    tooled.call("a")
    turn = tooled.give("a")
    tooled.chat.reply("A lot.")
    conversations = Conversations(tooled.store, tooled.backend.clock)
    (name,) = {
        segment.id
        for layer in turn.envelope.layers
        for segment in layer.segments
        if segment.id.startswith("tool:look:")
    }
    assert conversations.erase_artifact("chat", name) == 1
    after = tooled.chat.ask(Ask(text="And now?"))
    assert "found a" not in str(sent(after))
    assert list(conversations.verify("chat")) == []
    assert list(conversations.verify_erased("chat")) == []


def test_the_line_of_an_erased_result_names_the_id_that_the_result_had() -> None:
    lines = []
    for erases in (False, True):
        tooled = Tooled(killed=True, layout="library")
        tooled.chat.ask(Ask(text="What is there?"))
        tooled.call("a")
        turn = tooled.give("a")
        tooled.chat.reply("A lot.")
        (name,) = [segment.id for layer in turn.envelope.layers for segment in layer.segments if segment.kind == "tool"]
        if erases:
            Conversations(tooled.store, tooled.backend.clock).erase_artifact("chat", name)
        lines.append(tooled.chat.ask(Ask(text="And now?")).messages[1].text)
        assert name in lines[-1]
        assert [found.passage.text for found in tooled.chat.recall(name)] == [
            "[This result was erased.]" if erases else "found a"
        ]
    assert lines[0] == lines[1]
