"""Archiving and erasing conversations, one or many, and the names that a word may become."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import PausingProvider, RunningServer, running
from tests.server.test_live_updates import listening

from lamella.settings.tokens import AccessScope, AccessTokenFile
from lamella.testing import ScriptedProvider

PATH = "/v1/conversations"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with running(f"sqlite:///{tmp_path}/c.db", ScriptedProvider(*["At noon."] * 5)) as one:
        yield one


def list_names(server: RunningServer, headers: dict[str, str] | None = None, **query: object) -> list[str]:
    body = server.client.get(PATH, params={name: str(one) for name, one in query.items()}, headers=headers or {}).json()
    assert body["total"] == len(body["chats"])
    return sorted(one["name"] for one in body["chats"])


def test_archived_conversation_is_left_out_of_lists_and_comes_back(server: RunningServer) -> None:
    for name in ("a", "b"):
        server.begin(name)
    assert server.client.patch(f"{PATH}/a", json={"archived": True}).status_code == 200
    assert list_names(server) == ["a", "b"]
    assert list_names(server, archived=False) == ["b"]
    assert list_names(server, archived=True) == ["a"]
    marks = {one["name"]: one["archived"] for one in server.client.get(PATH).json()["chats"]}
    assert marks == {"a": True, "b": False}
    # It goes on as before.
    assert server.ask("a", "When?")["answer"] == "At noon."
    both = server.client.patch(f"{PATH}/a", json={"archived": False, "title": "Tides"})
    assert both.json()["title"] == "Tides"
    assert list_names(server, archived=False) == ["a", "b"]


@pytest.mark.parametrize("body", [{}, {"title": None}, {"archived": "x"}, {"title": "x", "more": 1}, []])
def test_bad_change_of_a_conversation_is_refused(server: RunningServer, body: object) -> None:
    server.begin("a")
    assert server.client.patch(f"{PATH}/a", json=body).status_code == 422


def test_archive_is_heard_by_other_tabs(server: RunningServer) -> None:
    key = server.begin("a")
    with listening(server) as tab:
        server.client.patch(f"{PATH}/a", json={"archived": True})
        assert tab.wait_for("conversation", conversation=key)["change"] == "changed"


def test_several_conversations_are_archived_and_erased_at_once(server: RunningServer) -> None:
    keys = {name: server.begin(name) for name in ("a", "b", "c")}
    changed = server.client.post(
        f"{PATH}/bulk", json={"action": "archive", "conversations": ["a", keys["b"], "a", "no"]}
    )
    body = changed.json()
    assert (changed.status_code, body["done"]) == (200, [keys["a"], keys["b"]])
    assert [(one["item"], one["error"]["code"]) for one in body["failed"]] == [("no", "not_found")]
    assert list_names(server, archived=True) == ["a", "b"]
    back = server.client.post(f"{PATH}/bulk", json={"action": "unarchive", "conversations": ["b"]}).json()
    assert (back["done"], back["failed"]) == ([keys["b"]], [])
    erased = server.client.post(f"{PATH}/bulk", json={"action": "erase", "conversations": ["a", "c"]}).json()
    assert erased["done"] == [keys["a"], keys["c"]]
    assert list_names(server) == ["b"]
    assert server.client.get(f"{PATH}/{keys['a']}").status_code == 404
    for bad in (
        {"action": "erase", "conversations": []},
        {"action": "burn", "conversations": ["b"]},
        {"action": "erase"},
    ):
        assert server.client.post(f"{PATH}/bulk", json=bad).status_code == 422


def test_conversation_with_a_running_turn_is_not_erased_and_the_others_are(tmp_path: Path) -> None:
    provider = PausingProvider("At noon, when the tide is high.")
    with running(f"sqlite:///{tmp_path}/c.db", provider) as server:
        keys = [server.begin(name) for name in ("a", "b")]
        with server.client.stream("POST", f"{PATH}/a/messages", json={"text": "When?"}) as answer:
            lines = answer.iter_lines()
            assert next(lines)
            body = server.client.post(f"{PATH}/bulk", json={"action": "erase", "conversations": keys}).json()
            assert (body["done"], [one["error"]["code"] for one in body["failed"]]) == ([keys[1]], ["busy"])
            provider.let_go.set()
            assert list(lines)


def test_owner_changes_only_own_conversations_and_readers_none(tmp_path: Path) -> None:
    tokens = AccessTokenFile(tmp_path / "tokens.json")

    def give(name: str, scope: AccessScope = AccessScope.CHAT) -> dict[str, str]:
        return {"Authorization": f"Bearer {tokens.add(name, owner=name, scope=scope, since='2026-11-17')}"}

    ana, ben, eve = give("ana"), give("ben"), give("eve", AccessScope.READ)
    rules = {"tokens": str(tokens.path), "hosts": ["chats.example"]}
    with running("memory:", ScriptedProvider(), serve=rules) as server:
        key = server.client.post(PATH, json={"name": "diary"}, headers=ana).json()["conversation"]
        for action in ("archive", "unarchive", "erase"):
            body = {"action": action, "conversations": [key, "diary", "~ana/diary"]}
            answer = server.client.post(f"{PATH}/bulk", json=body, headers=ben).json()
            assert (answer["done"], {one["error"]["code"] for one in answer["failed"]}) == ([], {"not_found"})
            assert server.client.post(f"{PATH}/bulk", json=body, headers=eve).status_code == 403
            assert server.client.post(f"{PATH}/bulk", json=body).status_code == 401
        assert server.client.patch(f"{PATH}/{key}", json={"archived": True}, headers=ben).status_code == 404
        assert list_names(server, ana, archived=False) == ["diary"]


def test_completion_lists_notes_folders_and_tags(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "garden" / "beds").mkdir(parents=True)
    (vault / "garden" / "beds" / "north.md").write_text("# North\n\n#garden/bed and #plants\n")
    (vault / "house.md").write_text("# House\n")
    with running("memory:", ScriptedProvider(), vault=vault) as server:

        def complete(word: str) -> tuple[list[str], list[str], list[str]]:
            body = server.client.get("/v1/notes/complete", params={"q": word}).json()
            return body["names"], body["folders"], body["tags"]

        assert complete("garden") == (["garden/beds/north.md"], ["garden/", "garden/beds/"], ["garden/bed"])
        assert complete("#plan") == ([], [], ["plants"])
        assert complete("BED")[1] == ["garden/beds/"]
        assert complete("house") == (["house.md"], [], [])
        attached = {"attach": ["garden/beds/"]}
        server.begin("a")
        assert server.client.post(f"{PATH}/a/attachments", json=attached).status_code == 200


def test_conversations_are_found_by_words_of_their_titles(server: RunningServer) -> None:
    server.begin("tides", title="High Tide in SPRING")
    server.begin("beans", title="Beans")
    found = server.client.get("/v1/conversations", params={"q": "spring tide"}).json()
    assert ([one["name"] for one in found["chats"]], found["total"]) == (["tides"], 1)
    assert server.client.get("/v1/conversations", params={"q": "nothing"}).json()["chats"] == []
