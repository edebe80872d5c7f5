"""Of two wishes for the next message that contradict each other the later one holds, and says so."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.pictures import png

import lamella
from lamella import Note
from lamella.attach import Picture
from lamella.engine.dialogue.ask import Ask
from lamella.engine.keeping.stored import StoredChat
from lamella.errors import CallError
from lamella.faces.cli.chat.commands.wishes import Wishes

NOTE = Note(path="plan.md", text="Low tide is at 14:10.")


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredChat]:
    (tmp_path / "map.png").write_bytes(png(4, 3))
    with lamella.open("memory:", vault=tmp_path) as engine:
        chat = engine.chat("talk", layout="in_place", attachments="sticky")
        chat.ask("Read this.", attach=[NOTE, Picture(path="map.png")])
        chat.reply("Yes.")
        yield chat._stored


def wish(wishes: Wishes, stored: StoredChat, line: str) -> str:
    """Do what a command does, and what it says."""
    command, name = line.split()
    match command:
        case "/attach":
            return wishes.attach(stored, name, [NOTE if name == "plan.md" else Picture(path=name)])
        case "/detach":
            return wishes.take_out(stored, name)
        case "/drop":
            return wishes.take_from_prompt(stored, name)
        case "/pin":
            return wishes.pin(stored, name)
    return wishes.unpin(stored, name)


def hold(wishes: Wishes) -> dict[str, list[str]]:
    """What is wished for."""
    lists = {"attach": [*wishes.waiting], "detach": wishes.detach, "drop": wishes.drop}
    return {name: list(held) for name, held in {**lists, "pin": wishes.pins, "unpin": wishes.unpins}.items() if held}


def ask(wishes: Wishes, stored: StoredChat) -> str:
    """Ask with all that is wished for, and why the prefix moved."""
    attach = tuple(one.attachment() for found in wishes.waiting.values() for one in found)
    asked = Ask(
        text="And now?",
        attach=attach,
        drop=tuple(wishes.drop),
        detach=tuple(wishes.detach),
        pin=tuple(wishes.pins),
        unpin=tuple(wishes.unpins),
    )
    return str(stored.ask(asked).prefix.cause)


PAIRS = [
    ("/drop plan.md", "/pin plan.md", {"pin": ["plan.md"]}, ", and is not dropped after all"),
    ("/pin plan.md", "/drop plan.md", {"drop": ["plan.md"]}, ", and is not pinned after all"),
    ("/detach plan.md", "/pin plan.md", {"pin": ["plan.md"]}, ", and is not detached after all"),
    ("/pin plan.md", "/detach plan.md", {"detach": ["plan.md"]}, ", and is not pinned after all; /drop takes it out"),
    ("/pin plan.md", "/unpin plan.md", {}, "is not pinned with the next message after all"),
    ("/pin turn:1", "/unpin turn:1", {}, "is not pinned with the next message after all"),
    ("/drop plan.md", "/attach plan.md", {"attach": ["plan.md"]}, ", and is not dropped after all"),
    ("/attach plan.md", "/drop plan.md", {"drop": ["plan.md"]}, ", and is not attached after all"),
    ("/detach plan.md", "/attach plan.md", {"attach": ["plan.md"]}, ", and is not detached after all"),
    ("/attach plan.md", "/detach plan.md", {}, "does not go with the next message; it stays attached from before"),
    ("/drop map.png", "/attach map.png", {"attach": ["map.png"]}, ", and is not dropped after all"),
    ("/drop plan.md", "/detach plan.md", {"detach": ["plan.md"], "drop": ["plan.md"]}, "is detached and dropped"),
    ("/detach plan.md", "/drop plan.md", {"detach": ["plan.md"], "drop": ["plan.md"]}, "leaves the prompt"),
    ("/attach plan.md", "/pin plan.md", {"attach": ["plan.md"], "pin": ["plan.md"]}, "stays whole"),
    ("/pin plan.md", "/attach plan.md", {"attach": ["plan.md"], "pin": ["plan.md"]}, ""),
]


@pytest.mark.parametrize(("first", "later", "held", "told"), PAIRS)
def test_the_later_of_two_holds_and_says_what_becomes_of_the_first(
    stored: StoredChat, first: str, later: str, held: dict[str, list[str]], told: str
) -> None:
    wishes = Wishes()
    wish(wishes, stored, first)
    assert told in wish(wishes, stored, later)
    assert hold(wishes) == held
    assert ask(wishes, stored) == ("epoch_folded" if "drop" in held else "none")


@pytest.fixture
def pinned(stored: StoredChat) -> StoredChat:
    stored.ask(Ask(text="Keep it.", pin=("plan.md",)))
    stored.reply("Yes.")
    return stored


@pytest.mark.parametrize(("command", "done"), [("/drop", "dropped"), ("/detach", "detached")])
def test_a_pin_is_let_go_with_the_next_message_and_nothing_else_happens_to_it_before(
    pinned: StoredChat, command: str, done: str
) -> None:
    wishes = Wishes()
    wish(wishes, pinned, "/unpin plan.md")
    with pytest.raises(CallError, match="unpinned with the next message, and not before") as refused:
        wish(wishes, pinned, f"{command} plan.md")
    assert refused.value.hint == f"Once that is sent it can be {done}."
    assert hold(wishes) == {"unpin": ["plan.md"]}
    assert ask(wishes, pinned) == "none"


def test_what_is_pinned_stays_so_when_its_end_is_taken_back(pinned: StoredChat) -> None:
    wishes = Wishes()
    wish(wishes, pinned, "/unpin plan.md")
    assert wish(wishes, pinned, "/pin plan.md").endswith(", and is not unpinned after all")
    assert hold(wishes) == {}


def test_what_is_let_go_is_not_detached_with_it(pinned: StoredChat) -> None:
    wishes = Wishes()
    wish(wishes, pinned, "/detach plan.md")
    assert wish(wishes, pinned, "/unpin plan.md").endswith(", and is not detached after all")
    assert hold(wishes) == {"unpin": ["plan.md"]}
