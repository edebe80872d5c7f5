"""A model that wants to write waits for the user's yes, which any client of the conversation may give."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import servers
from tests.server.running import RunningServer, SentEvent, read_events, running

from lamella.core.messages import ToolCall
from lamella.testing import ScriptedProvider, ScriptedReply

NEW_TEXT = "# Beds\n\nBed 7 has leeks.\n"
WRITE = ToolCall(id="w1", name="write_note", arguments=json.dumps({"path": "beds.md", "content": NEW_TEXT}))
REMEMBER = ToolCall(id="m1", name="remember", arguments=json.dumps({"fact": "Grows leeks."}))
# Long enough for the first request of a busy machine.
GRACE_SECONDS = 1.5
OLD_TEXT = "# Beds\n\nBed 7 has beans.\n"


@pytest.fixture
def note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    monkeypatch.setenv("LAMELLA_NOTE_BACKUPS", str(tmp_path / "backups"))
    (tmp_path / "vault").mkdir()
    path = tmp_path / "vault" / "beds.md"
    path.write_text(OLD_TEXT, encoding="utf-8")
    return path


@pytest.fixture
def server(note: Path) -> Iterator[RunningServer]:
    script = ScriptedProvider(ScriptedReply(calls=(WRITE,)), "Done.", "Again.")
    with running("memory:", script, vault=note.parent, serve={"grace": GRACE_SECONDS}) as one:
        yield one


def _ask(server: RunningServer, key: str, answers: list[bool], **more: object) -> list[SentEvent]:
    """Ask, and answer each permission request as it comes; return all events."""
    body = {"text": "Write it down.", "runner": "agent", "permissions": True, **more}
    events: list[SentEvent] = []
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
        for event in read_events(answer.iter_lines()):
            events.append(event)
            if event.name == "permission" and event.data["allowed"] is None:
                given = _answer(server, key, event.data["id"], allowed=answers.pop(0))
                assert given["permission"] == event.data["id"]
    return events


def _answer(server: RunningServer, key: str, permission: str, *, allowed: bool) -> dict[str, Any]:
    answer = server.client.post(f"/v1/conversations/{key}/permissions/{permission}", json={"allowed": allowed})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_allowed_change_is_shown_as_a_diff_and_written(server: RunningServer, note: Path) -> None:
    events = _ask(server, server.begin("yes"), [True])
    asked, answered = (one.data for one in events if one.name == "permission")
    assert (asked["path"], asked["created"], asked["memory"], asked["allowed"]) == ("beds.md", False, False, None)
    assert "-Bed 7 has beans.\n+Bed 7 has leeks." in asked["diff"]
    assert answered == {**asked, "allowed": True}
    assert note.read_text(encoding="utf-8") == NEW_TEXT
    assert events[-1].name == "done"


def test_refused_change_is_not_written_and_the_model_continues(server: RunningServer, note: Path) -> None:
    events = _ask(server, server.begin("no"), [False])
    (output,) = (one.data["output"] for one in events if one.name == "tool" and one.data["output"])
    assert output["failed"]
    assert "the user said no" in output["output"]
    assert note.read_text(encoding="utf-8") == OLD_TEXT
    assert "".join(one.data["text"] for one in events if one.name == "delta") == "Done."


def test_client_that_cannot_answer_is_refused_at_once(server: RunningServer, note: Path) -> None:
    events = _ask(server, server.begin("alone"), [], permissions=False)
    assert not [one for one in events if one.name == "permission"]
    (output,) = (one.data["output"] for one in events if one.name == "tool" and one.data["output"])
    assert "nobody can be asked here" in output["output"]
    assert note.read_text(encoding="utf-8") == OLD_TEXT


def test_request_waits_for_a_client_that_comes_back(server: RunningServer, note: Path) -> None:
    key = server.begin("back")
    body = {"text": "Write it down.", "runner": "agent", "permissions": True}
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
        asked = next(one for one in read_events(answer.iter_lines()) if one.name == "permission")
    # Longer than the grace period of the server, which ends a run that nobody follows.
    threading.Event().wait(GRACE_SECONDS + 0.5)
    running_turn = server.client.get(f"/v1/conversations/{key}").json()["running"]
    path = f"/v1/conversations/{key}/messages/{running_turn['message']}/events"
    with server.client.stream("GET", path) as again:
        events = read_events(again.iter_lines())
        replayed = next(one for one in events if one.name == "permission")
        assert replayed.data == asked.data
        _answer(server, key, asked.data["id"], allowed=True)
        assert [one.name for one in events][-1] == "done"
    assert note.read_text(encoding="utf-8") == NEW_TEXT


def test_turn_that_waits_for_an_answer_can_be_stopped(server: RunningServer, note: Path) -> None:
    key = server.begin("stopped")
    body = {"text": "Write it down.", "runner": "agent", "permissions": True}
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
        events = read_events(answer.iter_lines())
        asked = next(one for one in events if one.name == "permission")
        assert server.client.post(f"/v1/conversations/{key}/stop").json()["stopped"]
        assert [one.name for one in events][-1] == "done"
    late = server.client.post(f"/v1/conversations/{key}/permissions/{asked.data['id']}", json={"allowed": True})
    assert late.status_code == 404
    assert "its turn has ended" in late.json()["error"]["hint"]
    assert note.read_text(encoding="utf-8") == OLD_TEXT


def test_second_answer_to_a_request_is_refused(server: RunningServer) -> None:
    key = server.begin("twice")
    events = _ask(server, key, [True])
    asked = next(one.data for one in events if one.name == "permission")
    again = server.client.post(f"/v1/conversations/{key}/permissions/{asked['id']}", json={"allowed": False})
    assert (again.status_code, again.json()["error"]["code"]) == (404, "not_found")


def test_fact_is_remembered_after_a_yes(note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMELLA_MEMORY", "on")
    script = ScriptedProvider(ScriptedReply(calls=(REMEMBER,)), "Noted.")
    with running("memory:", script, vault=note.parent) as server:
        events = _ask(server, server.begin("fact"), [True])
        asked = next(one.data for one in events if one.name == "permission")
        assert asked["memory"]
        facts = server.client.get("/v1/memory").json()["facts"]
        assert "Grows leeks." in json.dumps(facts)


def test_answer_reaches_the_server_that_runs_the_turn(note: Path) -> None:
    url = servers.shared().make_store_url()
    script = ScriptedProvider(ScriptedReply(calls=(WRITE,)), "Done.")
    with running(url, script, vault=note.parent) as one, running(url, ScriptedProvider()) as other:
        key = one.begin("shared")
        body = {"text": "Write it down.", "runner": "agent", "permissions": True}
        with one.client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
            events = read_events(answer.iter_lines())
            asked = next(event for event in events if event.name == "permission")
            _answer(other, key, asked.data["id"], allowed=True)
            assert [event.name for event in events][-1] == "done"
    assert note.read_text(encoding="utf-8") == NEW_TEXT
