"""Data for the page: alternatives of messages, stop reasons, pages of turns, models, and search hits."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.running import RunningServer, running

from lamella.core.messages import StopReason, Usage
from lamella.testing import ScriptedProvider, ScriptedReply


@pytest.fixture
def server() -> Iterator[RunningServer]:
    cut = ScriptedReply(
        text="At noon at noon", stop_reason=StopReason.LOOP_DETECTED, usage=Usage(plain=7, read=3, output=4)
    )
    with running("memory:", ScriptedProvider(cut, *[f"Answer {number}." for number in range(9)])) as one:
        yield one


def read(server: RunningServer, name: str, **query: int) -> dict[str, Any]:
    answer = server.client.get(f"/v1/conversations/{name}", params={key.strip("_"): one for key, one in query.items()})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_edit_and_regenerate_make_siblings_that_switch_reaches(server: RunningServer) -> None:
    server.begin("tides")
    first = server.ask("tides", "When?")
    server.ask("tides", "Why?")
    plain = read(server, "tides")["turns"]
    assert "siblings" not in plain[0]
    assert "siblings" not in plain[0]["reply"]
    path = f"/v1/conversations/tides/messages/{first['message']}"
    edited = server.client.put(path, json={"text": "When exactly?", "stream": False}).json()
    again = server.client.post(
        f"/v1/conversations/tides/messages/{edited['message']}/regenerate", json={"stream": False}
    )
    (turn,) = read(server, "tides")["turns"]
    questions, replies = turn["siblings"], turn["reply"]["siblings"]
    assert [one["message"] for one in questions] == [first["message"], edited["message"]]
    assert [one["message"] for one in replies] == [edited["reply"], again.json()["reply"]]
    assert [one["head"] for one in replies] == [edited["reply"], again.json()["reply"]]
    # The head of the older question is the end of its branch, two turns long.
    switched = server.client.post("/v1/conversations/tides/switch", json={"head": questions[0]["head"]})
    assert switched.status_code == 200
    before = read(server, "tides")
    assert [one["text"] for one in before["turns"]] == ["When?", "Why?"]
    assert [one["message"] for one in before["turns"][0]["siblings"]] == [one["message"] for one in questions]
    assert "siblings" not in before["turns"][1]
    assert questions[1]["head"] == again.json()["reply"]


def test_reply_says_how_it_ended_and_what_it_took(server: RunningServer) -> None:
    server.begin("tides")
    server.ask("tides", "When?")
    server.ask("tides", "Why?")
    first, second = (turn["reply"] for turn in read(server, "tides")["turns"])
    assert (first["stop"], first["model"], first["cost"]) == ("circles", "scripted:tides", None)
    assert first["tokens"] == {"input": 10, "cached": 3, "output": 4}
    assert second["stop"] == "end"
    server.client.post("/v1/conversations/import", json={"archive": "**user**: Hello\n\n**ai**: Hi.\n"})
    key = server.client.get("/v1/conversations").json()["chats"][0]["conversation"]
    (turn,) = read(server, key)["turns"]
    assert (turn["reply"]["stop"], turn["reply"]["model"], turn["reply"]["tokens"]) == (None, None, None)


def test_turns_are_returned_page_by_page(server: RunningServer) -> None:
    server.begin("tides")
    for number in range(5):
        server.ask("tides", f"Question {number}?")
    whole = read(server, "tides")
    assert whole["count"] == 5
    assert [turn["turn"] for turn in whole["turns"]] == [1, 2, 3, 4, 5]
    page = read(server, "tides", from_=4, to=9)
    assert (page["count"], page["turns"]) == (5, whole["turns"][3:])
    assert read(server, "tides", to=2)["turns"] == whole["turns"][:2]
    assert read(server, "tides", to=0)["turns"] == []
    assert server.client.get("/v1/conversations/tides", params={"from": 0}).status_code == 422


def test_models_come_with_window_prices_and_abilities() -> None:
    with running("memory:", None, model="anthropic:claude-opus-5-5") as server:
        model = server.client.get("/v1/models/anthropic:claude-opus-5-5").json()
        assert model["id"] == "anthropic:claude-opus-5-5"
        assert model["window"] >= 200_000
        prices = {name: float(one) for name, one in model["prices"].items() if name != "currency"}
        assert 0 < prices["cached"] < prices["input"] < prices["output"]
        assert (model["images"], model["local"]) == (True, False)
        assert model["cache"]["minimum"] > 0
        assert server.client.get("/v1/models/lamella").json() == model
    with running("memory:", None, model="local") as server:
        model = server.client.get("/v1/models/local").json()
        assert (model["prices"], model["images"], model["local"]) == (None, False, True)
        assert model["window"] > 0


def test_search_hit_has_the_number_of_its_turn(server: RunningServer) -> None:
    server.begin("tides")
    server.ask("tides", "When?")
    second = server.ask("tides", "The quetzal?")
    server.client.put(
        f"/v1/conversations/tides/messages/{second['message']}", json={"text": "The heron?", "stream": False}
    )

    def search(words: str) -> list[tuple[str, int | None]]:
        hits = server.client.get("/v1/conversations/search", params={"q": words}).json()["hits"]
        return [(hit["excerpt"], hit["turn"]) for hit in hits]

    assert search("quetzal") == [("The quetzal?", None)]
    assert search("heron") == [("The heron?", 2)]


def test_conversation_without_workflow_has_an_empty_progress(server: RunningServer) -> None:
    server.begin("tides")
    answer = server.client.get("/v1/conversations/tides/workflow")
    assert (answer.status_code, answer.json()["workflow"], answer.json()["stages"]) == (200, None, [])
    assert answer.json()["status"] == "none"
    assert server.client.get("/v1/conversations/tides/workflow/data").status_code == 400
