"""Words that would act on a terminal, wherever they come from: shown by every command, obeyed by none."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.journeys.running import Ran, run
from tests.journeys.terminal import Terminal

import lamella
from lamella import Note, Selection, ToolResult
from lamella.cli.app import build_click_command
from lamella.runners.code_questions import TASKS_WITH_REQUEST

# Clears the screen, retitles the window, turns what follows around, rings, and ends a line for the eye only.
HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u202egnp.exe\u2066\x9b31m\rold\u2028new"
ACTING = {*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029"} - {"\n", "\t"}
ACTING |= {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
NAME = "demo\u202edrow"
# Groups that only hold others, and what needs a terminal or a model of its own: tests of their own look at those.
ELSEWHERE = {"chat", "config edit", "acp", "mcp serve"}

COMMANDS: dict[str, list[list[str]]] = {
    "ask": [
        ["ask", HOSTILE, "--preview"],
        ["ask", "hi", "--model", HOSTILE],
        ["ask", "hi", "--chat", NAME, "--preview"],
    ],
    "replay": [["replay", "TRANSCRIPT"], ["replay", "TRANSCRIPT", "--json"], ["replay", HOSTILE]],
    "request": [["request", "TRANSCRIPT", "--turn", "1"], ["request", HOSTILE, "--turn", "1"]],
    "compact": [["compact", NAME, "--plan"], ["compact", NAME], ["compact", NAME, "--undo"], ["compact", HOSTILE]],
    # By its title it would be found, and what it says goes into a pipe as it is.
    "recall": [["recall", f"no {HOSTILE}", "x"]],
    "rules": [
        ["rules", NAME, "--add", HOSTILE],
        ["rules", NAME],
        ["rules", NAME, "--remove", HOSTILE],
        ["rules", HOSTILE],
    ],
    "search": [["search", HOSTILE, "--vault", "FOLDER"], ["search", "needle", "--vault", HOSTILE]],
    "index": [["index", "--vault", "FOLDER"], ["index", "--vault", HOSTILE]],
    "tools": [["tools", "--vault", "FOLDER"], ["tools", "--vault", HOSTILE]],
    "restore": [["restore", HOSTILE, "--vault", "FOLDER"], ["restore", "--vault", HOSTILE]],
    "attach": [["attach", NAME, HOSTILE], ["attach", HOSTILE, "x.md"]],
    "detach": [["detach", NAME], ["detach", NAME, HOSTILE]],
    "drop": [["drop", NAME, f"{HOSTILE}.md"], ["drop", NAME, HOSTILE]],
    "pin": [["pin", NAME, f"{HOSTILE}.md"], ["pin", NAME, HOSTILE]],
    "unpin": [["unpin", NAME, f"{HOSTILE}.md"], ["unpin", NAME, HOSTILE]],
    "refresh": [["refresh", NAME], ["refresh", NAME, HOSTILE]],
    "show": [["show", NAME], ["show", NAME, "--json"], ["show", HOSTILE]],
    "ledger": [["ledger", NAME], ["ledger", NAME, "--json"], ["ledger", HOSTILE]],
    "why": [["why", NAME, f"{HOSTILE}.md"], ["why", NAME, HOSTILE], ["why", HOSTILE, "x"]],
    "chats list": [["chats", "list"]],
    "chats show": [["chats", "show", NAME], ["chats", "show", HOSTILE], ["chats", "show", NAME, "--branch", HOSTILE]],
    "chats export": [["chats", "export", NAME, "--to", "FOLDER"], ["chats", "export", HOSTILE, "--to", "FOLDER"]],
    "chats import": [["chats", "import", "FOLDER"], ["chats", "import", HOSTILE]],
    "chats fork": [["chats", "fork", NAME, HOSTILE], ["chats", "fork", NAME, "MESSAGE", "--into", HOSTILE]],
    "chats edit": [["chats", "edit", NAME, "MESSAGE", HOSTILE], ["chats", "edit", NAME, HOSTILE, "x"]],
    "chats regenerate": [["chats", "regenerate", NAME, HOSTILE]],
    "chats rename": [["chats", "rename", NAME, HOSTILE], ["chats", "rename", HOSTILE, "x"]],
    "chats search": [["chats", "search", "needle"], ["chats", "search", HOSTILE]],
    "chats delete": [["chats", "delete", HOSTILE, "--yes"], ["chats", "delete", NAME, "--yes"]],
    "chats resume": [["chats", "resume", NAME], ["chats", "resume", HOSTILE]],
    "runners": [["runners"]],
    "plugins": [["plugins"]],
    "doctor": [["doctor", HOSTILE]],
    "skill install": [["skill", "install", "--to", HOSTILE]],
    **{
        f"{name} {words[0]}": [[*named, *words], [*named, words[0], f"no {HOSTILE}", *words[2:]]]
        for name, named in (("workflow", ["workflow", "rfc"]), ("paper", ["paper"]))
        for words in (
            ["new", NAME],
            ["status", NAME],
            ["data", NAME, f"state={HOSTILE}"],
            ["submit", NAME],
            ["approve", NAME, "--decision", HOSTILE],
            ["rewind", NAME, HOSTILE],
            ["revise", NAME, HOSTILE],
            ["changes", NAME],
            ["check", NAME],
            ["figure", NAME, HOSTILE, HOSTILE],
            ["references", NAME, HOSTILE],
            # What was written down goes into a pipe as it is.
            ["export", f"no {HOSTILE}"],
        )
    },
    "code select": [
        ["code", "select", "FOLDER", "--question", HOSTILE, "--explain"],
        ["code", "select", HOSTILE, "--question", "x"],
    ],
    **{
        f"code {kind}": [["code", kind, HOSTILE], ["code", kind, "TRANSCRIPT", "--say", HOSTILE, "--preview"]]
        for kind in TASKS_WITH_REQUEST
    },
    "code analyse": [
        ["code", "analyse", "FOLDER", "--question", HOSTILE, "--preview"],
        ["code", "analyse", HOSTILE, "--question", "x"],
    ],
    "code state": [["code", "state", NAME], ["code", "state", HOSTILE]],
    "code solve": [["code", "solve", "REQUEST"], ["code", "solve", "TRANSCRIPT"], ["code", "solve", HOSTILE]],
    # What it chose goes into a pipe as it is.
    "code filter": [
        ["code", "filter", "TRANSCRIPT"],
        ["code", "filter", "REQUEST", "--json"],
        ["code", "filter", HOSTILE],
    ],
    "serve": [["serve", HOSTILE], ["serve", "--host", HOSTILE], ["serve", "--store", HOSTILE]],
    "tokens list": [["tokens", "list"]],
    "tokens add": [["tokens", "add", HOSTILE], ["tokens", "add", "laptop", "--owner", HOSTILE]],
    "tokens remove": [["tokens", "remove", HOSTILE]],
    "chats remove": [["chats", "remove", NAME, HOSTILE], ["chats", "remove", NAME, "MESSAGE"]],
    "trust list": [["trust", "list"]],
    "trust add": [["trust", "add", f"openai-compatible:http://127.0.0.1/{HOSTILE}#x"], ["trust", "add", HOSTILE]],
    "trust remove": [["trust", "remove", HOSTILE]],
    "memory list": [["memory", "list"]],
    "memory add": [["memory", "add", HOSTILE]],
    "memory remove": [["memory", "remove", f"no {HOSTILE}"]],
    "memory edit": [["memory", "edit", f"no {HOSTILE}", "x"]],
    "memory keep": [["memory", "keep", NAME], ["memory", "keep", f"no {HOSTILE}"]],
    "mcp list": [["mcp", "list"]],
    "mcp check": [["mcp", "check", HOSTILE]],
    "store stats": [["store", "stats"]],
    "store verify": [["store", "verify"], ["store", "verify", HOSTILE]],
    "store copy": [["store", "copy", "--to", "COPY"], ["store", "copy", "--to", HOSTILE]],
    "store migrate": [["store", "migrate"]],
    "completion": [["completion", "bash"], ["completion", HOSTILE]],
    "config show": [["config", "show"]],
    "config path": [["config", "path"]],
    "config get": [["config", "get", HOSTILE]],
    "config set": [["config", "set", HOSTILE, "x"], ["config", "set", "window", HOSTILE]],
    "config unset": [["config", "unset", HOSTILE]],
    "workflow list": [["workflow", "list"]],
}


def leaves() -> Iterator[str]:
    """Every command that does something, by its words."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), build_click_command())]
    while waiting:
        words, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [((*words, name), one) for name, one in inner.items()]
        if not inner:
            yield " ".join(words)


def test_every_command_is_covered() -> None:
    assert set(leaves()) - ELSEWHERE == set(COMMANDS)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
def message(url: str) -> str:
    """A conversation in which everybody says such words; the id of its question."""
    with lamella.open(url) as engine:
        conversation = engine.chat(NAME)
        note = Note(path=f"{HOSTILE}.md", text=f"needle {HOSTILE}")
        chosen = Selection(path=f"{HOSTILE}.md", text=HOSTILE)
        found = ToolResult(name=HOSTILE, arguments={HOSTILE: HOSTILE}, output=f"needle {HOSTILE} " * 300)
        question = conversation.ask(f"needle {HOSTILE}", attach=[note, chosen], results=[found], system=HOSTILE)
        conversation.reply(HOSTILE)
        conversation.ask(HOSTILE)
        conversation.reply(HOSTILE)
        conversation.rename(HOSTILE)
        conversation.start_workflow("rfc")
        conversation.write_stage(
            {"problem": HOSTILE, "goals": [HOSTILE], "references": [{"title": HOSTILE, "url": HOSTILE}]}
        )
        conversation.submit_stage()
        conversation.approve_stage(HOSTILE)
        return question.envelope.message_id


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_are_shown_not_executed(
    command: str, url: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMELLA_STORE", url)
    # What a model answers goes into a pipe as it is.
    (tmp_path / "replies.json").write_text(json.dumps(["Yes."] * 3))
    monkeypatch.setenv("LAMELLA_MODEL", f"scripted:{tmp_path / 'replies.json'}")
    transcript = tmp_path / "transcript.json"
    turn = {"user": HOSTILE, "system": {"base": HOSTILE}, "assistant": HOSTILE}
    transcript.write_text(json.dumps({"lamella": 1, "conversation": NAME, "model": HOSTILE, "turns": [turn, turn]}))
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"prompt": HOSTILE, "question": HOSTILE, "codebase": {f"{HOSTILE}.py": HOSTILE}}))
    folder = tmp_path / "to\u202e"
    folder.mkdir()
    given = {
        "TRANSCRIPT": str(transcript),
        "FOLDER": str(folder),
        "REQUEST": str(request),
        "MESSAGE": message,
        "COPY": f"sqlite:///{tmp_path / 'copy.db'}",
    }
    for words in COMMANDS[command]:
        ran = run(*(given.get(word, word) for word in words))
        assert ran.out + ran.err, words
        assert acting(ran) == set(), (words, ran)


def acting(ran: Ran) -> set[str]:
    return ACTING.intersection(ran.out + ran.err)


def test_recall_prints_raw_text_to_pipe_and_escaped_to_terminal(url: str, message: str) -> None:
    words = ("recall", NAME, "needle", "--store", url)
    assert message
    assert HOSTILE in run(*words).out
    with Terminal(words, {}) as terminal:
        assert terminal.wait_for_end() == 0
    assert "\\x1b[2J" in terminal.raw.replace("\r\n", "")
    assert ACTING.isdisjoint(terminal.shown)


def test_answer_is_raw_in_pipe_and_escaped_on_terminal(url: str, message: str, script: Callable[..., str]) -> None:
    words = ("chats", "edit", NAME, message, "And now?", "--store", url, "--model", script(HOSTILE))
    assert HOSTILE in run(*words).out
    with Terminal(words, {}) as terminal:
        assert terminal.wait_for_end() == 0
    assert "\\x1b[2J" in terminal.raw.replace("\r\n", "")
    # The line that says that it waits is drawn over, before the answer.
    assert ACTING.isdisjoint(terminal.shown.rpartition("\r")[2])
    assert terminal.shown.rpartition("\r")[2].startswith("x\\x1b")
