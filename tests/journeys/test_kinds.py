"""``lamella code explain`` and the other tasks on the command line: asked, stored, mixed, refused."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.journeys.running import Ran, refusal, spawn

from lamella.runners.code_questions import TASK_INSTRUCTIONS, CodeTask

Code = Callable[..., Ran]
TERMINAL = "hasTerminalErrorInstructionsBeenGiven"


@pytest.fixture
def code(home: Mapping[str, str]) -> Code:
    def running(*words: str, stdin: bytes = b"") -> Ran:
        return spawn("code", *words, stdin=stdin, environment=home)

    return running


@pytest.fixture
def beds(tmp_path: Path) -> str:
    file = tmp_path / "src" / "beds.py"
    file.parent.mkdir()
    file.write_text("def water(bed):\n    bed.wet = True\n\n\ndef dig(bed):\n    bed.deep = '{}'\n", encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("kind", [CodeTask.EXPLAIN, CodeTask.FIX])
def test_code_task_prints_answer_and_sends_block_with_code(
    kind: CodeTask, code: Code, script: Callable[..., str], beds: str
) -> None:
    shown = code(kind, f"{beds}:5-6", "--preview", "--json", "--model", script("x"), stdin=b"Traceback\n")
    message = json.loads(shown.out)["messages"][-1]["content"]
    assert TASK_INSTRUCTIONS[kind].text in message
    assert "bed.deep = '{}'" in message
    assert "bed.wet" not in message
    assert "Traceback" in message
    assert message.rpartition("[User query]:\n")[2].startswith(TASK_INSTRUCTIONS[kind].request_text)
    ran = code(kind, beds, "--model", script({"text": "So it is.", "chunk": 2}), stdin=b"Traceback\n")
    assert (ran.exit, ran.out) == (0, "So it is.\n")


def test_code_tasks_questions_and_codebase_mix_in_one_conversation(
    code: Code, script: Callable[..., str], beds: str, home: Mapping[str, str]
) -> None:
    model = script("one", "two", "three", "four")
    kept = ("--chat", "garden", "--json")
    explained = json.loads(code("explain", beds, "--model", model, *kept).out)
    assert (explained["answer"], explained["chatState"]["given"]) == ("one", ["explain"])
    spawn("ask", "And why?", "--chat", "garden", environment=home)
    fixed = json.loads(code("fix", *kept, "--say", "On {Linux}.", stdin=b"error: {}\n").out)
    assert (fixed["turn"], fixed["chatState"][TERMINAL]) == (3, True)
    analysed = json.loads(code("analyse", str(Path(beds).parent), "--question", "Who digs?", *kept).out)
    assert analysed["chatState"]["given"] == ["codebase", "explain", "fix"]
    state = json.loads(code("state", "garden", "--json").out)
    assert state["chatState"] == analysed["chatState"]
    assert code("state", "garden").out == "In the prompt: codebase, explain, fix.\n"
    shown = spawn("chats", "show", "garden", environment=home).out
    assert "On {Linux}." in shown


def test_request_is_answered_without_a_server(code: Code, script: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    body = {"prompt": "why", "messages": [{"role": "pro_user", "content": "a"}], "apiKey": "sk-swordfish"}
    file.write_text(json.dumps(body))
    for words, piped in (([str(file)], b""), ([], file.read_bytes()), (["-"], file.read_bytes())):
        ran = code("solve", *words, "--model", script("so"), "--json", stdin=piped)
        found = json.loads(ran.out)
        assert (found["data"], found["ignored"]) == ("so", ["apiKey"])
        assert [one["content"] for one in found["chatHistory"]] == ["a", "why", "so"]
        assert "swordfish" not in ran.out + ran.err
    assert code("solve", str(file), "--model", script("so")).out == "so\n"


def test_code_task_with_conversation_is_stored(code: Code, script: Callable[..., str], home: Mapping[str, str]) -> None:
    model = script("one", "two")
    for prompt in "ab":
        body = json.dumps({"prompt": prompt, "conversation": "garden"}).encode()
        ran = code("solve", "--model", model, "--json", stdin=body)
    assert len(json.loads(ran.out)["chatHistory"]) == 4
    assert "garden" in spawn("chats", "list", environment=home).out


def test_filter_selects_from_posted_files(code: Code) -> None:
    body = {"codebase": {"beds.py": "def water(): ...\n", ".env": "KEY=1"}, "question": "Who waters?"}
    found = json.loads(code("filter", "--json", stdin=json.dumps(body).encode()).out)
    assert code("filter", stdin=json.dumps(body).encode()).out == found["text"]
    assert [one["path"] for one in found["data"]] == ["beds.py"]
    assert [one["path"] for one in found["left_out"]] == [".env"]


def test_selection_skips_files_already_in_conversation(
    code: Code, script: Callable[..., str], tmp_path: Path, home: Mapping[str, str]
) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    for name in ("alpha", "beta", "gamma"):
        (root / f"{name}.py").write_text(f"def {name}():\n" + "    dig('a bed')\n" * 20)
    talk = ("--chat", "garden", "--model", script("x"))
    spawn("ask", "What is it?", "--attach", str(root / "gamma.py"), *talk, environment=home)

    def choose(*words: str) -> list[str]:
        ran = code("analyse", str(root), "--question", "a bed", "--budget", "400", "--preview", "--json", *words)
        chosen = json.loads(ran.out)["envelope"]["layers"][2]["segments"]
        return [Path(one["id"]).name for one in chosen if one["kind"] == "code"]

    assert choose("--model", script("x")) == ["alpha.py"]
    assert choose("--chat", "garden") == ["gamma.py"]
    attached = code("select", str(root), "--question", "a bed", "--budget", "400", "--chat", "garden", "--json")
    assert "gamma.py" in attached.out
    assert "alpha.py" not in json.dumps(json.loads(attached.out)["waiting"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain",), "Missing code."),
        (("explain", "nowhere.py"), "nowhere.py"),
        (("fix",), "Missing error on stdin."),
        (("tests", "."), ". is a folder."),
        (("tests", ""), "name is blank"),
        (("explain", "x.py", "--store", "memory:"), "--store needs --chat."),
        (("analyse", "nowhere", "--question", "x"), "nowhere"),
        (("analyse", ".", "--question", " "), "Missing question."),
        (("filter", "nowhere.json"), "nowhere.json cannot be read"),
        (("solve", "nowhere.json"), "nowhere.json cannot be read"),
    ],
)
def test_bad_words_are_refused_with_a_hint(words: tuple[str, ...], message: str, code: Code) -> None:
    ran = code(*words)
    assert ran.exit in (1, 2)
    told = ran.err.splitlines()
    assert message in told[0]
    assert told[1].startswith("hint: ")


def test_lines_that_a_file_does_not_have_are_refused(code: Code, beds: str) -> None:
    assert "has 6 lines" in code("explain", f"{beds}:5-60").err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[]", "The request is not an object"),
        (b'{"prompt": ""}', "There is no prompt"),
        (b'{"prompt": "x", "kind": "dance"}', "no kind 'dance'"),
        (b'{"prompt": "x", "messages": [{"role": "user"}]}', "Message 1 has no content"),
        (b'{"prompt": "x", "temperature": 1}', "Nothing is called temperature"),
    ],
)
def test_bad_requests_are_refused_with_a_hint(body: bytes, message: str, code: Code) -> None:
    ran = code("solve", stdin=body)
    assert ran.exit == 2
    assert message in ran.err.splitlines()[0]
    assert ran.err.splitlines()[1].startswith("hint: ")


def test_state_of_missing_conversation_is_refused(code: Code, script: Callable[..., str], beds: str) -> None:
    code("explain", beds, "--model", script("x"), "--chat", "garden")
    assert "nobody" in refusal(code("state", "nobody", "--json"), code="bad_call")
