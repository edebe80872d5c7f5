"""A server that is killed under load and restarted: acknowledged answers are there, and their clients get them."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests import servers
from tests.server.processes import echo_server, start_server, wait_ready
from tests.server.running import read_events
from tests.waiting import HANG_SECONDS, wait_until
from tests.wire.openai_caching import MODEL

# More often than this nobody has to try: a server is back long before.
_TRIES = 400


class Mortal:
    """A server that is killed with all its processes, and started again over the same store."""

    def __init__(self, store: str, *options: str, model: str, home: Path) -> None:
        self._store, self._options, self._model, self._home = store, options, model, home
        self.address = ""

    def start(self) -> None:
        self._process, self.address = start_server(self._store, *self._options, model=self._model, home=self._home)
        self._log = threading.Thread(target=self._process.communicate, daemon=True)
        self._log.start()
        with httpx2.Client(base_url=self.address) as client:
            wait_ready(client)

    def end(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)
        self._process.wait(30)
        self._log.join(30)


class Talker:
    """Somebody who asks one question after the other, whatever happens to the server, and remembers what was said."""

    def __init__(self, server: Mortal, number: int, turns: int) -> None:
        self._server = server
        self.name = f"chat-{number}"
        self._questions = [f"{self.name} asks for the {turn}th time, and waits." for turn in range(turns)]
        self.acknowledged: list[tuple[str, str]] = []
        self.answered: dict[str, str] = {}
        self.lost = 0

    def talk(self) -> None:
        for question in self._questions:
            self._ask(question)

    def _ask(self, question: str) -> None:
        """Until it is answered: asked, and then followed from wherever the connection was lost."""
        message, place, heard = "", "", ""
        for _ in range(_TRIES):
            try:
                with httpx2.Client(base_url=self._server.address, timeout=HANG_SECONDS) as client:
                    self._begin(client)
                    message = message or self._find_question(client, question)
                    for event in self._listen(client, question, message, place):
                        place = event.id or place
                        heard += event.data.get("text", "") if event.name == "delta" else ""
                        if event.name == "envelope" and not message:
                            message = event.data["message"]
                            self.acknowledged.append((message, question))
                        if event.name == "done":
                            self.answered[message] = heard
                            return
            except httpx2.TransportError:
                self.lost += 1
            signal.sigtimedwait([], 0.05)
        raise AssertionError(f"{question} was never answered")

    def _begin(self, client: httpx2.Client) -> None:
        begun = client.post("/v1/conversations", json={"name": self.name})
        assert begun.status_code in (201, 409), begun.text

    def _find_question(self, client: httpx2.Client, question: str) -> str:
        """A question may be written down although nobody heard of it."""
        said = client.get(f"/v1/conversations/{self.name}").json()["turns"]
        return str(said[-1]["message"]) if said and said[-1]["text"] == question else ""

    def _listen(self, client: httpx2.Client, question: str, message: str, place: str) -> Iterator[Any]:
        path = f"/v1/conversations/{self.name}"
        if not message:
            with client.stream("POST", f"{path}/messages", json={"text": question}) as answer:
                yield from read_events(answer.iter_lines())
            return
        headers = {"Last-Event-ID": place} if place else {}
        with client.stream("GET", f"{path}/messages/{message}/events", headers=headers) as answer:
            told = list(read_events(answer.iter_lines()))
        if told[-1].name != "error":
            yield from told
            return
        # What was said of it went with the server: it is answered from the beginning.
        client.post(f"{path}/resume", json={"stream": False})


@pytest.mark.parametrize(
    ("kind", "options", "chats", "turns", "kills"),
    [
        ("sqlite", (), 5, 3, 1),
        ("postgresql", ("--workers", "2"), 5, 3, 1),
        pytest.param("sqlite", (), 60, 12, 5, marks=pytest.mark.long),
        pytest.param("postgresql", ("--workers", "2"), 60, 12, 5, marks=pytest.mark.long),
    ],
)
def test_acknowledged_answers_survive_killed_server_and_client_hears_them(
    tmp_path: Path, kind: str, options: tuple[str, ...], chats: int, turns: int, kills: int
) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}" if kind == "sqlite" else servers.shared().make_store_url()
    with echo_server() as upstream:
        model = f"openai-compatible:{upstream.url}/v1#{MODEL}"
        server = Mortal(store, *options, model=model, home=tmp_path)
        server.start()
        talkers = [Talker(server, number, turns) for number in range(chats)]
        with ThreadPoolExecutor(chats) as pool:
            talking = [pool.submit(one.talk) for one in talkers]
            for kill in range(1, kills + 1):
                _wait_for_answers(talkers, chats * turns * kill // (kills + 1))
                server.end(signal.SIGKILL)
                server.start()
            for one in talking:
                one.result(timeout=HANG_SECONDS)
        _check(server, talkers, turns)
        server.end(signal.SIGTERM)
    assert sum(one.lost for one in talkers) > 0, "nobody was there when it was killed"


def _wait_for_answers(talkers: list[Talker], many: int) -> None:
    wait_until(lambda: sum(len(one.answered) for one in talkers) >= many, f"{many} answers came")


def _check(server: Mortal, talkers: list[Talker], turns: int) -> None:
    """Each question is once, in order, with the answer that was heard and that is its own."""
    with httpx2.Client(base_url=server.address, timeout=HANG_SECONDS) as client:
        for one in talkers:
            said = client.get(f"/v1/conversations/{one.name}").json()["turns"]
            assert [turn["text"] for turn in said] == one._questions
            assert len(said) == turns
            assert dict(one.acknowledged).items() <= {turn["message"]: turn["text"] for turn in said}.items()
            for turn in said:
                assert turn["reply"]["text"] == f"You ask: {turn['text']}"
                assert one.answered[turn["message"]] == turn["reply"]["text"]
