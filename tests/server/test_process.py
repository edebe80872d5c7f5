"""The command itself: a server in a process of its own, stopped by a signal, killed, started again."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests import servers
from tests.server.processes import COMMAND, served
from tests.server.running import read_events
from tests.waiting import HANG_SECONDS
from tests.wire.openai_caching import MODEL
from tests.wire.openai_chat_server import chat_server
from tests.wire.script import Say


@pytest.mark.parametrize("end", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_acknowledged_turns_survive_restart(tmp_path: Path, end: signal.Signals) -> None:
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    with chat_server(*[Say(text="At noon.")] * 4) as upstream:
        model = f"openai-compatible:{upstream.url}/v1#{MODEL}"
        with served(store, model=model, home=tmp_path) as (client, process):
            key = client.post("/v1/conversations", json={"name": "tides"}).json()["conversation"]
            body = {"text": "When?", "stream": False}
            assert client.post(f"/v1/conversations/{key}/messages", json=body).json()["answer"] == "At noon."
            with client.stream("POST", f"/v1/conversations/{key}/messages", json={"text": "And then?"}) as answer:
                first = next(read_events(answer.iter_lines()))
                process.send_signal(end)
                process.wait(HANG_SECONDS)
        with served(store, model=model, home=tmp_path) as (client, _):
            said = client.get(f"/v1/conversations/{key}").json()["turns"]
            assert [turn["text"] for turn in said] == ["When?", "And then?"]
            assert said[1]["message"] == first.data["message"]
            path = f"/v1/conversations/{key}/messages/{first.data['message']}/events"
            with client.stream("GET", path, headers={"Last-Event-ID": first.id or ""}) as answer:
                told = list(read_events(answer.iter_lines()))
            if told[-1].name == "error":
                resumed = client.post(f"/v1/conversations/{key}/resume", json={"stream": False}).json()
                assert resumed["answer"] == "At noon."
            else:
                assert "".join(event.data.get("text", "") for event in told) == said[1]["reply"]["text"]


def test_two_workers_on_one_server_answer_as_one(tmp_path: Path) -> None:
    with chat_server(*[Say(text="At noon.")] * 9) as upstream:
        model = f"openai-compatible:{upstream.url}/v1#{MODEL}"
        url = servers.shared().make_store_url()
        with served(url, "--workers", "2", model=model, home=tmp_path) as (client, _):
            key = client.post("/v1/conversations", json={"name": "tides"}).json()["conversation"]
            for number in range(6):
                # Each on a connection of its own, which either of the two may take.
                with httpx2.Client(base_url=str(client.base_url), timeout=HANG_SECONDS) as other:
                    body = {"text": f"Question {number}?", "stream": False}
                    answer = other.post(f"/v1/conversations/{key}/messages", json=body)
                    assert answer.status_code == 200, answer.text
            assert len(client.get(f"/v1/conversations/{key}").json()["turns"]) == 6


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--workers", "2", "--store", "sqlite:///x.db"], 2, "workers need a store"),
        (["--host", "0.0.0.0"], 2, "no token was given out"),
        (["--port", "99999"], 2, "Invalid serve.port: 99999"),
        (["--store", "nowhere:x"], 2, "no kind of store"),
        (["nowhere-at-all"], 2, "nowhere-at-all"),
    ],
)
def test_server_that_cannot_start_says_why(tmp_path: Path, words: list[str], code: int, told: str) -> None:
    ended = subprocess.run(
        [*COMMAND, "serve", "--port", "0", *words],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert re.search(rf"^error: .*{re.escape(told)}", ended.stderr, re.MULTILINE), ended.stderr
    assert "hint: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_missing_server_packages_name_the_extra(tmp_path: Path) -> None:
    line = "import sys; sys.modules['fastapi'] = None; from lamella.cli import main; sys.exit(main(['serve']))"
    ended = subprocess.run(
        [sys.executable, "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=HANG_SECONDS, check=False
    )
    assert ended.returncode == 2
    assert "error: The server needs fastapi, which is not installed." in ended.stderr
    assert '.[server]"' in ended.stderr
