"""Long results: the message has both ends, and recall reads the rest."""

import asyncio
import re
from pathlib import Path

import pytest

import lamella
from lamella.providers import ToolCall
from lamella.testing import ScriptedProvider, ScriptedReply

LOG = "".join(f"line {number:05} of the log\n" for number in range(4_000))
HANDLE = re.compile(r"(tool:read_log:[0-9a-f]{12}) from character (\d+) on")


def read_log() -> str:
    """Read the log."""
    return LOG


def call(name: str, arguments: str = "{}") -> ScriptedReply:
    return ScriptedReply(calls=(ToolCall(id=f"{name}-1", name=name, arguments=arguments),))


async def send(engine: lamella.Engine, text: str, **given: object) -> list[str]:
    """What the tools of a turn gave, as the model is shown it."""
    conversation = engine.chat("log")
    tools = [read_log, conversation.recall_tool]
    shown: list[str] = []
    async for event in conversation.send(text, tools=tools, **given):  # type: ignore[arg-type]
        if event.turn is not None:
            shown = [message.text for message in event.turn.messages if message.role == "tool"]
    return shown


def open_engine(folder: Path, *lines: ScriptedReply | str) -> lamella.Engine:
    return lamella.open(f"sqlite:///{folder}/log.db", model="scripted:log", provider=ScriptedProvider(*lines))


def test_long_result_shows_both_ends_and_rest_is_readable_after_reload(tmp_path: Path) -> None:
    with open_engine(tmp_path, call("read_log"), "It is long.") as engine:
        (shown,) = asyncio.run(send_in(engine, tool_output=1_000))
    assert shown.startswith("line 00000")
    assert shown.endswith("line 03999 of the log\n")
    assert len(shown) < 1_000 + 200
    handle, start = HANDLE.search(shown).groups()  # type: ignore[union-attr]
    asks = call("recall", f'{{"query": "{handle}", "start": {start}}}')
    with open_engine(tmp_path, asks, "Read.") as engine:
        before, recalled = asyncio.run(send(engine, "Read on."))
    # The bytes of the first turn are those that were sent.
    assert before == shown
    # What is recalled is never cut itself: it would lead to itself.
    title, _, text = recalled.partition("\n")
    assert len(recalled) <= 1_000
    assert text == LOG[750 : 750 + len(text)]
    assert title.endswith(f"characters 750 to {750 + len(text)} of {len(LOG)}; go on with start {750 + len(text)}]")


async def send_in(engine: lamella.Engine, *, tool_output: int) -> list[str]:
    conversation = engine.chat("log", layout="in_place", tool_output=tool_output)
    shown: list[str] = []
    async for event in conversation.send("Read it.", tools=[read_log, conversation.recall_tool]):
        if event.turn is not None:
            shown = [message.text for message in event.turn.messages if message.role == "tool"]
    return shown


def test_by_default_a_result_of_a_usual_length_is_shown_whole(tmp_path: Path) -> None:
    with open_engine(tmp_path, call("read_log"), "It is long.") as engine:
        (shown,) = asyncio.run(send_in(engine, tool_output=len(LOG)))
    assert shown == LOG


def test_reading_on_uses_full_result_not_recall_output(tmp_path: Path) -> None:
    with open_engine(tmp_path, call("read_log"), "Long.") as engine:
        (shown,) = asyncio.run(send_in(engine, tool_output=1_000))
        handle, _ = HANDLE.search(shown).groups()  # type: ignore[union-attr]
    first = call("recall", f'{{"query": "{handle}", "start": 0}}')
    with open_engine(tmp_path, first, "Read.", first, "Again.") as engine:
        asyncio.run(send(engine, "Read it."))
        *_, again = asyncio.run(send(engine, "Read it again."))
    assert LOG[:600] in again


@pytest.mark.parametrize(("start", "told"), [(-1, "no character"), ("x", "no character"), (10**9, "nothing from")])
def test_start_beyond_result_is_reported(tmp_path: Path, start: object, told: str) -> None:
    with open_engine(tmp_path, call("read_log"), "Long.") as engine:
        asyncio.run(send_in(engine, tool_output=1_000))
        tool = engine.chat("log").recall_tool
        assert tool.run is not None
        assert told in str(asyncio.run(tool.run(query="log", start=start)))  # type: ignore[arg-type]
