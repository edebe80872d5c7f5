"""Errors have hints that fit the interface, on the command line and in Python."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.contracts.interface_terms import PYTHONIC, SHELL
from tests.journeys.running import run, spawn

import lamella
from lamella import Conversation, LamellaError, ModelReply, Note, Tool, ToolCall
from lamella.cli.errors import CliHints
from lamella.providers import StopReason

MODEL = "anthropic:claude-opus-5-5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A store with a conversation of two branches and one whose calls wait; ``left`` is on the branch that was left."""

    folder: Path
    url: str
    left: str
    engine: lamella.Engine


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    (tmp_path / "talk.json").write_text(
        json.dumps({"lamella": 1, "turns": [{"user": "hi", "attach": [{"kind": "note", "path": "a.md"}]}]}),
        encoding="utf-8",
    )
    with lamella.open(url) as engine:
        conversation = engine.chat("garden", layout="in_place")
        conversation.ask("What grows here?", attach=[Note(path="garden.md", text="# Garden\nBeans.\n")])
        conversation.reply("Beans.")
        left = conversation.ask("And in winter?").envelope.message_id
        conversation.reply("Nothing.")
        conversation.edit(left, "And in spring?")
        conversation.reply("Peas.")
        waits = engine.chat("sums", layout="in_place", model=MODEL)
        waits.ask("1 + 1?", tools=[Tool(name="add", description="Add.", parameters={"type": "object"})])
        waits.reply(
            ModelReply(text="", calls=(ToolCall(id="c1", name="add", arguments="{}"),), stop=StopReason.TOOL_CALLS)
        )
        yield Kept(folder=tmp_path, url=url, left=left, engine=engine)


def _send(chat: Conversation) -> None:
    async def send() -> None:
        async for _ in chat.send("hi"):
            pass

    asyncio.run(send())


Deed = Callable[[Kept], object]
# Each by what is wrong: the command that meets it, the program that does, and what each is told to do.
BOTH: Mapping[str, tuple[Callable[[Kept], list[str]], Deed, str, str]] = {
    "no such conversation": (
        lambda kept: ["chats", "show", "nobody"],
        lambda kept: kept.engine.rename("nobody", "A title"),
        "`lamella chats list --store",
        "`engine.chats()`",
    ),
    "no such message": (
        lambda kept: ["chats", "remove", "garden", "zzz"],
        lambda kept: kept.engine.chat("garden").delete("zzz"),
        "`lamella chats show garden --store",
        "`chat.turns()`",
    ),
    "a message of another branch": (
        lambda kept: ["chats", "remove", "garden", kept.left],
        lambda kept: kept.engine.chat("garden").delete(kept.left),
        "`lamella chats fork garden ",
        '`chat.switch("',
    ),
    "no such artifact": (
        lambda kept: ["chats", "delete", "garden", "--artifact", "no.md", "--yes"],
        lambda kept: kept.engine.erase_artifact("garden", "no.md"),
        "`lamella chats show garden --store",
        "`chat.turns()`",
    ),
    "calls that wait": (
        lambda kept: ["compact", "sums", "--to", "0.001"],
        lambda kept: kept.engine.chat("sums").plan(to=0.001),
        "The program that has these tools",
        "`chat.resume(tools=[add])`",
    ),
    "another maker's model": (
        lambda kept: ["request", "sums", "--provider", "openai"],
        lambda kept: next(kept.engine.chat("sums").replay()).request("openai"),
        "--model",
        "model=…",
    ),
    "no model": (
        lambda kept: ["request", "garden", "--provider", "anthropic"],
        lambda kept: next(kept.engine.chat("garden").replay()).request("anthropic"),
        "--model",
        "model=…",
    ),
    "a transcript in place of an archive": (
        lambda kept: ["chats", "import", str(kept.folder / "talk.json")],
        lambda kept: kept.engine.import_archive(kept.folder / "talk.json"),
        "`lamella replay FILE`",
        "docs/how-to/test-your-app.md",
    ),
    "a note without a text or a vault": (
        lambda kept: ["replay", str(kept.folder / "talk.json")],
        lambda kept: Conversation().ask("hi", attach=[Note(path="a.md")]),
        "name a `vault` folder",
        "name a `vault` folder",
    ),
    "a model that nobody knows": (
        lambda kept: ["chats", "regenerate", "garden", "--model", "nothing:x"],
        lambda kept: _send(kept.engine.chat("new", model="nothing:x")),
        "openai-compatible:",
        "openai-compatible:",
    ),
    "a setting of no such value": (
        lambda kept: ["replay", str(kept.folder / "talk.json"), "--layout", "nowhere"],
        lambda kept: Conversation(layout="nowhere"),
        "",
        "library",
    ),
    "nothing to compact": (
        lambda kept: ["compact", "garden"],
        lambda kept: kept.engine.chat("garden").commit(kept.engine.chat("garden").plan()),
        "--to ",
        "smaller share",
    ),
    "nothing to undo": (
        lambda kept: ["compact", "garden", "--undo"],
        lambda kept: kept.engine.chat("garden").undo(),
        "Nothing was compacted",
        "Nothing was compacted",
    ),
}


@pytest.mark.parametrize("wrong", BOTH)
def test_terminal_hint_names_command(kept: Kept, wrong: str) -> None:
    words, _, told, _ = BOTH[wrong]
    ran = run(*words(kept), "--store", kept.url)
    assert ran.exit != 0
    assert told in ran.err
    assert PYTHONIC.search(ran.err) is None, ran.err


@pytest.mark.parametrize("wrong", BOTH)
def test_python_hint_names_call(kept: Kept, wrong: str) -> None:
    _, deed, _, told = BOTH[wrong]
    with pytest.raises(LamellaError) as caught:
        deed(kept)
    assert told in caught.value.hint
    assert SHELL.search(f"{caught.value.message} {caught.value.hint}") is None, caught.value.hint


def test_damage_hint_fits_each_interface(kept: Kept) -> None:
    with sqlite3.connect(kept.folder / "chats.db") as file:
        file.execute("UPDATE events SET body = '{' WHERE seq = 3")
    ran = run("chats", "show", "garden", "--store", kept.url)
    assert f"`lamella store verify --store {kept.url}`" in ran.err
    with pytest.raises(LamellaError) as caught:
        kept.engine.chat("garden")
    assert "`engine.verify()`" in caught.value.hint


def test_repair_hint_fits_each_interface(kept: Kept) -> None:
    file = sqlite3.connect(kept.folder / "chats.db")
    for repair in (lambda: kept.engine.repair(), lambda: run("store", "verify", "--repair", "--store", kept.url)):
        with file:
            file.execute("UPDATE conversations SET version = 'many' WHERE name = 'garden'")
        with pytest.raises(LamellaError) as caught:
            kept.engine.chat("garden").ask("And leeks?")
        assert caught.value.hint.startswith("`engine.repair()`")
        assert caught.value.hint_for(CliHints()).startswith("`lamella store verify --repair`")
        repair()
        assert list(kept.engine.verify()) == []
    file.close()


def test_chat_hint_names_slash_command(kept: Kept, home: Mapping[str, str], script: Callable[..., str]) -> None:
    words = ("chat", "garden", "--store", kept.url, "--model", script("Yes."))
    ran = spawn(*words, stdin=f"/delete {kept.left}\n".encode(), environment=home)
    assert "hint: Go there first: `/switch " in ran.err
    assert PYTHONIC.search(ran.err) is None


def test_missing_store_hint_says_how_to_create_one(kept: Kept) -> None:
    ran = run("chats", "list", "--store", f"sqlite:///{kept.folder / 'none.db'}")
    assert "create the store: `lamella chat --store" in ran.err
    assert PYTHONIC.search(ran.err) is None


def test_conflict_hint_in_python_says_reload(kept: Kept) -> None:
    one, other = kept.engine.chat("garden"), kept.engine.chat("garden")
    one.ask("And leeks?")
    with pytest.raises(lamella.ConflictError) as caught:
        other.ask("And beets?")
    assert "`chat.reload()`" in caught.value.hint
