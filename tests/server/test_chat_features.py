"""The features of ``lamella chat`` over HTTP: settings, memory, caches, tools, trust and models."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anthropic
import openai
import pytest
from tests.server.running import RunningServer, running

from lamella import Note
from lamella.core.messages import Usage
from lamella.testing import ScriptedProvider, ScriptedReply

SERVER = Path(__file__).parents[1] / "faulty_tool_server.py"
CLAUDE = "anthropic:claude-sonnet-4-5"
# A cache of five minutes is kept a quarter of a minute before it lapses.
DUE = timedelta(seconds=290)


@pytest.fixture
def script() -> ScriptedProvider:
    return ScriptedProvider(*[ScriptedReply(text="Yes.", usage=Usage(plain=0, read=8_000, write=0, output=1))] * 20)


@pytest.fixture
def server(script: ScriptedProvider) -> Iterator[RunningServer]:
    with running("memory:", script) as one:
        yield one


def test_setting_is_shown_with_its_origin_and_can_be_reset(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('set')}/settings"
    before = server.client.get(path).json()["in_force"]
    assert before["temperature"] == {"value": None, "from": "default"}
    told = server.client.patch(path, json={"settings": {"temperature": 0.2, "layout": "in_place"}}).json()
    assert told["in_force"]["temperature"] == {"value": 0.2, "from": "conversation"}
    assert told["in_force"]["layout"]["value"] == "in_place"
    assert server.client.patch(path, json={"settings": {"temperature": None}}).status_code == 200
    told = server.client.get(path).json()
    assert (told["settings"]["temperature"], told["in_force"]["temperature"]["value"]) == (None, None)
    told = server.client.patch(path, json={"settings": {"layout": None}}).json()
    assert told["in_force"]["layout"] == before["layout"]


def test_memory_is_loaded_on_request_not_on_reopen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: ScriptedProvider
) -> None:
    monkeypatch.setenv("LAMELLA_MEMORY", "on")
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path))
    with running("memory:", script) as server:
        server.client.post("/v1/memory", json={"text": "Likes tea."})
        path = f"/v1/conversations/{server.begin('tea')}"
        server.ask("tea", "What do I like?")
        server.client.post("/v1/memory", json={"text": "Likes rye."})
        server.ask("tea", "And else?")
        held = server.client.get(f"{path}/memory").json()["text"]
        assert ("Likes tea." in held, "Likes rye." in held) == (True, False)
        server.ask("tea", "And now?", memory=True)
        assert "Likes rye." in server.client.get(f"{path}/memory").json()["text"]
        causes = [turn["calls"][0]["verdict"]["cause"] for turn in server.client.get(f"{path}/ledger").json()["turns"]]
        assert causes == ["first_turn", "none", "system_changed"]
        assert server.client.patch(f"{path}/settings", json={"settings": {"summarizer": "off"}}).status_code == 200
        kept = server.client.post(f"{path}/memory")
        assert (kept.status_code, kept.json()["kind"]) == (201, "recent")
        assert kept.json()["text"] in [one["text"] for one in server.client.get("/v1/memory").json()["facts"]]


def test_memory_request_without_memory_is_refused(server: RunningServer) -> None:
    server.begin("tea")
    body = {"text": "And now?", "memory": True}
    refused = server.client.post("/v1/conversations/tea/messages", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_call")


def test_keep_alive_is_sent_when_due_only(server: RunningServer, script: ScriptedProvider) -> None:
    key = server.begin("kept", model=CLAUDE, settings={"layout": "auto"})
    conversation = server.state.engine_pool.get_engine().chat("kept")
    now = datetime.now(UTC)
    conversation.ask("What is in it?", attach=[Note(path="a.md", text="one word and another " * 2_000)], at=now - DUE)
    conversation.reply("Words.", at=now - DUE)
    cold = server.client.get(f"/v1/conversations/{key}/attachments").json()["cold"]
    assert cold["keep"]["tokens"] > 4_000
    kept = server.client.post(f"/v1/conversations/{key}/keep-alive").json()
    assert (kept["sent"], kept["cold"]) == (True, None)
    assert [request.model for request in script.requests] == [CLAUDE]
    assert server.client.post(f"/v1/conversations/{key}/keep-alive").json()["sent"] is False
    (turn,) = server.client.get(f"/v1/conversations/{key}/ledger").json()["turns"]
    assert [call["purpose"] for call in turn["calls"]][-1] == "keep_alive"


def test_keep_alive_without_question_sends_nothing(server: RunningServer) -> None:
    kept = server.client.post(f"/v1/conversations/{server.begin('new')}/keep-alive").json()
    assert (kept["sent"], kept["cold"]) == (False, None)


def test_tools_endpoint_lists_mcp_tools_and_refreshes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: ScriptedProvider
) -> None:
    file = tmp_path / "tools"
    file.write_text("look", encoding="utf-8")
    own = {"command": sys.executable, "args": [str(SERVER), "changes"], "env": ["TOOLS_FILE"], "writes": True}
    monkeypatch.setenv("TOOLS_FILE", str(file))
    monkeypatch.setenv("LAMELLA_MCP", json.dumps({"it": own}))
    with running("memory:", script) as server:
        path = f"/v1/conversations/{server.begin('tools')}/tools"
        names = {one["name"] for one in server.client.get(path).json()["tools"]}
        assert {"it__look", "recall"} <= names
        file.write_text("look listen", encoding="utf-8")
        assert {one["name"] for one in server.client.get(path).json()["tools"]} == names
        anew = {one["name"] for one in server.client.post(f"{path}/refresh").json()["tools"]}
        assert anew - names == {"it__listen"}


def test_trusted_place_is_listed_and_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: RunningServer
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    place = {"field": "model", "place": "openai:gpt-5.5"}
    assert server.client.post("/v1/trust", json=place).json()["new"] is True
    (listed,) = server.client.get("/v1/trust").json()["trusted"]
    assert (listed["field"], listed["place"]) == ("model", server.client.post("/v1/trust", json=place).json()["place"])
    assert server.client.delete("/v1/trust", params=place).status_code == 200
    assert server.client.get("/v1/trust").json()["trusted"] == []
    assert server.client.delete("/v1/trust", params=place).status_code == 404


def test_model_is_retrieved_by_name(server: RunningServer) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        assert client.models.retrieve("lamella").id == "scripted:tides"
        assert client.models.retrieve("tides").id == "scripted:tides"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("openai/gpt-4o")
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as claude:
        assert claude.models.retrieve("scripted:tides").id == "scripted:tides"
