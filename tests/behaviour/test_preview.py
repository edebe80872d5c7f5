from datetime import UTC, datetime, timedelta

import pytest

from lamella import Conversation, Note
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.core.messages.delta import Reply, StopReason, ToolCall
from lamella.engine.dialogue.answer import Answer
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.wiring import open_backend

NOTE = make_artifact(Kind.NOTE, text="# Garden\nBeans.\n", source=Source(path="garden.md"))
CALL = ToolCall(id="c1", name="look", arguments="{}")


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_a_preview_is_what_asking_gives_and_writes_nothing_down(layout: str) -> None:
    backend = open_backend("memory:")
    chat = StoredChat(backend, "demo", {"layout": layout, "model": "local"})
    chat.ask(Ask(text="Hello?", attach=(NOTE,)))
    chat.reply("Yes.")
    version = chat.version
    asked = Ask(text="And now?", attach=(NOTE,))
    turn = chat.preview(asked)
    assert chat.version == version == len(backend.store.load(chat.id))
    assert chat.ask(asked) == turn


def test_a_preview_while_a_turn_waits_takes_it_as_left_without_an_answer() -> None:
    chat = StoredChat(open_backend("memory:"), "demo", {"layout": "in_place", "model": "local"})
    chat.ask(Ask(text="Hello?"))
    asked = Ask(text="Nobody there?")
    assert chat.preview(asked).messages == chat.ask(asked).messages


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_a_preview_after_the_history_was_rewritten_is_what_asking_gives(layout: str) -> None:
    chat = StoredChat(open_backend("memory:"), "demo", {"layout": layout, "model": "local"})
    for text in ("Hello?", "And now?", "And then?"):
        chat.ask(Ask(text=text, attach=(NOTE,)))
        chat.reply("Yes.")
    chat.delete(chat.turns()[1].message.id)
    asked = Ask(text="What is left?")
    turn = chat.preview(asked)
    assert turn.prefix.cause == "history_edited"
    assert chat.ask(asked).envelope == turn.envelope


@pytest.mark.parametrize("layout", ["library", "in_place"])
@pytest.mark.parametrize("deed", ["fork", "switch"])
@pytest.mark.parametrize("answered", [True, False])
def test_a_preview_on_another_branch_is_what_asking_gives(layout: str, deed: str, *, answered: bool) -> None:
    chat = StoredChat(open_backend("memory:"), "demo", {"layout": layout, "model": "local"})
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for number, text in enumerate(("Hello?", "And now?", "And then?")):
        chat.ask(Ask(text=text, attach=(NOTE,)), at=start + timedelta(minutes=number))
        chat.reply("Yes.")
    told = chat.turns()[1]
    (chat.fork if deed == "fork" else chat.switch)(told.reply.id if told.reply and answered else told.message.id)
    asked, at = Ask(text="What is left?", attach=(NOTE,)), start + timedelta(hours=1)
    ahead = chat.preview(asked, at=at)
    assert ahead.pause == 59 * 60
    assert chat.ask(asked, at=at) == ahead


def test_a_preview_while_calls_wait_on_another_branch_is_what_asking_gives() -> None:
    chat = StoredChat(open_backend("memory:"), "demo", {"layout": "in_place", "model": "local"})
    chat.ask(Ask(text="Hello?"))
    chat.reply("Yes.")
    first = chat.head
    chat.ask(Ask(text="Look it up."))
    chat.reply(Answer(reply=Reply(text="", stop=StopReason.TOOLS, calls=(CALL,))))
    waits = chat.head
    chat.fork(first)
    chat.switch(waits)
    asked = Ask(text="Never mind.")
    assert [call.id for call in chat.calls] == [CALL.id]
    ahead = chat.preview(asked)
    assert "look({}): failed" in ahead.messages[-2].text
    assert chat.ask(asked) == ahead


def test_a_preview_in_memory_changes_nothing() -> None:
    chat = Conversation(system="Be terse.", model="anthropic:claude-opus-5-5")
    chat.ask("Hello?")
    chat.reply("Yes.")
    note = Note(path="a.md", text="# A")
    ahead = chat.preview("And now?", attach=[note])
    turn = chat.ask("And now?", attach=[note])
    assert (ahead.number, ahead.messages, ahead.tokens, ahead.cost) == (2, turn.messages, turn.tokens, turn.cost)
    assert ahead.cache == turn.cache
    assert chat.preview().number == 3
