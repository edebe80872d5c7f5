"""The text of a model is stored when the process ends or somebody else continues the conversation."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.journeys.running import COMMAND, SECONDS, spawn
from tests.journeys.terminal import ENTER, Terminal

SLOW = {"text": "word " * 400, "chunk": 5, "delay": 0.05}
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
Words = tuple[str, ...]


@contextmanager
def running(home: Mapping[str, str], *words: str, stdin: bytes = b"") -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*COMMAND, *words],
        env={**os.environ, **home},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        process.stdin = None
        yield process


def read(process: subprocess.Popen[bytes], size: int) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(size)


def calls(home: Mapping[str, str], name: str) -> list[tuple[object, ...]]:
    turns = json.loads(spawn("ledger", name, "--json", environment=home).out)["turns"]
    return [tuple(call["stop"] for call in turn["calls"]) for turn in turns]


@SIGNALS
@pytest.mark.parametrize("command", ["ask", "chat", "regenerate"])
def test_signal_that_ends_process_keeps_partial_answer(
    home: Mapping[str, str], script: Callable[..., str], command: str, number: signal.Signals
) -> None:
    model = script(SLOW, "Two.")
    words: dict[str, Words] = {
        "ask": ("ask", "First?", "--chat", "talk", "--model", model),
        "chat": ("chat", "talk", "--model", model),
        "regenerate": ("chats", "regenerate", "talk"),
    }
    if command == "regenerate":
        spawn("ask", "First?", "--chat", "talk", "--model", script("One."), environment=home)
        script(SLOW)
    with running(home, *words[command], stdin=b"First?\nSecond?\n" if command == "chat" else b"") as process:
        assert read(process, 4) == b"word"
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + number
    assert b"Traceback" not in err
    assert b"Two." not in out, "what waits in the pipe is not sent"
    assert calls(home, "talk")[0][-1] == "stopped"
    shown = spawn("chats", "show", "talk", environment=home).out
    assert "reply: word" in shown
    assert "Second?" not in shown


def test_closed_terminal_keeps_partial_answer(home: Mapping[str, str], script: Callable[..., str]) -> None:
    with Terminal(["chat", "talk", "--model", script(SLOW)], home) as terminal:
        terminal.wait_for("tokens used")
        terminal.press("First?", ENTER)
        terminal.wait_for("word word")
        terminal.hang_up()
    assert calls(home, "talk") == [("stopped",)]


def test_process_ignoring_hangup_finishes_answer(home: Mapping[str, str], script: Callable[..., str]) -> None:
    model = script({"text": "word " * 20, "chunk": 5, "delay": 0.05})
    with subprocess.Popen(
        ["nohup", *COMMAND, "ask", "First?", "--chat", "talk", "--model", model],
        env={**os.environ, **home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert read(process, 4) == b"word"
        os.kill(process.pid, signal.SIGHUP)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert calls(home, "talk") == [("end",)]


def test_late_answer_is_stored_where_error_says(home: Mapping[str, str], script: Callable[..., str]) -> None:
    slow = script({"text": "late " * 10, "chunk": 5, "delay": 0.05})
    with running(home, "ask", "First?", "--chat", "talk", "--model", slow) as process:
        assert read(process, 4) == b"late"
        # However long the other one takes, this answer is not at its end.
        process.send_signal(signal.SIGSTOP)
        other = spawn("ask", "Second?", "--chat", "talk", "--model", script("Two."), environment=home)
        process.send_signal(signal.SIGCONT)
        assert (other.exit, other.out) == (0, "Two.\n")
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    told = err.decode()
    assert "The conversation talk went on before this answer came" in told
    command = told.rpartition("hint: `lamella ")[2].partition("`")[0]
    shown = spawn(*command.split(), environment=home)
    assert "late late late" in shown.out, told
    assert "Two." in spawn("chats", "show", "talk", environment=home).out
