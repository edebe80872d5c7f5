import pytest

from lamella import Conversation, Note
from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.wiring import open_backend

NOTE = make_artifact(Kind.NOTE, text="# Garden\nBeans.\n", source=Source(path="garden.md"))


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_a_preview_is_what_asking_gives_and_writes_nothing_down(layout: str) -> None:
    backend = open_backend("memory:")
    chat = StoredChat(backend, "demo", {"layout": layout, "model": "local"})
    chat.ask(Ask(text="Hello?", attach=(NOTE,)))
    chat.reply("Yes.")
    version = chat.version
    asked = Ask(text="And now?", attach=(NOTE,))
    turn = chat.preview(asked)
    assert chat.version == version == len(backend.store.load("demo"))
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
