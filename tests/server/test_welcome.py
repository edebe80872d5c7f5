"""The conversation that a new user sees first."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import RunningServer, running

from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider


@pytest.fixture(params=[None, Path("examples/vault")], ids=["no vault", "vault"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningServer]:
    with running(f"sqlite:///{tmp_path}/c.db", ScriptedProvider("At seven."), vault=request.param) as one:
        yield one


def open_welcome(server: RunningServer, status: int) -> str:
    answer = server.client.post("/v1/conversations/welcome")
    assert answer.status_code == status, answer.text
    key: str = answer.json()["conversation"]
    return key


def read(server: RunningServer, path: str) -> dict[str, Any]:
    body: dict[str, Any] = server.client.get(f"/v1/conversations/{path}").json()
    return body


def test_welcome_conversation_keeps_the_prefix_at_an_edit_and_breaks_it_at_a_rule(server: RunningServer) -> None:
    key = open_welcome(server, 201)
    turns = read(server, f"{key}/strata")["turns"]
    assert [turn["prefix"]["cause"] for turn in turns] == ["first_turn", "none", "none", "system_changed", "none"]
    assert turns[3]["prefix"]["segment"] == "rules"
    edit = [piece for piece in turns[2]["pieces"] if piece["id"] == "garden-plan.md"]
    assert [(piece["form"], piece["same"]) for piece in edit] == [("full", True), ("update", False)]
    assert edit[1]["tokens"] < edit[0]["tokens"] / 2
    assert turns[2]["cache"]["same"] > turns[1]["cache"]["same"] > turns[3]["cache"]["same"]
    texts = [turn["text"] for turn in read(server, key)["turns"]]
    assert len(texts) == 5
    sent = read(server, f"{key}/turns/3")
    assert "+We water in the morning, at seven" in str(sent["messages"])
    # A question can be asked at once, and the notes are still there.
    assert server.client.post(f"/v1/conversations/{key}/preview", json={"text": "Why?"}).status_code == 200
    asked = server.ask(key, "When do we water?")
    assert (asked["answer"], asked["warnings"]) == ("At seven.", [])
    last = read(server, f"{key}/strata?from=6")["turns"][0]
    assert last["prefix"]["cause"] == "none"
    assert last["cache"]["same"] > 0.8 * last["total"]


def test_welcome_conversation_is_created_once_and_again_after_it_was_deleted(server: RunningServer) -> None:
    key = open_welcome(server, 201)
    assert open_welcome(server, 200) == key
    server.client.delete(f"/v1/conversations/{key}")
    assert open_welcome(server, 201) != key


def test_each_owner_has_a_welcome_conversation_and_readers_create_none(tmp_path: Path) -> None:
    tokens = AccessTokenFile(tmp_path / "tokens.json")

    def give(name: str, scope: AccessScope) -> dict[str, str]:
        return {"Authorization": f"Bearer {tokens.add(name, owner=name, scope=scope, since='2026-11-17')}"}

    ana, ben, eve = give("ana", AccessScope.CHAT), give("ben", AccessScope.CHAT), give("eve", AccessScope.READ)
    with running(
        "memory:", ScriptedProvider(), serve={"tokens": str(tokens.path), "hosts": ["chats.example"]}
    ) as server:
        path = "/v1/conversations/welcome"
        assert server.client.post(path).status_code == 401
        assert server.client.post(path, headers=eve).status_code == 403
        keys = {server.client.post(path, headers=headers).json()["conversation"] for headers in (ana, ben)}
        assert len(keys) == 2
        assert server.client.post(path, headers=ana).status_code == 200
