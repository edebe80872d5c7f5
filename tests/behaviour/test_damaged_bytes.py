"""Damaged bytes in stores, archives and transcripts end in one of our errors with a hint, wherever they are."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import lamella
from lamella import Conversation, Note
from lamella.archive.transcript import parse_transcript
from lamella.errors import LamellaError
from lamella.providers import ToolCall
from lamella.testing import ScriptedProvider, ScriptedReply

ROUNDS = 60
INSERTED = (b"\xff", b"\xc3", b"\x00", b'"', b"}", b"\xed\xa0\x80")
TRANSCRIPT = (
    b'{"lamella":1,"turns":[{"user":"h\xc3\xa9","attach":[{"kind":"note","path":"a","text":"x"}],"assistant":"y"}]}'
)
READINGS: dict[str, Callable[[Conversation], object]] = {
    "turns": lambda chat: chat.turns(),
    "messages": lambda chat: chat.messages(),
    "ask": lambda chat: chat.ask("And now?"),
    "ledger": lambda chat: chat.ledger(),
    "recall": lambda chat: chat.recall("Beans"),
}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: sun, 20 °C"


def damage(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, flipped, removed or added."""
    hurt = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 5])):
        at = chance.randrange(len(hurt)) if hurt else 0
        match chance.randrange(4):
            case 0:
                hurt[at : at + 1] = bytes([chance.randrange(256)])
            case 1 if hurt:
                hurt[at] ^= 1 << chance.randrange(8)
            case 2:
                del hurt[at : at + chance.randrange(1, 20)]
            case _:
                hurt[at:at] = chance.choice(INSERTED)
    return bytes(hurt)


def check(read: Callable[..., object], *arguments: object) -> None:
    """Read; any error but one of ours fails the test."""
    hint = "none was needed"
    try:
        read(*arguments)
    except LamellaError as error:
        hint = error.hint
    assert hint
    assert "bug in Lamella" not in hint


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store with a note, a tool round and a compaction, and the archive of its conversation."""
    folder = tmp_path_factory.mktemp("damaged")
    calls = (ToolCall(id="c", name="weather", arguments='{"city": "Graz"}'),)
    lines: list[ScriptedReply | str] = [ScriptedReply(text="", calls=calls), "Sun.", "Twö."]

    async def talk() -> Path:
        url = f"sqlite:///{folder}/chats.db"
        async with lamella.open(url, model="scripted:x", provider=ScriptedProvider(*lines)) as engine:
            chat = engine.chat("talk")
            async for _ in chat.send("Weather?", attach=[Note(path="a.md", text="Beäns.\n" * 50)], tools=[weather]):
                pass
            async for _ in chat.send("Again."):
                pass
            chat.compact(0.0001)
            return engine.export_archive("talk", folder / "out")

    return folder / "chats.db", asyncio.run(talk())


@pytest.mark.parametrize("seed", range(4))
def test_damaged_rows_of_a_store_are_our_errors(made: tuple[Path, Path], tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(ROUNDS):
        file = tmp_path / f"{number}.db"
        shutil.copy(made[0], file)
        with closing(sqlite3.connect(file)) as connection, connection:
            if not damage_row(connection, chance):
                continue
        for read in READINGS.values():
            check(open_and_read, file, read)
        check(verify, file)


def damage_row(connection: sqlite3.Connection, chance: random.Random) -> bool:
    """Damage one value of the store; return whether there was one."""
    connection.text_factory = bytes
    table = chance.choice(["events", "events", "contents", "conversations", "checkpoints"])
    columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
    keys = [column[1].decode() for column in columns if column[5]]
    column = chance.choice(columns)[1].decode()
    rows = connection.execute(f"SELECT {', '.join(keys)}, {column}, typeof({column}) FROM {table}").fetchall()
    if not rows:
        return False
    *key, value, kind = chance.choice(rows)
    if not isinstance(value, bytes) or not value:
        return False
    new = "CAST(? AS TEXT)" if kind == b"text" else "?"
    where = " AND ".join(f"CAST({name} AS BLOB) = CAST(? AS BLOB)" for name in keys)
    try:
        connection.execute(f"UPDATE {table} SET {column} = {new} WHERE {where}", (damage(value, chance), *key))
    except sqlite3.Error:
        # A constraint of the store refused the value.
        return False
    return True


def open_and_read(file: Path, read: Callable[[Conversation], object]) -> None:
    with lamella.open(f"sqlite:///{file}", model="scripted:x") as engine:
        read(engine.chat("talk"))


def verify(file: Path) -> None:
    with lamella.open(f"sqlite:///{file}") as engine:
        list(engine.verify())


@pytest.mark.parametrize("seed", range(2))
def test_damaged_archives_are_our_errors(made: tuple[Path, Path], tmp_path: Path, seed: int) -> None:
    chance, data = random.Random(seed), made[1].read_bytes()
    file = tmp_path / "talk.md"

    def bring_in() -> None:
        with lamella.open("memory:", model="scripted:x") as engine:
            chat, _, _ = engine.import_archive(file)
            chat.messages()
            chat.ask("And now?")

    for _ in range(ROUNDS):
        file.write_bytes(damage(data, chance))
        check(bring_in)


def test_damaged_transcripts_are_our_errors() -> None:
    chance = random.Random(1)
    for _ in range(10 * ROUNDS):
        check(partial(parse_transcript, name="talk.json"), damage(TRANSCRIPT, chance))
