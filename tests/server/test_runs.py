"""Running turns: one at a time, stopped, abandoned, followed again, also after a restart of the server."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.running import PausingProvider, RunningServer, read_events, running
from tests.waiting import HANG_SECONDS, wait_until

from lamella.conversation.turn import CONTINUE_REQUEST
from lamella.errors import ContextOverflowError, ProviderOverloadedError
from lamella.testing import ScriptedProvider, ScriptedReply

SLOW = ScriptedReply(text="At noon, as on most days.", chunk_size=5, delay=0.1)


@pytest.fixture
def script() -> ScriptedProvider:
    return ScriptedProvider(SLOW, *["At six."] * 5)


@pytest.fixture
def server(script: ScriptedProvider) -> Iterator[RunningServer]:
    with running("memory:", script, serve={"grace": 0.2, "stop_seconds": 1}) as one:
        yield one


@pytest.fixture
def held() -> Iterator[PausingProvider]:
    """A model that goes on when it is told to, whatever else the machine does meanwhile."""
    one = PausingProvider(SLOW.text, *["At six."] * 5)
    yield one
    one.let_go.set()


@pytest.fixture
def waiting(held: PausingProvider) -> Iterator[RunningServer]:
    with running("memory:", held, serve={"stop_seconds": 1}) as one:
        yield one
        held.let_go.set()


def _begin_slowly(server: RunningServer, key: str, **more: object) -> "threading.Thread":
    """A turn under way: its envelope has come, and somebody follows it."""
    begun = threading.Event()

    def follow() -> None:
        body = {"text": "When?", **more}
        with server.client.stream("POST", f"/v1/conversations/{key}/messages", json=body) as answer:
            for _ in read_events(answer.iter_lines()):
                begun.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert begun.wait(60)
    return thread


def test_second_turn_is_refused_with_running_one_named(waiting: RunningServer, held: PausingProvider) -> None:
    server = waiting
    key = server.begin("one")
    thread = _begin_slowly(server, key)
    refused = server.client.post(f"/v1/conversations/{key}/messages", json={"text": "And low tide?"})
    assert refused.status_code == 409
    told = refused.json()["error"]
    assert (told["code"], told["running"]["conversation"]) == ("busy", key)
    under = server.client.get(f"/v1/conversations/{key}").json()
    assert under["running"]["message"] == told["running"]["message"] == under["turns"][0]["message"]
    plain = server.client.post(f"/v1/conversations/{key}/switch", json={"head": under["head"]})
    assert plain.status_code == 409
    assert server.client.patch(f"/v1/conversations/{key}", json={"title": "Tides"}).status_code == 200
    held.let_go.set()
    thread.join()
    said = server.client.get(f"/v1/conversations/{key}").json()
    assert [turn["reply"]["text"] for turn in said["turns"]] == [SLOW.text]


def test_queued_turn_waits_for_running_one(server: RunningServer) -> None:
    key = server.begin("two")
    thread = _begin_slowly(server, key)
    second = server.ask(key, "And low tide?", queue=True)
    thread.join()
    assert second["answer"] == "At six."
    said = server.client.get(f"/v1/conversations/{key}").json()
    assert [turn["reply"]["text"] for turn in said["turns"]] == [SLOW.text, "At six."]


def test_concurrent_questions_are_answered_one_by_one(server: RunningServer) -> None:
    key = server.begin("many")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda number: server.ask(key, f"Question {number}?", queue=True), range(4)))
    said = server.client.get(f"/v1/conversations/{key}").json()["turns"]
    assert sorted(turn["text"] for turn in said) == [f"Question {number}?" for number in range(4)]
    assert {turn["message"]: turn["reply"]["message"] for turn in said} == {
        one["message"]: one["reply"] for one in answers
    }


def test_stopped_turn_keeps_partial_answer(server: RunningServer) -> None:
    key = server.begin("stopped")
    path = f"/v1/conversations/{key}"
    with server.client.stream("POST", f"{path}/messages", json={"text": "When?"}) as answer:
        events = read_events(answer.iter_lines())
        while next(events).name != "delta":
            pass
        assert server.client.post(f"{path}/stop").json()["stopped"]
        last = list(events)[-1]
    assert (last.name, last.data["stopped"], last.data["cut"]) == ("done", True, "stopped")
    kept = server.client.get(path).json()["turns"][0]["reply"]
    assert kept["message"] == last.data["reply"]
    assert SLOW.text.startswith(kept["text"])
    assert kept["text"] != SLOW.text
    assert not server.client.post(f"{path}/stop").json()["stopped"]


def test_disconnected_client_stops_model_after_grace_period(
    server: RunningServer,
) -> None:
    key = server.begin("left")
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
        events = read_events(answer.iter_lines())
        while next(events).name != "delta":
            pass

    def get_turn() -> dict[str, Any]:
        turn: dict[str, Any] = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]
        return turn

    wait_until(lambda: get_turn()["reply"] is not None, "the partial answer is stored")
    turn = get_turn()
    assert turn["reply"]["cut"] == "interrupted"
    assert SLOW.text.startswith(turn["reply"]["text"])
    assert turn["reply"]["text"] != SLOW.text


def test_client_returning_within_grace_period_gets_the_rest(server: RunningServer) -> None:
    key = server.begin("back")
    with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
        events = read_events(answer.iter_lines())
        first = next(events)
        heard = next(events)
    assert heard.id is not None
    path = f"/v1/conversations/{key}/messages/{first.data['message']}/events"
    with server.client.stream("GET", path, headers={"Last-Event-ID": heard.id}) as answer:
        rest = list(read_events(answer.iter_lines()))
    said = [event.data["text"] for event in (heard, *rest) if event.name == "delta"]
    assert "".join(said) == SLOW.text
    assert (rest[-1].name, rest[-1].data["stopped"]) == ("done", False)
    kept = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["reply"]
    assert rest[-1].data["reply"] == kept["message"]


def test_stalled_client_is_dropped_and_whole_answer_is_stored() -> None:
    long = ScriptedReply(text="At noon, as on most days. " * 80_000, chunk_size=20_000)
    with running("memory:", ScriptedProvider(long), serve={"unread_seconds": 0.3}) as server:
        key = server.begin("unread")
        url = httpx2.URL(server.url)
        body = b'{"text": "When?"}'
        head = (
            f"POST /v1/conversations/{key}/messages HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
        )
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.settimeout(HANG_SECONDS)
            client.connect((url.host, url.port))
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            # The line of metrics for a request is there once its connection is over.
            done = (
                'lamella_requests_total{method="POST",route="/v1/conversations/{conversation}/messages",status="200"}'
            )
            while done not in server.client.get("/metrics").text:
                threading.Event().wait(0.05)
            heard = b""
            while part := _read_some(client):
                heard += part
        assert heard.startswith(b"HTTP/1.1 200")
        assert b"event: done" not in heard
        said = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]
        assert said["reply"]["text"] == long.text


def _read_some(client: socket.socket) -> bytes:
    """What the system had taken before the connection was given up; nothing at its end, however that is told."""
    try:
        return client.recv(100_000)
    except ConnectionResetError:
        return b""


def test_early_error_sets_status_and_late_error_is_last_event() -> None:
    broken = ScriptedReply(text="At n", error=ProviderOverloadedError("Too much to do.", hint="Wait."))
    with running("memory:", ScriptedProvider(broken)) as server:
        key = server.begin("errors", settings={"window": 300, "reserve": 50})
        large = server.client.post(f"/v1/conversations/{key}/messages", json={"text": "word " * 2_000})
        assert (large.status_code, large.json()["error"]["code"]) == (413, "budget_exceeded")
        with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
            events = list(read_events(answer.iter_lines()))
        assert [event.name for event in events] == ["envelope", "delta", "error"]
        assert events[-1].data["error"]["code"] == "overloaded"
        kept = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["reply"]
        assert kept["text"] == "At n"


def test_context_overflow_of_the_provider_is_413_with_code_and_hint() -> None:
    too_long = ScriptedReply(error=ContextOverflowError("The model takes 8,000 tokens.", hint="Attach less."))
    with running("memory:", ScriptedProvider(*[too_long] * 4)) as server:
        key = server.begin("large")
        body = {"text": "When?", "stream": False}
        answer = server.client.post(f"/v1/conversations/{key}/messages", json=body)
        assert answer.status_code == 413
        assert answer.json()["error"] == {
            "code": "context_overflow",
            "message": "The model takes 8,000 tokens.",
            "hint": "Attach less.",
        }


def test_stopped_server_keeps_partial_answer_and_next_server_replays_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    script = ScriptedProvider(ScriptedReply(text="At noon, as on most days.", chunk_size=5, delay=0.3))
    with running(store, script, serve={"stop_seconds": 0}) as server:
        key = server.begin("tides")
        stream = server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"})
        answer = stream.__enter__()
        events = read_events(answer.iter_lines())
        first, heard = next(events), next(events)
    assert heard.id is not None
    with running(store, ScriptedProvider()) as server:
        kept = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["reply"]["text"]
        assert kept.startswith(heard.data["text"])
        path = f"/v1/conversations/{key}/messages/{first.data['message']}/events"
        with server.client.stream("GET", path, headers={"Last-Event-ID": heard.id}) as answer:
            rest = list(read_events(answer.iter_lines()))
        told = [event.data["text"] for event in (heard, *rest) if event.name == "delta"]
        assert "".join(told) == kept
        assert (rest[-1].name, rest[-1].data["stopped"]) == ("done", True)


def test_answer_cut_by_shutdown_is_marked_and_resumable(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    script = ScriptedProvider(ScriptedReply(text="At noon, as on most days.", chunk_size=5, delay=0.3))
    with running(store, script, serve={"stop_seconds": 0}) as server:
        key = server.begin("tides")
        stream = server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"})
        events = read_events(stream.__enter__().iter_lines())
        message = next(events).data["message"]
        next(events)
    with running(store, ScriptedProvider("as on most days.")) as server:
        reply = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["reply"]
        assert reply["cut"] == "interrupted"
        with server.client.stream("GET", f"/v1/conversations/{key}/messages/{message}/events") as answer:
            last = list(read_events(answer.iter_lines()))[-1]
        assert (last.name, last.data["stopped"], last.data["cut"]) == ("done", True, "interrupted")
        with server.client.stream("POST", f"/v1/conversations/{key}/resume", json={}) as answer:
            continued = list(read_events(answer.iter_lines()))
        assert [event.name for event in continued] == ["envelope", "delta", "done"]
        assert (continued[-1].data["stopped"], continued[-1].data["cut"]) == (False, None)
        turns = server.client.get(f"/v1/conversations/{key}").json()["turns"]
        assert [turn["text"] for turn in turns] == ["When?", CONTINUE_REQUEST]
        assert turns[1]["reply"]["text"] == "as on most days."
        again = server.client.post(f"/v1/conversations/{key}/resume", json={})
        assert again.status_code == 400


def test_answer_that_broke_off_is_replayed_as_cut() -> None:
    broken = ScriptedReply(text="At n", error=ProviderOverloadedError("Too much to do.", hint="Wait."))
    with running("memory:", ScriptedProvider(broken)) as server:
        key = server.begin("broken")
        with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
            first, *_ = read_events(answer.iter_lines())
            message = first.data["message"]
        assert server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["reply"]["cut"] == "broken"
        with server.client.stream("GET", f"/v1/conversations/{key}/messages/{message}/events") as answer:
            last = list(read_events(answer.iter_lines()))[-1]
        assert (last.name, last.data["stopped"], last.data["cut"]) == ("done", True, "broken")


def test_open_question_is_reported_and_resumed_on_request(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with running(
        store, ScriptedProvider(ScriptedReply(error=ProviderOverloadedError("Too much.", hint="Wait.", wait=999.0)))
    ) as server:
        key = server.begin("open")
        with server.client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "When?"}) as answer:
            events = list(read_events(answer.iter_lines()))
        assert [event.name for event in events] == ["envelope", "error"]
        message = events[0].data["message"]
    with running(store, ScriptedProvider("At noon.")) as server:
        with server.client.stream("GET", f"/v1/conversations/{key}/messages/{message}/events") as answer:
            told = list(read_events(answer.iter_lines()))
        assert [event.data["error"]["code"] for event in told] == ["reply_broken"]
        resumed = server.client.post(f"/v1/conversations/{key}/resume", json={"stream": False}).json()
        assert (resumed["message"], resumed["answer"]) == (message, "At noon.")


def test_too_many_turns_get_503_with_retry_after(held: PausingProvider) -> None:
    with running("memory:", held, serve={"runs": 1}) as server:
        one, other = server.begin("one"), server.begin("other")
        thread = _begin_slowly(server, one)
        refused = server.client.post(f"/v1/conversations/{other}/messages", json={"text": "When?"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        assert refused.headers["retry-after"] == "5"
        held.let_go.set()
        thread.join()


def test_client_tools_are_returned_and_their_results_continue_turn() -> None:
    from lamella import ToolCall

    call = ToolCall(id="c1", name="tide_table", arguments='{"day": "today"}')
    with running("memory:", ScriptedProvider(ScriptedReply(calls=(call,)), "At noon.")) as server:
        key = server.begin("tools")
        tools = [{"name": "tide_table", "description": "Tides.", "parameters": {"type": "object"}}]
        asked = server.ask(key, "When?", tools=tools)
        assert asked["calls"] == [{"id": "c1", "name": "tide_table", "arguments": '{"day": "today"}'}]
        path = f"/v1/conversations/{key}/messages/{asked['message']}/results"
        body = {"outputs": [{"call": "c1", "output": "12:00"}], "stream": False}
        given = server.client.post(path, json=body).json()
        assert given["answer"] == "At noon."
        rounds = server.client.get(f"/v1/conversations/{key}").json()["turns"][0]["rounds"]
        assert rounds[0]["calls"][0]["output"] == "12:00"
