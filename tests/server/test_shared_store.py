"""Two servers on one PostgreSQL: the same conversation from both never interleaves and loses no turn."""

import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests import servers
from tests.server.running import PausingProvider, RunningServer, read_events, running

from lamella.core.messages import Delta, ModelRequest, StopDelta, StopReason, TextDelta
from lamella.testing import ScriptedProvider

SLOW = "At noon, as on most days."


HELD = PausingProvider(SLOW, *["At six."] * 40)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[RunningServer, RunningServer]]:
    url = servers.shared().make_store_url()
    with (
        running(url, HELD) as one,
        running(url, ScriptedProvider(*["At six."] * 40)) as other,
    ):
        yield one, other


def test_turn_running_on_one_server_is_visible_on_other(
    both: tuple[RunningServer, RunningServer],
) -> None:
    one, other = both
    key = one.begin("shared")
    begun, heard = threading.Event(), []

    def ask() -> None:
        with one.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
            for event in read_events(answer.iter_lines()):
                heard.append(event)
                begun.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert begun.wait(10)
    refused = other.client.post(f"/v1/conversations/{key}/messages", json={"text": "And?"})
    message = heard[0].data["message"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
    assert refused.json()["error"]["running"]["message"] == message
    seen = other.client.get(f"/v1/conversations/{key}").json()["running"]
    assert seen == {"message": message, "run": None}
    threading.Timer(0.5, HELD.let_go.set).start()
    with other.client.stream("GET", f"/v1/conversations/{key}/messages/{message}/events") as answer:
        told = list(read_events(answer.iter_lines()))
    thread.join()
    assert "".join(event.data["text"] for event in told if event.name == "delta") == SLOW
    assert told[-1].data["reply"] == heard[-1].data["reply"]
    assert other.ask(key, "And low tide?")["answer"] == "At six."


def test_concurrent_questions_of_two_servers_are_answered_in_turn(
    both: tuple[RunningServer, RunningServer],
) -> None:
    one, _ = both
    key = one.begin("crowded")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda n: both[n % 2].ask(key, f"Question {n}?", queue=True), range(8)))
    said = one.client.get(f"/v1/conversations/{key}").json()["turns"]
    assert sorted(turn["text"] for turn in said) == [f"Question {number}?" for number in range(8)]
    assert {turn["message"] for turn in said} == {answer["message"] for answer in answers}
    told = {answer["message"]: answer["answer"] for answer in answers}
    assert {turn["message"]: turn["reply"]["text"] for turn in said} == told
    assert all(told.values())


class WaveringProvider(ScriptedProvider):
    """Summarises the same in other words each time it is asked, and answers at length."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self.summaries = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        if "Summarise this" in request.messages[-1].text:
            self.summaries += 1
            yield TextDelta(
                text=f"- [1] The user asked something, {self._name}, once more, {'and ' * self.summaries}so on."
            )
        else:
            yield TextDelta(text="It is so. " + "because of that " * 80)
        yield StopDelta(reason=StopReason.END)


def test_plan_of_one_server_is_committed_on_other() -> None:
    url, providers = servers.shared().make_store_url(), (WaveringProvider("here"), WaveringProvider("there"))
    with running(url, providers[0]) as one, running(url, providers[1]) as other:
        # Without outlines of replies, which would make room enough.
        steps = {"steps": ["chitchat", "summary", "expendable"]}
        key = one.begin("long", settings={"window": 3_000, "reserve": 0, "layout": "in_place", "compaction": steps})
        for number in range(8):
            one.ask(key, f"What of tide {number}?")
        before = providers[0].summaries
        path = f"/v1/conversations/{key}/compactions"
        plan = one.client.post(f"{path}/plan", json={"to": 0.5}).json()["receipt"]
        assert providers[0].summaries == before + 1
        assert "summary" in [step["name"] for step in plan["steps"]]
        done = other.client.post(path, json={"to": 0.5, "receipt": plan["id"]})
        assert (done.status_code, done.json()["receipt"]["id"]) == (201, plan["id"]), done.text
        assert providers[1].summaries == 0
        turn = other.client.post(f"/v1/conversations/{key}/preview", json={"text": "And?", "whole": True}).json()
        assert "The user asked something, here" in str(turn["messages"])


def test_turn_is_stopped_by_either_server() -> None:
    url, held = servers.shared().make_store_url(), PausingProvider("At noon.", "At six.")
    with running(url, held) as one, running(url, ScriptedProvider()) as other:
        key = one.begin("stopped")
        path = f"/v1/conversations/{key}"
        with one.client.stream("POST", f"{path}/messages", json={"text": "When?"}) as answer:
            events = read_events(answer.iter_lines())
            while next(events).name != "delta":
                pass
            assert other.client.post(f"{path}/stop").json()["stopped"]
            last = list(events)[-1]
        assert (last.name, last.data["stopped"]) == ("done", True)
        said = other.client.get(path).json()
        assert (said["running"], said["turns"][0]["reply"]["text"]) == (None, "At noon.")
        assert not other.client.post(f"{path}/stop").json()["stopped"]
        held.let_go.set()
        assert one.ask(key, "And then?")["answer"] == "At six."
