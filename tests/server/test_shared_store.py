"""Two servers on one PostgreSQL: the same conversation from both never interleaves and loses no turn."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests import servers
from tests.server.running import RunningServer, read_events, running

from lamella.testing import Line, ScriptedProvider

SLOW = Line(text="At noon, as on most days.", chunk=5, delay=0.1)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[RunningServer, RunningServer]]:
    url = servers.shared().make_store_url()
    with (
        running(url, ScriptedProvider(SLOW, *["At six."] * 40)) as one,
        running(url, ScriptedProvider(*["At six."] * 40)) as other,
    ):
        yield one, other


def test_a_turn_under_way_on_one_server_is_respected_and_followed_on_the_other(
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
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "busy")
    message = heard[0].data["message"]
    with other.client.stream("GET", f"/v1/conversations/{key}/messages/{message}/events") as answer:
        told = list(read_events(answer.iter_lines()))
    thread.join()
    assert "".join(event.data["text"] for event in told if event.name == "delta") == SLOW.text
    assert told[-1].data["reply"] == heard[-1].data["reply"]
    assert other.ask(key, "And low tide?")["answer"] == "At six."


def test_questions_from_both_at_once_are_all_answered_one_after_the_other(
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
