"""``lamella ask`` in processes of its own, as scripts meet it."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, SECONDS, Ran, refusal, spawn
from tests.wire.openai_caching import KEY, LOCAL_MODEL
from tests.wire.openai_chat_server import chat_server
from tests.wire.script import Cut, Fail, Garbage, Page, Say, Silence

Ask = Callable[..., Ran]


@pytest.fixture
def ask(home: Mapping[str, str]) -> Ask:
    def asking(*words: str, stdin: bytes = b"") -> Ran:
        return spawn("ask", *words, stdin=stdin, environment=home)

    return asking


@pytest.fixture
def note(tmp_path: Path) -> Path:
    file = tmp_path / "notes" / "plan.md"
    file.parent.mkdir()
    file.write_text("# Plan\none\ntwo\nthree\nfour\n", encoding="utf-8")
    return file


def test_answer_is_all_of_stdout_and_rest_is_on_stderr(ask: Ask, script: Callable[..., str]) -> None:
    model = script({"text": "At noon.", "chunk": 2, "usage": {"plain": 12, "read": 0, "output": 4}})
    ran = ask("When?", "--model", model)
    assert (ran.exit, ran.out) == (0, "At noon.\n")
    assert ran.err.startswith(f"{model} · 12 tokens in · 0 of them cached · 4 out · ")


def test_question_is_read_from_stdin_if_none_is_given(ask: Ask, script: Callable[..., str]) -> None:
    for words in ((), ("-",)):
        body = json.loads(ask(*words, "--model", script("Yes."), "--json", stdin=b"Is it so?\n").out)
        assert (body["answer"], body["conversation"], body["turn"]) == ("Yes.", None, 1)
        assert body["call"]["by_layer"]["L3_TURN"] == 0


def test_piped_text_beside_question_is_attached(ask: Ask, script: Callable[..., str], home: Mapping[str, str]) -> None:
    ran = ask("What is it?", "--model", script("A diff."), "--chat", "piped", stdin=b"-old\n+new\n")
    assert (ran.exit, ran.out) == (0, "A diff.\n")
    shown = spawn("chats", "show", "piped", environment=home).out
    assert "user: What is it?" in shown
    assert json.loads(spawn("chats", "list", "--json", environment=home).out)["chats"][0]["title"] == "What is it?"
    assert "+ unparsed:" in shown


def test_ask_without_conversation_stores_nothing(
    ask: Ask, script: Callable[..., str], home: Mapping[str, str], tmp_path: Path
) -> None:
    assert ask("When?", "--model", script("Now.")).exit == 0
    assert not (tmp_path / ".lamella" / "chats.db").exists()
    assert "No conversations yet" in spawn("chats", "list", environment=home).out


def test_conversation_continues_with_its_model_and_notes(
    ask: Ask, script: Callable[..., str], note: Path, home: Mapping[str, str]
) -> None:
    model = script("One.", "Two.")
    assert ask("First?", "--model", model, "--attach", str(note), "--chat", "kept", "--system", "Be terse.").exit == 0
    body = json.loads(ask("Second?", "--chat", "kept", "--json").out)
    assert (body["turn"], body["answer"], body["call"]["model"]) == (2, "One.", model)
    assert "Second?" in spawn("chats", "show", body["conversation"], environment=home).out
    assert body["call"]["by_layer"]["L1_SYSTEM"] > 0
    assert body["call"]["by_layer"]["L2_PREVIOUS"] > 0
    assert body["call"]["verdict"]["cause"] == "none"
    ledger = json.loads(spawn("ledger", "kept", "--json", environment=home).out)
    assert [len(turn["calls"]) for turn in ledger["turns"]] == [1, 1]


def test_files_folders_and_lines_are_attached_with_and_without_a_vault(
    ask: Ask, script: Callable[..., str], note: Path, home: Mapping[str, str]
) -> None:
    folder = note.parent
    code = folder / "run.py"
    code.write_text("print(1)\n", encoding="utf-8")
    loose = ("--attach", str(code), "--attach", str(folder), "--select", f"{note}:2-3")
    assert ask("Loose?", "--model", script("Yes."), "--chat", "loose", *loose).exit == 0
    shown = spawn("chats", "show", "loose", environment=home).out
    for name in (str(code), str(note), f"{note}#L2-L3"):
        assert f"+ {name}" in shown
    within = ("--vault", str(folder), "--attach", "plan.md", "--attach", str(code), "--select", "plan.md:2")
    assert ask("Within?", "--model", script("Yes."), "--chat", "within", *within).exit == 0
    shown = spawn("chats", "show", "within", environment=home).out
    for name in ("plan.md", "run.py", "plan.md#L2-L2"):
        assert f"+ {name}" in shown


def test_mentions_are_attached_alike_in_ask_and_chat(
    ask: Ask, script: Callable[..., str], tmp_path: Path, home: Mapping[str, str]
) -> None:
    vault = tmp_path / "vault"
    (vault / "beds").mkdir(parents=True)
    (vault / "plan.md").write_text("---\ntags: garden\n---\n# Costs\n12\n", encoding="utf-8")
    (vault / "beds" / "a.md").write_text("Beans. #garden\n", encoding="utf-8")
    question = "Read (@plan), @[[Plan]], @plan.md#Costs, @beds/ and @#garden, @plna.md or @#weeds to @jo."
    words = ("--model", script("Yes."), "--vault", str(vault))
    asked = ask(question, *words, "--chat", "asked")
    typed = spawn("chat", "typed", *words, stdin=f"{question}\n".encode(), environment=home)
    for name, ran in (("asked", asked), ("typed", typed)):
        assert ran.exit == 0
        assert [line for line in ran.err.splitlines() if line.startswith(("attached: ", "note: "))] == [
            "attached: plan.md · plan.md, lines 4 to 5 under Costs · beds/, 1 note · #garden, 2 notes",
            "note: @plna.md is sent as plain text. There is no file plna.md in the vault. Did you mean plan.md?",
            "note: @#weeds is sent as plain text. No note carries #weeds. "
            "Tags are those of front matter and text, in any note of the vault.",
        ]
        shown = [line.strip() for line in spawn("chats", "show", name, environment=home).out.splitlines()]
        names = [line.removeprefix("+ ") for line in shown if line.startswith("+ ")]
        assert [one.partition(":")[0] for one in names] == ["plan.md", "plan.md#L4-L5", "beds/a.md"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("?", "--attach", "gone.md"), "source_missing", "There is no file gone.md."),
        (("?", "--select", "gone.md:1-2"), "source_missing", "There is no file gone.md."),
        (("?", "--select", "plan.md"), "bad_usage", "plan.md names no lines."),
        (("", "--model", "local"), "bad_usage", "Missing question."),
        (("?", "--store", "sqlite:///x.db"), "bad_usage", "--store needs --chat."),
        (("?", "--model", "anthropic:claude-opus-5-5"), "key_refused", "There is no key for Anthropic."),
        (("?", "--model", "nobody:model"), "bad_setting", "There is no provider 'nobody'."),
        (("?", "--model", "gguf:gone.gguf"), "model_missing", "There is no file gone.gguf."),
        (("?", "--model", "openai-compatible:nowhere#x"), "bad_address", None),
        (("?", "--model", "scripted:gone.json"), "bad_setting", None),
        (("?", "--vault", "gone"), "source_missing", "There is no vault folder at gone."),
    ],
)
def test_impossible_request_fails_before_sending(ask: Ask, words: tuple[str, ...], code: str, told: str | None) -> None:
    message = refusal(ask(*words, "--json"), code=code)
    assert told is None or message == told


def test_missing_lines_error_gives_length_of_file(ask: Ask, note: Path) -> None:
    ran = ask("?", "--select", f"{note}:4-9", "--json")
    assert refusal(ran, code="bad_artifact") == f"{note} has 5 lines; 4 to 9 were asked for."


def test_input_that_is_not_text_is_refused(ask: Ask) -> None:
    assert "byte 3 is 0xff" in refusal(ask("?", "--json", stdin=b"ab\xff"), code="bad_text")


def serve_model(url: str) -> str:
    return f"openai-compatible:{url}/v1#{LOCAL_MODEL}"


def test_own_server_answers_and_key_is_not_leaked(ask: Ask, home: Mapping[str, str], tmp_path: Path) -> None:
    with chat_server(Say(text="Hello there.")) as server:
        ran = ask("Hello?", "--model", serve_model(server.url), "--chat", "house", "--json")
        assert json.loads(ran.out)["answer"] == "Hello there."
        assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in ran.out + ran.err
    assert KEY.encode() not in (tmp_path / ".lamella" / "chats.db").read_bytes()


def test_unreachable_address_is_retried_then_reported(ask: Ask) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ran = ask("Hello?", "--model", serve_model(f"http://127.0.0.1:{port}"))
    assert (ran.exit, ran.out) == (1, "")
    assert ran.err.count("Trying again in") == 3
    assert ran.err.splitlines()[-2].startswith("error: ")
    assert ran.err.splitlines()[-1].startswith("hint: ")


@pytest.mark.parametrize(
    ("act", "code", "exit_code"),
    [
        (Page(), "bad_address", 2),
        (Fail(status=401, kind="authentication_error", words="Incorrect API key"), "key_refused", 2),
        (Fail(status=404, kind="model_not_found", words="The model does not exist"), "model_missing", 2),
        (Garbage(), "reply_broken", 1),
        (Cut(), "reply_broken", 1),
    ],
    ids=["a page", "a wrong key", "no such model", "garbage", "closed midway"],
)
def test_server_error_is_reported_with_its_exit_code(
    ask: Ask, act: Page | Fail | Garbage | Cut, code: str, exit_code: int
) -> None:
    with chat_server(act) as server:
        ran = ask("Hello?", "--model", serve_model(server.url), "--json")
    assert refusal(ran, code=code, exit_code=exit_code)


def test_ctrl_c_leaves_hanging_server(home: Mapping[str, str]) -> None:
    with chat_server(Silence()) as server:
        words = ["ask", "Hello?", "--model", serve_model(server.url)]
        with subprocess.Popen(
            [*COMMAND, *words],
            env={**os.environ, **home},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert server.arrived.wait(SECONDS)
            os.kill(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
        assert server.left.wait(SECONDS)
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == "error: Stopped.\nhint: Run the command again to start over.\n"


def test_closed_pipe_stops_model_and_keeps_partial_answer(script: Callable[..., str], home: Mapping[str, str]) -> None:
    model = script({"text": "word\n" * 400, "chunk": 5, "delay": 0.01})
    named = " ".join(f"'{word}'" for word in COMMAND)
    piped = f"{named} ask 'Go on?' --model '{model}' --chat long < /dev/null | head -n 2"
    done = subprocess.run(
        ["bash", "-c", piped], env={**os.environ, **home}, capture_output=True, check=False, timeout=SECONDS
    )
    assert (done.stdout, done.stderr) == (b"word\nword\n", b"")
    ledger = json.loads(spawn("ledger", "long", "--json", environment=home).out)
    assert ledger["turns"][0]["calls"][0]["stop"] == "stopped"


def test_ctrl_c_says_how_to_find_partial_answer(script: Callable[..., str], home: Mapping[str, str]) -> None:
    model = script({"text": "word\n" * 400, "chunk": 5, "delay": 0.05})
    with subprocess.Popen(
        [*COMMAND, "ask", "Go on?", "--model", model, "--chat", "long"],
        env={**os.environ, **home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"word\n"
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert err.decode() == (
        "error: Stopped.\nhint: The partial answer is saved. Continue it with: lamella chats resume long "
        "(read it with: lamella chats show long)\n"
    )
    shown = spawn("chats", "show", "long", environment=home).out
    assert "reply: word" in shown
    assert "(cut off: stopped)" in shown
    assert "The answer was cut off; `lamella chats resume long` continues it." in shown
    script("And the rest.")
    assert spawn("chats", "resume", "long", environment=home).out == "And the rest.\n"
    assert "cut off;" not in spawn("chats", "show", "long", environment=home).out


def test_demo_model_answers_offline_and_introduces_itself(ask: Ask) -> None:
    # Long and always the same: an answer of one word would end by itself.
    ran = ask("Tell me a long story about the sea.", "--max-tokens", "4", "--set", "temperature=0", "--json")
    assert ran.exit == 0
    assert "demo model" in ran.err
    call = json.loads(ran.out)["call"]
    assert (call["model"], call["reported"]["output"], call["stop"]) == ("local", 4, "length")
