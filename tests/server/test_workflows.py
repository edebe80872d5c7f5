"""Work in stages over HTTP, from beginning it to the exported text."""

import base64
import io
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.server.running import RunningServer, running
from tests.server.test_code_questions import PausingProvider

from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider

FIELDS = {"problem": "Desks are booked twice.", "goals": ["No desk is booked twice."]}
DECISION = "Double bookings of desks end."


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", ScriptedProvider(*["Noted."] * 30)) as one:
        yield one


def call(server: RunningServer, method: str, path: str, body: object = None, status: int = 200) -> dict[str, Any]:
    answer = server.client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


def begin(server: RunningServer, name: str) -> str:
    path = f"/v1/conversations/{server.begin(name)}/workflow"
    assert call(server, "POST", path, {"workflow": "rfc"}, 201)["current"] == "problem"
    return path


def test_workflows_are_listed_with_their_stages(server: RunningServer) -> None:
    listed = {one["name"]: one for one in call(server, "GET", "/v1/workflows")["workflows"]}
    assert {name: len(listed[name]["stages"]) for name in ("paper", "rfc")} == {"paper": 13, "rfc": 6}
    assert listed["rfc"]["stages"][0]["required"] == ["problem", "goals"]


def test_stage_is_written_submitted_approved_and_in_next_prompt(server: RunningServer) -> None:
    path = begin(server, "desks")
    server.ask("desks", "Desks are booked twice.")
    refused = call(server, "POST", f"{path}/submit", status=400)["error"]
    assert refused["code"] == "bad_workflow"
    assert "goals" in refused["message"]
    told = call(server, "PATCH", f"{path}/data", {"fields": FIELDS})
    assert told["data"] == {"problem": FIELDS}
    assert call(server, "POST", f"{path}/submit")["status"] == "pending"
    told = call(server, "POST", f"{path}/approve", {"decision": DECISION})
    assert (told["current"], told["status"]) == ("background", "drafting")
    assert [(one["id"], one["status"], len(one["messages"])) for one in told["stages"][:2]] == [
        ("problem", "approved", 2),
        ("background", "drafting", 0),
    ]
    server.ask("desks", "How does it work today?")
    turn = call(server, "GET", "/v1/conversations/desks/turns/2")
    assert turn["same_bytes"] is True
    assert DECISION in turn["messages"][0]["content"]
    assert call(server, "GET", path)["digest"][0]["decision"] == DECISION
    exported = server.client.get(f"{path}/export", params={"title": "Desks"}).json()
    assert exported["text"].startswith("# Desks")
    assert FIELDS["problem"] in exported["text"]


def test_going_back_keeps_fields_and_supersedes_decisions(server: RunningServer) -> None:
    path = begin(server, "back")
    call(server, "PATCH", f"{path}/data", {"fields": FIELDS})
    call(server, "POST", f"{path}/submit")
    call(server, "POST", f"{path}/approve", {})
    told = call(server, "POST", f"{path}/rewind", {"stage": "problem"})
    assert (told["current"], [one["superseded"] for one in told["digest"]]) == ("problem", [True])
    assert call(server, "GET", f"{path}/data")["data"] == {"problem": FIELDS}
    assert call(server, "PATCH", f"{path}/data", {"fields": {"goals": None}})["data"]["problem"] == {
        "problem": FIELDS["problem"]
    }
    assert call(server, "POST", f"{path}/rewind", {"stage": "nowhere"}, 400)["error"]["code"] == "bad_workflow"


def test_workflow_sets_staged_runner_and_second_start_is_refused(
    server: RunningServer,
) -> None:
    path = begin(server, "runner")
    settings = "/v1/conversations/runner/settings"
    assert call(server, "GET", settings)["settings"]["runner"] == "staged"
    call(server, "PATCH", settings, {"settings": {"runner": "chat"}})
    assert call(server, "POST", path, {"workflow": "paper"}, 400)["error"]["code"] == "bad_workflow"
    assert call(server, "GET", settings)["settings"]["runner"] == "chat"
    assert call(server, "GET", path)["workflow"] == "rfc"


def test_missing_workflow_hint_says_how_to_start(server: RunningServer) -> None:
    path = f"/v1/conversations/{server.begin('plain')}/workflow"
    for method, rest, body in (
        ("GET", "/data", None),
        ("GET", "/export", None),
        ("PATCH", "/data", {"fields": FIELDS}),
        ("POST", "/submit", None),
        ("POST", "/approve", {}),
        ("POST", "/rewind", {"stage": "problem"}),
    ):
        error = call(server, method, f"{path}{rest}", body, 400)["error"]
        assert (error["code"], "POST …/workflow" in error["hint"]) == ("bad_workflow", True), rest


@pytest.mark.parametrize(
    ("name", "status"),
    [("novel", 404), ("../rfc", 422), ("/etc/hosts.toml", 422), ("rfc.toml", 422), ("", 422), ("rfc\n", 422)],
)
def test_workflow_is_found_by_name_only(server: RunningServer, name: str, status: int) -> None:
    key = server.begin(f"by-{len(name)}-{status}")
    error = call(server, "POST", f"/v1/conversations/{key}/workflow", {"workflow": name}, status)["error"]
    assert all(error[part] for part in ("code", "message", "hint"))
    assert call(server, "GET", f"/v1/conversations/{key}/settings")["settings"].get("runner") != "staged"


def test_invalid_workflow_file_is_reported_without_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thesis.toml").write_text("lamella = 1\nname = 'thesis'\nstages = 7\n")
    monkeypatch.setenv("LAMELLA_WORKFLOW_FOLDER", str(tmp_path))
    with running("memory:", ScriptedProvider()) as server:
        listed = {one["name"]: one["broken"] for one in call(server, "GET", "/v1/workflows")["workflows"]}
        assert (listed["thesis"], listed["rfc"]) == (True, False)
        path = f"/v1/conversations/{server.begin('mine')}/workflow"
        error = call(server, "POST", path, {"workflow": "thesis"}, 400)["error"]
        assert (error["code"], str(tmp_path) in str(error)) == ("bad_workflow", False)


def test_stage_cannot_change_while_turn_runs() -> None:
    provider = PausingProvider()
    with running("memory:", provider) as server:
        path = begin(server, "busy")
        asks = threading.Thread(target=server.ask, args=("busy", "Desks are booked twice."))
        asks.start()
        assert provider.begun.wait(10)
        refused = call(server, "PATCH", f"{path}/data", {"fields": FIELDS}, 409)["error"]
        assert refused["code"] == "busy"
        assert call(server, "GET", path)["current"] == "problem"
        provider.may_end.set()
        asks.join(10)
        assert call(server, "PATCH", f"{path}/data", {"fields": FIELDS})["data"]


def test_workflow_routes_respect_owners_and_scopes(tmp_path: Path) -> None:
    book = AccessTokenFile(tmp_path / "tokens.json")

    def give(name: str, scope: AccessScope, owner: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {book.add(name, owner=owner, scope=scope, since='2026-11-17')}"}

    ana, ben = give("ana", AccessScope.CHAT, "ana"), give("ben", AccessScope.CHAT, "ben")
    reads = give("reader", AccessScope.READ, "ana")
    with running("memory:", ScriptedProvider(), serve={"tokens": str(book.path), "hosts": ["chats.example"]}) as server:
        ask = server.client.request
        key = ask("POST", "/v1/conversations", json={"name": "desks"}, headers=ana).json()["conversation"]
        path = f"/v1/conversations/{key}/workflow"
        assert ask("POST", path, json={"workflow": "rfc"}, headers=reads).status_code == 403
        assert ask("POST", path, json={"workflow": "rfc"}, headers=ana).status_code == 201
        assert ask("GET", path, headers=reads).status_code == 200
        assert ask("GET", path, headers=ben).status_code == 404
        assert ask("PATCH", f"{path}/data", json={"fields": FIELDS}, headers=ben).status_code == 404
        assert ask("POST", f"{path}/submit", headers=reads).status_code == 403


def test_document_with_figures_is_no_latex_or_markdown(server: RunningServer) -> None:
    path = begin(server, "figures of desks")
    call(server, "PATCH", f"{path}/data", {"fields": FIELDS})
    pixels = io.BytesIO()
    Image.new("RGB", (2, 2)).save(pixels, "PNG")
    body = {"caption": "Desks", "image": base64.b64encode(pixels.getvalue()).decode()}
    call(server, "PUT", f"{path}/exhibits/fig:desks", body)
    call(server, "POST", f"{path}/submit")
    call(server, "POST", f"{path}/approve", {})
    for kind in ("tex", "md"):
        told = call(server, "GET", f"{path}/document?format={kind}", status=400)["error"]
        assert "figures (1)" in told["message"]
        assert "docx, pdf or html" in told["hint"]
    answer = server.client.get(f"{path}/document", params={"format": "html"})
    assert answer.status_code == 200, answer.text
    assert "data:image/png;base64," in answer.text
    assert answer.headers["content-disposition"] == 'attachment; filename="figures-of-desks.html"'
