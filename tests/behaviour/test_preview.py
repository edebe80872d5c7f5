import pytest

from lamella.core.artifacts.make import make_artifact
from lamella.core.artifacts.model import Kind, Source
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.wiring import open_desk

NOTE = make_artifact(Kind.NOTE, text="# Garden\nBeans.\n", source=Source(path="garden.md"))


@pytest.mark.parametrize("layout", ["library", "in_place"])
def test_a_preview_is_what_asking_gives_and_writes_nothing_down(layout: str) -> None:
    desk = open_desk("memory:")
    chat = StoredChat(desk, "demo", {"layout": layout, "model": "local"})
    chat.ask(Ask(text="Hello?", attach=(NOTE,)))
    chat.reply("Yes.")
    version = chat.version
    asked = Ask(text="And now?", attach=(NOTE,))
    turn = chat.preview(asked)
    assert chat.version == version == len(desk.store.load("demo"))
    assert chat.ask(asked) == turn


def test_a_preview_while_a_turn_waits_takes_it_as_left_without_an_answer() -> None:
    chat = StoredChat(open_desk("memory:"), "demo", {"layout": "in_place", "model": "local"})
    chat.ask(Ask(text="Hello?"))
    asked = Ask(text="Nobody there?")
    assert chat.preview(asked).messages == chat.ask(asked).messages
