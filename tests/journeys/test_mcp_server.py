"""``lamella mcp serve`` as an agent host uses it, with the SDK's client over stdio and HTTP."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextResourceContents
from tests.journeys.running import PROGRAM, spawn_in

import lamella
from lamella import Note

Home = dict[str, str]
READING = {
    "cost_of_conversation",
    "explain_cache_misses",
    "explain_item",
    "explain_prompt",
    "list_conversations",
    "list_files",
    "plan_compaction",
    "read_note",
    "recall",
    "search_notes",
    "select_code",
}
WRITING = {"compact_conversation", "edit_note", "write_note"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "beans.md").write_text("# Beans\n\nThe beans were sown on 3 May.\n", encoding="utf-8")
    (folder / "sowing.py").write_text("def sow_beans(bed):\n    return bed.dig()\n", encoding="utf-8")
    return folder


@pytest.fixture
def store(tmp_path: Path, vault: Path) -> str:
    """A store with a conversation of three turns, whose second request the provider served without its cache."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with lamella.open(url, vault=vault) as engine:
        chat = engine.chat("garden", model="anthropic:claude-opus-5-5", layout="in_place")
        chat.ask("When were they sown?", attach=[Note(path="beans.md")])
        chat.reply("On 3 May. " + "They grow. " * 400)
        chat.ask("And the peas?")
        chat.reply("In April.")
        chat.ask("Thanks.")
        chat.reply("You are welcome.")
    return url


@asynccontextmanager
async def over_stdio(home: Home, *words: str) -> AsyncIterator[Client]:
    """A client of a server that it started itself."""
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp", "serve", *words],
        env={**home, "PATH": os.environ["PATH"]},
        cwd=home["HOME"],
    )
    async with Client(stdio_client(parameters)) as client:
        yield client


@contextmanager
def served(home: Home, *words: str) -> Iterator[str]:
    """The address of a server over HTTP, as a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "mcp", "serve", "--http", "--port", "0", *words],
        env={**home, "PATH": os.environ["PATH"]},
        cwd=home["HOME"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = (json.loads(line) for line in process.stderr if line.startswith("{"))
        try:
            yield next(line["address"] for line in lines if line.get("at") == "start")
        finally:
            process.terminate()


@asynccontextmanager
async def over_http(address: str, token: str = "") -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


def run(journey: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(journey())


async def call(client: Client, name: str, **arguments: object) -> Mapping[str, Any]:
    """The JSON of a tool that succeeds."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    found: Mapping[str, Any] | None = result.structured_content
    assert found is not None
    return found


async def read_resource(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def text_of(client: Client, name: str, **arguments: object) -> str:
    result = await client.call_tool(name, arguments)
    (block,) = result.content
    assert block.type == "text"
    return block.text


def test_reading_tools_answer_over_stdio(vault: Path, store: str, home: Home) -> None:
    async def journey() -> None:
        async with over_stdio(home, str(vault), "--store", store) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == READING
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools.values())
            assert "sown on 3 May" in await text_of(client, "search_notes", query="beans")
            assert "sown on 3 May" in await text_of(client, "read_note", path="beans.md")
            listed = await call(client, "list_conversations")
            assert [one["name"] for one in listed["chats"]] == ["garden"]
            prompt = await call(client, "explain_prompt", conversation="garden", turn=1)
            segments = [one for layer in prompt["envelope"]["layers"] for one in layer["segments"]]
            assert "beans.md" in [one["id"] for one in segments]
            item = await call(client, "explain_item", conversation="garden", item="beans.md")
            assert item["conversation"] == listed["chats"][0]["conversation"]
            misses = await call(client, "explain_cache_misses", conversation="garden", turn=2)
            assert [row["turn"] for row in misses["turns"]] == [2]
            cost = await call(client, "cost_of_conversation", conversation="garden")
            assert cost["totals"]["turns"] == 3
            assert cost["turns"] == []
            plan = await call(client, "plan_compaction", conversation="garden", target_percent=1)
            assert plan["committed"] is False
            assert plan["receipt"] is not None
            code = await call(client, "select_code", question="Where are beans sown? sow_beans")
            assert code["files"][0]["path"] == "sowing.py"
            assert "def sow_beans" in await text_of(client, "select_code", question="sow_beans", **{"as": "text"})

    run(journey)


def test_recall_finds_what_left_the_prompt(vault: Path, store: str, home: Home) -> None:
    async def journey() -> None:
        async with over_stdio(home, str(vault), "--allow-writes", "--store", store) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING | WRITING
            assert (await call(client, "recall", conversation="garden", query="sown"))["hits"] == []
            done = await call(client, "compact_conversation", conversation="garden", target_percent=1)
            assert done["committed"] is True
            hits = (await call(client, "recall", conversation="garden", query="sown on 3 May"))["hits"]
            assert hits
            key = done["conversation"]
            receipts = json.loads(await read_resource(client, f"lamella://conversations/{key}/receipts"))
            assert [one["id"] for one in receipts["receipts"]] == [done["receipt"]["id"]]

    run(journey)


def test_notes_change_only_where_writes_are_allowed(vault: Path, store: str, home: Home) -> None:
    off = {**home, "LAMELLA_NOTE_WRITES": "off"}

    async def journey() -> None:
        async with over_stdio(home, str(vault), "--store", store) as client:
            refused = await client.call_tool("write_note", {"path": "peas.md", "content": "# Peas\n"})
            assert refused.is_error
        async with over_stdio(off, str(vault), "--allow-writes", "--store", store) as client:
            assert "write_note" not in {tool.name for tool in (await client.list_tools()).tools}
        assert not (vault / "peas.md").exists()
        async with over_stdio(home, str(vault), "--allow-writes", "--store", store) as client:
            tools = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
            assert {name for name, notes in tools.items() if notes is not None and not notes.read_only_hint} == WRITING
            await client.call_tool("write_note", {"path": "peas.md", "content": "# Peas\n"})
            assert (vault / "peas.md").read_text(encoding="utf-8") == "# Peas\n"

    run(journey)


def test_resources_are_notes_and_conversations(vault: Path, store: str, home: Home) -> None:
    async def journey() -> None:
        async with over_stdio(home, str(vault), "--store", store) as client:
            listed = {one.name: str(one.uri) for one in (await client.list_resources()).resources}
            assert "lamella://notes/beans.md" in listed.values()
            templates = (await client.list_resource_templates()).resource_templates
            assert [one.name for one in templates] == ["note", "conversation", "receipts"]
            assert await read_resource(client, "lamella://notes/beans.md") == (vault / "beans.md").read_text(
                encoding="utf-8"
            )
            (address,) = [uri for uri in listed.values() if "conversations" in uri]
            conversation = json.loads(await read_resource(client, address))
            assert conversation["count"] == 3
            for uri in (
                "lamella://notes/../secret.md",
                "lamella://notes/none.md",
                "lamella://none/1",
                "file:///etc/passwd",
            ):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(uri)
                assert "passwd:" not in str(refused.value)

    run(journey)


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("recall", {"conversation": "none", "query": "beans"}, "There is no conversation 'none'."),
        ("recall", {"conversation": "garden"}, "query is missing"),
        ("recall", {"conversation": "garden", "query": "x", "colour": "red"}, "there is no argument colour"),
        ("explain_prompt", {"conversation": "garden", "turn": 9}, "There is no turn 9. The conversation has 3 turns."),
        ("plan_compaction", {"conversation": "garden", "target_percent": 0}, "it may be from 1 to 100"),
        ("read_note", {"path": "../chats.db"}, "is no file that is shown"),
        ("select_code", {"question": "x", "folder": "../.."}, "is outside of"),
        ("none", {}, "There is no tool none."),
    ],
)
def test_bad_arguments_are_results_that_say_what_to_do(
    vault: Path, store: str, home: Home, name: str, arguments: dict[str, Any], words: str
) -> None:
    async def journey() -> None:
        async with over_stdio(home, str(vault), "--store", store) as client:
            result = await client.call_tool(name, arguments)
            assert result.is_error
            (block,) = result.content
            assert block.type == "text"
            assert words in block.text

    run(journey)


def test_owner_sees_only_own_conversations_over_http(vault: Path, store: str, home: Home) -> None:
    tokens: dict[str, str] = {}
    for owner, scope in (("ada", "chat"), ("bob", "read")):
        words = ("tokens", "add", owner, "--owner", owner, "--scope", scope)
        done = spawn_in({**home, "PATH": ""}, *words, "--json")
        assert done.exit == 0, done.err
        tokens[owner] = json.loads(done.out)["token"]
    config = vault.parent / "config.toml"
    config.write_text('[serve]\nhosts = ["chats.example"]\n', encoding="utf-8")
    reachable = {**home, "LAMELLA_CONFIG": str(config)}

    async def journey(address: str) -> None:
        async with over_http(address, tokens["ada"]) as client:
            assert "sown on 3 May" in await text_of(client, "search_notes", query="beans")
            assert (await call(client, "list_conversations"))["chats"] == []
            hidden = await client.call_tool("cost_of_conversation", {"conversation": "garden"})
            assert hidden.is_error
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names & WRITING == {"compact_conversation"}
        async with over_http(address, tokens["bob"]) as client:
            assert not {tool.name for tool in (await client.list_tools()).tools} & WRITING
        async with httpx2.AsyncClient() as http:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
            for headers in ({}, {"Authorization": "Bearer lamella_wrong"}):
                assert (await http.post(address, json=body, headers=headers)).status_code == 401
            known = {"Authorization": f"Bearer {tokens['ada']}"}
            wrong = await http.post(address, json=body, headers={**known, "Origin": "https://evil.example"})
            assert wrong.status_code == 403

    with served(reachable, str(vault), "--allow-writes", "--store", store) as address:
        run(lambda: journey(address))


def test_operator_on_same_machine_needs_no_token(vault: Path, store: str, home: Home) -> None:
    async def journey(address: str) -> None:
        async with over_http(address) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == READING
            assert len((await call(client, "list_conversations"))["chats"]) == 1
            assert "3 May" in await read_resource(client, "lamella://notes/beans.md")

    with served(home, str(vault), "--store", store) as address:
        run(lambda: journey(address))


def test_command_refuses_options_that_do_not_fit(vault: Path, store: str, home: Home) -> None:
    done = spawn_in({**home, "PATH": ""}, "mcp", "serve", "--port", "0")
    assert done.exit == 2
    assert done.err.startswith("error: --host and --port need --http.")
    everywhere = spawn_in({**home, "PATH": ""}, "mcp", "serve", "--http", "--host", "0.0.0.0", "--store", store)
    assert everywhere.exit == 2
    assert "no token was given out" in everywhere.err
