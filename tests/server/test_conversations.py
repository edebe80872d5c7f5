"""Conversations and messages over HTTP: one server for all of these tests, each in conversations of its own."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.running import RunningServer, read_events, running

from lamella.settings.model import DEFAULT_SYSTEM
from lamella.testing import ScriptedProvider


class Echo(ScriptedProvider):
    """Says how many messages it was sent, a line for as often as it is asked."""

    def __init__(self) -> None:
        super().__init__(*[f"Answer {number}." for number in range(200)])


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running("memory:", Echo()) as one:
        yield one


def test_imported_archive_without_model_uses_default_model() -> None:
    with running("memory:", ScriptedProvider("At noon.")) as server:
        body = {"archive": "**user**: Hello\n\n**ai**: Hi.\n"}
        key = server.client.post("/v1/conversations/import", json=body).json()["conversation"]
        assert server.ask(key, "When?")["answer"] == "At noon."


def test_conversation_is_begun_listed_read_renamed_and_erased(server: RunningServer) -> None:
    key = server.begin("garden", title="Herbs")
    listed = server.client.get("/v1/conversations").json()
    assert [(one["name"], one["title"]) for one in listed["chats"] if one["conversation"] == key] == [
        ("garden", "Herbs")
    ]
    server.ask("garden", "When to sow?")
    said = server.client.get("/v1/conversations/garden").json()
    assert [turn["text"] for turn in said["turns"]] == ["When to sow?"]
    renamed = server.client.patch("/v1/conversations/garden", json={"title": "Seeds"}).json()
    assert renamed["title"] == "Seeds"
    assert server.client.delete(f"/v1/conversations/{key}").json()["erased"]
    gone = server.client.get("/v1/conversations/garden")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")


def test_taken_name_is_refused(server: RunningServer) -> None:
    server.begin("once")
    again = server.client.post("/v1/conversations", json={"name": "once"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "name_taken")


def test_answer_is_streamed_with_ids_and_final_event(server: RunningServer) -> None:
    key = server.begin("streamed")
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "Hello?"}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = list(read_events(answer.iter_lines()))
    assert [event.name for event in events] == ["envelope", "delta", "done"]
    assert all(event.id for event in events)
    said = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]
    assert events[0].data["message"] == said["message"] == events[-1].data["message"]
    assert events[-1].data["reply"] == said["reply"]["message"]
    assert events[1].data["text"] == said["reply"]["text"]


def test_stream_can_be_resumed_after_any_event(server: RunningServer) -> None:
    key = server.begin("followed")
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "Hello?"}) as answer:
        events = list(read_events(answer.iter_lines()))
    path = f"/v1/conversations/{key}/messages/{events[0].data['message']}/events"
    for number, event in enumerate(events):
        assert event.id is not None
        with server.client.stream("GET", path, headers={"Last-Event-ID": event.id}) as answer:
            again = list(read_events(answer.iter_lines()))
        assert [one.name for one in again] == [one.name for one in events[number + 1 :]]
    stored = next(one.id for one in events if one.id).split(".")
    stored[1] = "0"
    with server.client.stream("GET", path, params={"after": ".".join(stored)}) as answer:
        told = list(read_events(answer.iter_lines()))
    assert [one.data.get("text") for one in told if one.name == "delta"] == [events[1].data["text"]]
    assert told[-1].name == "done"


def test_id_of_another_question_is_refused(server: RunningServer) -> None:
    key = server.begin("other-id")
    message = server.ask(key, "Hello?")["message"]
    path = f"/v1/conversations/{key}/messages/{message}/events"
    wrong = server.client.get(path, headers={"Last-Event-ID": "abc.0.1.0.0"})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "bad_call")
    assert server.client.get(path, headers={"Last-Event-ID": "nonsense"}).status_code == 400


def test_question_is_edited_answered_again_and_deleted_each_on_a_branch(server: RunningServer) -> None:
    key = server.begin("branches")
    first = server.ask(key, "When to sow?")
    path = f"/v1/conversations/{key}/messages/{first['message']}"
    with server.client.stream("PUT", path, json={"text": "When to reap?"}) as answer:
        events = list(read_events(answer.iter_lines()))
    assert [event.name for event in events] == ["envelope", "delta", "done"]
    assert all(event.id and event.id.startswith(events[0].data["message"]) for event in events)
    edited = {"answer": events[1].data["text"]}
    assert edited["answer"] != first["answer"]
    again = server.client.post(f"{path}/regenerate", json={"stream": False}).json()
    assert again["message"] == first["message"]
    assert again["answer"] not in (first["answer"], edited["answer"])
    said = server.client.get(f"/v1/conversations/{key}").json()
    assert len(said["branches"]) == 3
    switched = server.client.post(f"/v1/conversations/{key}/switch", json={"head": first["reply"]}).json()
    assert switched["head"] == first["reply"]
    assert server.client.delete(path).json()["head"] == ""


def test_message_alias_works_in_path_and_body(server: RunningServer) -> None:
    key = server.begin("places")
    first = server.ask(key, "When to sow?")
    server.ask(key, "And to reap?")
    again = server.client.post(f"/v1/conversations/{key}/messages/turn:1/regenerate", json={"stream": False}).json()
    assert again["message"] == first["message"]
    switched = server.client.post(f"/v1/conversations/{key}/switch", json={"head": "reply:1"}).json()
    assert switched["head"] == again["reply"]
    assert server.client.delete(f"/v1/conversations/{key}/messages/turn:5").status_code == 404


def test_conversation_forks_into_new_one(server: RunningServer) -> None:
    key = server.begin("trunk")
    first = server.ask(key, "One?")
    server.ask(key, "Two?")
    body = {"message": first["reply"], "name": "limb"}
    forked = server.client.post(f"/v1/conversations/{key}/fork", json=body)
    assert forked.status_code == 201
    assert [turn["text"] for turn in server.client.get("/v1/conversations/limb").json()["turns"]] == ["One?"]
    missing = server.client.post(f"/v1/conversations/{key}/fork", json={"message": "nowhere"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")


def test_conversation_is_exported_erased_and_imported_again(server: RunningServer) -> None:
    key = server.begin("traveller")
    server.ask(key, "Where to?")
    archive = server.client.get(f"/v1/conversations/{key}/export").text
    transcript = server.client.get(f"/v1/conversations/{key}/export", params={"format": "transcript"}).json()
    assert [turn["user"] for turn in transcript["turns"]] == ["Where to?"]
    same = server.client.post("/v1/conversations/import", json={"archive": archive})
    assert (same.status_code, same.json()["outcome"]) == (200, "same")
    legacy = server.client.post("/v1/conversations/import", json={"archive": "**user**: Hi\n\n**ai**: Ho.\n"})
    assert (legacy.status_code, legacy.json()["outcome"]) == (201, "new")


def test_messages_are_searched(server: RunningServer) -> None:
    key = server.begin("searched")
    server.ask(key, "Where does the quetzal nest?")
    hits = server.client.get("/v1/conversations/search", params={"q": "QUETZAL"}).json()["hits"]
    assert [hit["conversation"] for hit in hits] == [key]


def test_damaged_conversation_does_not_hide_hits_in_others(tmp_path: Path) -> None:
    file = tmp_path / "chats.db"
    with running(f"sqlite:///{file}", Echo()) as server:
        damaged, whole = server.begin("damaged"), server.begin("whole")
        for key in (damaged, whole):
            server.ask(key, "Where does the quetzal nest?")
        with closing(sqlite3.connect(file)) as database, database:
            database.execute("UPDATE conversations SET version = 9 WHERE id = ?", (damaged,))
        answer = server.client.get("/v1/conversations/search", params={"q": "quetzal"})
        assert answer.status_code == 200
        assert [hit["conversation"] for hit in answer.json()["hits"]] == [whole]
        assert answer.json()["error"]["code"] == "store_damaged"


def test_conversation_settings_can_be_set_and_machine_settings_cannot(server: RunningServer) -> None:
    key = server.begin("set", settings={"temperature": 0.2})
    path = f"/v1/conversations/{key}/settings"
    assert server.client.get(path).json()["settings"]["temperature"] == 0.2
    changed = server.client.patch(path, json={"settings": {"layout": "library"}}).json()
    assert changed["settings"]["layout"] == "library"
    assert server.client.get(path).json()["settings"]["layout"] == "library"
    for name in ("instructions_file", "mcp", "store", "private_addresses", "note_writes", "secrets", "serve"):
        refused = server.client.patch(path, json={"settings": {name: "x"}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_setting"), name
    wrong = server.client.patch(path, json={"settings": {"layout": "sideways"}})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "bad_setting")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"text": 1}', b'{"text": "a", "strange": 1}', b"\xff", b"[" * 5_000]
)
def test_invalid_body_gets_json_error(server: RunningServer, body: bytes) -> None:
    key = server.begin(f"body-{abs(hash(body))}")
    answer = server.client.post(
        f"/v1/conversations/{key}/messages", content=body, headers={"content-type": "application/json"}
    )
    assert 400 <= answer.status_code < 500
    assert set(answer.json()["error"]) >= {"code", "message", "hint"}


def test_lone_surrogate_is_refused_and_stores_nothing(server: RunningServer) -> None:
    key = server.begin("halves")
    answer = server.client.post(
        f"/v1/conversations/{key}/messages",
        content=b'{"text": "\\ud800", "stream": false}',
        headers={"content-type": "application/json"},
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_text")
    assert server.client.get(f"/v1/conversations/{key}").json()["turns"] == []


def test_created_conversation_has_the_default_system_prompt_of_the_command_line() -> None:
    provider = ScriptedProvider("One.", "Two.")
    with running("memory:", provider) as server:
        server.ask(server.begin("beds"), "When to sow?")
        server.ask(server.begin("titled", title="Beds"), "When to sow?")
    for request in provider.requests:
        assert (request.messages[0].role.value, request.messages[0].text) == ("system", DEFAULT_SYSTEM)


def test_wiki_link_in_a_question_attaches_its_note(tmp_path: Path) -> None:
    (tmp_path / "garden").mkdir()
    (tmp_path / "garden" / "Beans.md").write_text("Sow in May.\n", encoding="utf-8")
    provider = ScriptedProvider("In May.", "No.")
    with running("memory:", provider, vault=tmp_path) as server:
        key = server.begin("beds")
        server.ask(key, "When are [[Beans]] sown? @garden")
        path = f"/v1/conversations/{key}/messages"
        with server.client.stream("POST", path, json={"text": "And [[Peas]]?"}) as answer:
            events = list(read_events(answer.iter_lines()))
    assert "Sow in May." in provider.requests[0].messages[-1].text
    (note,) = [event.data for event in events if event.name == "note"]
    assert "[[Peas]] is sent as plain text. No note is called Peas." in json.dumps(note)


def test_wiki_link_in_an_edited_question_attaches_its_note(tmp_path: Path) -> None:
    (tmp_path / "Beans.md").write_text("Sow in May.\n", encoding="utf-8")
    (tmp_path / "Figs.md").write_text("Plant in June.\n", encoding="utf-8")
    provider = ScriptedProvider("In May.", "In May and June.", "Both.")
    with running("memory:", provider, vault=tmp_path) as server:
        key = server.begin("beds")
        server.ask(key, "When are [[Beans]] sown?")
        path = f"/v1/conversations/{key}"
        (turn,) = server.client.get(path).json()["turns"]
        body = {"text": "And [[Beans]] with [[Figs]], not [[Peas]]?"}
        with server.client.stream("PUT", f"{path}/messages/{turn['message']}", json=body) as answer:
            events = list(read_events(answer.iter_lines()))
        (turn,) = server.client.get(path).json()["turns"]
        assert server.client.post(f"{path}/messages/{turn['message']}/regenerate", json={}).status_code == 200
    (note,) = [event.data for event in events if event.name == "note"]
    assert "[[Peas]] is sent as plain text." in json.dumps(note)
    for request in provider.requests[1:]:
        question = request.messages[-1].text
        assert (question.count("Sow in May."), question.count("Plant in June.")) == (1, 1)
