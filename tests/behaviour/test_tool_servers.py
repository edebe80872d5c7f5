"""Tools of an MCP server in a conversation: called in rounds, and a changed list moves the prefix when it is wanted."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

import lamella
from lamella import Chat, Event, ToolCall
from lamella.testing import Line, ScriptedProvider

SERVER = Path(__file__).parents[1] / "odd_tool_server.py"


@pytest.fixture
def tools_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the server lists, which the environment names as any setting may be."""
    file = tmp_path / "tools"
    file.write_text("look", encoding="utf-8")
    table = {"it": {"command": sys.executable, "args": [str(SERVER), "changes"], "env": ["TOOLS_FILE"]}}
    monkeypatch.setenv("TOOLS_FILE", str(file))
    monkeypatch.setenv("LAMELLA_MCP", json.dumps(table))
    return file


async def send(chat: Chat, text: str, engine: lamella.Engine) -> list[Event]:
    tools = await asyncio.to_thread(engine.servers.tools)
    return [event async for event in chat.send(text, tools=tools)]


def test_calls_are_answered_by_the_server_and_a_changed_list_waits_until_it_is_wanted(
    tmp_path: Path, tools_file: Path
) -> None:
    call = ToolCall(id="1", name="it__look", arguments="{}")
    provider = ScriptedProvider(Line(calls=(call,)), "Done.", "Again.", "Anew.")

    async def talk() -> list[str]:
        async with lamella.open(f"sqlite:///{tmp_path / 'c.db'}", model="m", provider=provider) as engine:
            chat = await engine.conversation("chat", layout="in_place")
            await send(chat, "Look.", engine)
            await asyncio.to_thread(tools_file.write_text, "look listen", encoding="utf-8")
            await send(chat, "Once more.", engine)
            engine.servers.refresh()
            await send(chat, "And now?", engine)
            return [str(calls[0].verdict.movement) for calls in chat.ledger()]

    assert asyncio.run(talk()) == ["first_turn", "none", "tools_changed(it__listen)"]
    assert any("called look" in message.text for message in provider.requests[1].messages)


def test_a_plain_question_starts_no_server(tmp_path: Path, tools_file: Path) -> None:
    tools_file.unlink()

    async def talk() -> str:
        async with lamella.open(
            f"sqlite:///{tmp_path / 'c.db'}", model="m", provider=ScriptedProvider("Yes.")
        ) as engine:
            chat = await engine.conversation("chat")
            return "".join([event.text async for event in chat.send("Hello")])

    assert asyncio.run(talk()) == "Yes."
