"""Attachments, prompts, compaction, memory and the catalog over HTTP, compared with the engine itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import RunningServer, running

from lamella.testing import ScriptedProvider

VAULT = Path("examples/vault")
SPEC = {"kind": "note", "path": "spec.md", "text": "# Spec\n\nThe sluice opens at noon."}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["It opens at noon."] * 50), vault=VAULT) as one:
        yield one


def get(server: RunningServer, path: str, **params: str | int) -> dict[str, Any]:
    answer = server.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def post(server: RunningServer, path: str, body: dict[str, object], status: int = 200) -> dict[str, Any]:
    answer = server.client.post(path, json=body)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_something_is_attached_pinned_detached_and_dropped_between_turns(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('library')}"
    told = post(server, f"{path}/attachments", {"attach": [SPEC]})
    assert [one["id"] for one in told["waiting"]["attach"]] == ["spec.md"]
    assert told["next"]["more_tokens"] > 0
    server.ask("library", "When does it open?")
    assert [one["id"] for one in get(server, f"{path}/attachments")["artifacts"]] == ["spec.md"]
    assert get(server, f"{path}/working-set")["working_set"] == ["spec.md"]
    assert post(server, f"{path}/pin", {"names": ["spec.md"]})["waiting"]["pin"] == ["spec.md"]
    assert post(server, f"{path}/unpin", {"names": ["spec.md"]})["waiting"]["pin"] == []
    assert post(server, f"{path}/detach", {"names": []})["waiting"]["detach"] == ["spec.md"]
    assert post(server, f"{path}/drop", {"names": ["spec.md"]})["waiting"]["drop"] == ["spec.md"]
    assert get(server, f"{path}/why", name="spec.md")["id"] == "spec.md"
    assert post(server, f"{path}/refresh", {})["conversation"]


def test_names_are_completed_searched_and_attached_from_vault_only(server: RunningServer) -> None:
    names = get(server, "/v1/notes/complete", q="one-index")["names"]
    assert names == ["decisions/one-index.md"]
    assert get(server, "/v1/notes/search", q="what is decided")["hits"]
    path = f"/v1/conversations/{server.begin('vault')}/attachments"
    assert post(server, path, {"attach": ["@decisions/one-index.md"]})["waiting"]["attach"]
    outside: list[tuple[object, int, str]] = [
        ("../../pyproject.toml", 400, "source_outside"),
        ({"kind": "note", "path": "../../pyproject.toml"}, 400, "source_outside"),
        ({"kind": "note", "path": "/etc/passwd"}, 400, "source_outside"),
        ({"kind": "url", "url": "http://127.0.0.1:8765/v1/settings"}, 400, "source_refused"),
        ({"kind": "url", "url": "http://169.254.169.254/latest"}, 400, "source_refused"),
        ({"kind": "url", "url": "file:///etc/passwd"}, 400, "source_refused"),
        ({"kind": "url", "url": "http://2130706433/"}, 400, "source_refused"),
        ({"kind": "url", "url": "http://0x7f000001/"}, 400, "source_refused"),
        ({"kind": "web_tab", "url": "http://[::1]/"}, 400, "source_refused"),
        ({"kind": "image", "url": "http://127.0.0.1:1/x.png"}, 400, "source_refused"),
        ({"kind": "image", "path": "/etc/passwd"}, 400, "source_outside"),
        ({"kind": "folder", "path": "/etc"}, 400, "source_outside"),
        ({"kind": "codebase", "path": "../.."}, 400, "source_outside"),
        ({"kind": "note", "path": "nowhere.md"}, 404, "source_missing"),
        ({"kind": "spaceship", "path": "x"}, 400, "bad_artifact"),
        ({"kind": "folder", "text": "x"}, 400, "bad_artifact"),
        ({"kind": "image", "data": "?"}, 400, "bad_artifact"),
    ]
    for one, status, code in outside:
        refused = server.client.post(path, json={"attach": [one]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (status, code), one


def test_without_a_vault_a_name_leads_nowhere() -> None:
    with running("memory:", ScriptedProvider()) as server:
        key = server.begin("bare")
        for one in ("/etc/passwd", {"kind": "note", "path": "/etc/passwd"}, {"kind": "note", "path": "pyproject.toml"}):
            refused = server.client.post(f"/v1/conversations/{key}/attachments", json={"attach": [one]})
            assert refused.status_code in (400, 404), refused.text
        assert server.client.get("/v1/notes/complete", params={"q": "a"}).status_code == 400


def test_turn_is_shown_as_sent_and_as_sdk_request(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('sent')}"
    server.ask("sent", "When does it open?", attach=[SPEC])
    server.ask("sent", "And when does it close?")
    turn = get(server, f"{path}/turns/2")
    assert turn["same_bytes"] is True
    assert [layer["id"] for layer in turn["envelope"]["layers"]][:2] == ["L1_SYSTEM", "L2_PREVIOUS"]
    assert "The sluice opens at noon." in str(turn["messages"])
    body = get(server, f"{path}/turns/2/request", provider="anthropic")
    assert body["messages"][-1]["role"] == "user"
    assert server.client.get(f"{path}/turns/9").status_code == 404
    assert server.client.get(f"{path}/turns/2/request", params={"provider": "nobody"}).status_code == 400
    assert len(get(server, f"{path}/ledger")["turns"]) == 2


def test_turns_are_shown_as_sent_before_and_after_a_compaction(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('shrunk')}"
    for number in range(3):
        server.ask("shrunk", f"Question {number}? " + "The sluice opens at noon, and closes at dusk. " * 30)
    post(server, f"{path}/compactions", {"to": 0.001}, 201)
    server.ask("shrunk", "And now?")
    sizes = []
    for number in (3, 4):
        turn = get(server, f"{path}/turns/{number}")
        assert (turn["same_bytes"], turn["check"]) == (True, {"status": "verified", "detail": ""})
        sizes.append(turn["tokens"]["total"])
    assert sizes[1] < sizes[0]
    sent = get(server, f"{path}/ledger")["turns"]
    assert len(sent) == 4


def test_preview_prices_next_turn_without_changes(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('priced')}"
    server.ask("priced", "When does it open?")
    short = post(server, f"{path}/preview", {"text": "Why?"})
    long = post(server, f"{path}/preview", {"text": "Why?", "attach": [SPEC], "whole": True})
    assert long["tokens"]["total"] > short["tokens"]["total"]
    assert "The sluice" in str(long["messages"])
    assert "messages" not in short
    assert get(server, f"{path}/budget")["tokens"]["limit"] == short["tokens"]["limit"]
    assert len(get(server, path)["turns"]) == 1


def test_conversation_is_compacted_recalled_and_restored(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('small', settings={'summarizer': 'off'})}"
    for number in range(4):
        server.ask("small", f"What of the heron number {number}? " + "Tell me all of it. " * 30)
    plan = post(server, f"{path}/compactions/plan", {"to": 0.001})
    assert plan["receipt"]["steps"]
    other = server.client.post(f"{path}/compactions", json={"to": 0.001, "receipt": "another"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "diverged")
    done = post(server, f"{path}/compactions", {"to": 0.001, "receipt": plan["receipt"]["id"]}, 201)
    assert done["committed"]
    assert [one["id"] for one in get(server, f"{path}/compactions")["receipts"]] == [plan["receipt"]["id"]]
    assert get(server, f"{path}/recall", q="heron number 0")["hits"]
    assert post(server, f"{path}/compactions/undo", {})["undone"] == [plan["receipt"]["id"]]
    nothing = server.client.post(f"{path}/compactions/undo", json={})
    assert (nothing.status_code, nothing.json()["error"]["code"]) == (400, "bad_call")
    little = server.client.post(f"{path}/compactions", json={"to": 1})
    assert (little.status_code, little.json()["error"]["code"]) == (400, "bad_call")


def test_range_is_compacted_and_bytes_before_it_are_unchanged() -> None:
    long = "It is said in the plan, at some length, and goes on so for a while. " * 12
    own = {"summarizer": "off", "layout": "in_place", "window": 20_000, "reserve": 500}
    with running("memory:", ScriptedProvider(*[long] * 8)) as server:
        path = f"/v1/conversations/{server.begin('ranged', settings=own)}"
        asked = [server.ask("ranged", f"What of heron {number}?") for number in range(8)]
        late = post(server, f"{path}/compactions/plan", {"to": 0.01, "since": "turn:5"})
        early = post(server, f"{path}/compactions/plan", {"to": 0.01, "until": asked[2]["message"]})
        assert early["receipt"]["id"] != late["receipt"]["id"]
        before = post(server, f"{path}/preview", {"text": "And?", "whole": True})["messages"]
        body: dict[str, object] = {"to": 0.01, "since": "turn:5", "receipt": late["receipt"]["id"]}
        assert post(server, f"{path}/compactions", body, 201)["committed"]
        after = post(server, f"{path}/preview", {"text": "And?", "whole": True})["messages"]
        # Four questions and their answers, after the system message.
        assert after[:9] == before[:9]
        assert after != before
        assert post(server, f"{path}/compactions/undo", {"receipt": late["receipt"]["id"]})["undone"]
        assert post(server, f"{path}/preview", {"text": "And?", "whole": True})["messages"] == before
        strange = server.client.post(f"{path}/compactions/plan", json={"since": "turn:99"})
        assert (strange.status_code, strange.json()["error"]["code"]) == (400, "bad_call")


def test_rules_are_detected_added_and_removed(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('ruled')}"
    message = server.ask("ruled", "From now on, always answer in French. When does the office open?")["message"]
    found = get(server, f"{path}/rules")["rules"]
    assert [(one["by"], one["message"], one["turn"]) for one in found] == [("found", message, 1)]
    added = post(server, f"{path}/rules", {"text": "Answer in one sentence."}, 201)
    assert (added["added"]["text"], added["added"]["by"]) == ("Answer in one sentence.", "user")
    assert [one["text"] for one in added["rules"]][-1] == "Answer in one sentence."
    server.ask("ruled", "And when does it close?")
    assert "Answer in one sentence." in str(get(server, f"{path}/turns/2")["messages"])
    gone = server.client.delete(f"{path}/rules/{added['added']['id']}").json()
    assert gone["removed"]["text"] == "Answer in one sentence."
    assert [one["id"] for one in gone["rules"]] == [found[0]["id"]]
    assert server.client.delete(f"{path}/rules/1").json()["rules"] == []
    for refused in (
        server.client.delete(f"{path}/rules/nothing-of-it"),
        server.client.post(f"{path}/rules", json={"text": "Long. " * 200}),
    ):
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_call")


def test_facts_are_remembered_changed_and_forgotten(server: RunningServer) -> None:
    fact = post(server, "/v1/memory", {"text": "Keeps two herons."}, 201)
    assert fact["new"]
    assert fact["id"] in [one["id"] for one in get(server, "/v1/memory")["facts"]]
    changed = server.client.put(f"/v1/memory/{fact['id']}", json={"text": "Keeps three herons."}).json()
    assert server.client.delete(f"/v1/memory/{changed['id']}").json()["removed"]
    assert server.client.delete("/v1/memory/nothing-of-it").status_code == 400


def test_catalog_lists_runners_tools_models_and_settings(server: RunningServer) -> None:
    assert "agent" in [one["name"] for one in get(server, "/v1/runners")["runners"]]
    assert [one["name"] for one in get(server, "/v1/tools")["tools"]]
    assert [one["id"] for one in get(server, "/v1/models")["data"]] == ["scripted:tides"]
    assert get(server, "/v1/settings")["settings"]["window"]["from"] == "default"
    trusted = server.client.post("/v1/trust", json={"field": "window", "place": "x"})
    assert (trusted.status_code, trusted.json()["error"]["code"]) == (400, "bad_setting")
