"""``--json`` on every command: stdout is one JSON value, whether it went well or not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from tests.bodies import check_body, find_body_types
from tests.contracts.repository import doc
from tests.contracts.tables import rows
from tests.journeys.running import Ran, run, spawn
from tests.server.running import running

import lamella
from lamella import Note
from lamella.cli.app import build_click_command
from lamella.memory import MemoryFileStore
from lamella.runners.code_questions import TASKS_WITH_REQUEST
from lamella.schemas.answers import OpenedChatJson, ToolResultJson
from lamella.schemas.compaction import RecallEverywhereJson
from lamella.schemas.ledger import SharedPrefixListJson
from lamella.schemas.prompts import TurnPromptJson
from lamella.server.openapi import build_body_schemas
from lamella.testing import ScriptedProvider
from lamella.wiring import open_note_writer, read_services

# Each command as it goes well, then as it fails. What is in capitals is given by the test.
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "ask": (["ask", "And now?", "--chat", "demo", "--model", "MODEL"], ["ask", "hi", "--attach", "gone.md"]),
    "attach": (["attach", "demo", "replies.json"], ["attach", "demo", "gone.md"]),
    "detach": (["detach", "demo"], ["detach", "demo", "gone.md"]),
    "drop": (["drop", "demo", "plan.md"], ["drop", "demo", "gone.md"]),
    "pin": (["pin", "demo", "plan.md", "turn:1"], ["pin", "demo", "gone.md"]),
    "unpin": (["unpin", "pinned", "turn:1"], ["unpin", "demo", "plan.md"]),
    "refresh": (["refresh", "demo"], ["refresh", "demo", "gone.md"]),
    "show": (["show", "demo"], ["show", "gone"]),
    "ledger": (["ledger", "demo"], ["ledger", "gone"]),
    "compact": (["compact", "demo", "--plan", "--to", "0.0001"], ["compact", "demo", "--plan"]),
    "recall": (["recall", "demo", "needle"], ["recall", "gone", "needle"]),
    "rules": (["rules", "demo"], ["rules", "gone"]),
    "why": (["why", "demo", "plan.md"], ["why", "gone", "plan.md"]),
    "chats list": (["chats", "list"], ["chats", "list", "--store", "nowhere:"]),
    "chats show": (["chats", "show", "demo"], ["chats", "show", "demo", "--branch", "gone"]),
    "chats export": (["chats", "export", "--all", "--to", "FOLDER"], ["chats", "export"]),
    "chats import": (["chats", "import", "ARCHIVE", "gone.md"], ["chats", "import", "gone.md"]),
    "chats fork": (["chats", "fork", "demo", "MESSAGE", "--into", "other"], ["chats", "fork", "demo", "gone"]),
    "chats edit": (["chats", "edit", "demo", "MESSAGE", "Why?"], ["chats", "edit", "demo", "gone", "Why?"]),
    "chats regenerate": (["chats", "regenerate", "demo"], ["chats", "regenerate", "demo", "gone"]),
    "chats resume": (["chats", "resume", "second"], ["chats", "resume", "demo"]),
    **{
        f"{name} {words[0]}": ([*named, *words], [*named, words[0], *bad])
        for name, named, first in (("workflow", ["workflow", "rfc"], "problem"), ("paper", ["paper"], "gagasan"))
        for words, bad in (
            (["new", f"{name} anew"], [f"{name} work"]),
            (["status", f"{name} work"], ["demo"]),
            (["data", f"{name} work", "more=this"], [f"{name} work", "nothing"]),
            (["submit", f"{name} work"], [f"{name} ready"]),
            (["approve", f"{name} ready"], [f"{name} work"]),
            (["references", f"{name} work", "Doe, J. (2020). Desks."], [f"{name} work", " "]),
            (
                ["figure", f"{name} work", "hours", "hours.csv", "--caption", "Hours"],
                [f"{name} work", "hours", "gone.png"],
            ),
            (["changes", f"{name} work"], ["demo"]),
            (["revise", f"{name} ready", "Shorter"], [f"{name} work", "Shorter"]),
            (["check", f"{name} work"], ["demo"]),
            (["rewind", f"{name} ready", first], [f"{name} work", "gone"]),
            (["export", f"{name} work", "--to", "work.md"], ["gone"]),
        )
    },
    "runners": (["runners"], ["runners", "--gone"]),
    "plugins": (["plugins"], ["plugins", "--gone"]),
    "code select": (
        ["code", "select", "NOTES", "--question", "What of beans?"],
        ["code", "select", "gone", "--question", "What?"],
    ),
    **{
        f"code {kind}": (["code", kind, "replies.json", "--model", "MODEL"], ["code", kind, "gone.py"])
        for kind in TASKS_WITH_REQUEST
        if kind != "fix"
    },
    "code fix": (["code", "fix", "--say", "TypeError: None", "--model", "MODEL"], ["code", "fix"]),
    "code analyse": (
        ["code", "analyse", "NOTES", "--question", "What of beans?", "--model", "MODEL"],
        ["code", "analyse", "gone", "--question", "What?"],
    ),
    "code state": (["code", "state", "demo"], ["code", "state", "gone"]),
    "code solve": (["code", "solve", "REQUEST", "--model", "MODEL"], ["code", "solve", "gone.json"]),
    "code filter": (["code", "filter", "REQUEST_FILES"], ["code", "filter", "gone.json"]),
    "chats remove": (["chats", "remove", "demo", "MESSAGE"], ["chats", "remove", "demo", "gone"]),
    "chats rename": (["chats", "rename", "demo", "Tides"], ["chats", "rename", "gone", "Tides"]),
    "chats search": (["chats", "search", "needle"], ["chats", "search", " "]),
    "chats delete": (["chats", "delete", "demo", "--yes"], ["chats", "delete", "demo"]),
    "search": (["search", "beans", "--vault", "NOTES"], ["search", " ", "--vault", "NOTES"]),
    "index": (["index", "--vault", "NOTES"], ["index", "--vault", "gone"]),
    "tools": (["tools", "--vault", "NOTES"], ["tools", "--vault", "gone"]),
    "restore": (["restore", "--vault", "NOTES"], ["restore", "gone.md", "--vault", "NOTES"]),
    "store migrate": (["store", "migrate"], ["store", "migrate", "--store", "nowhere:"]),
    "store stats": (["store", "stats"], ["store", "stats", "--store", "nowhere:"]),
    "store verify": (["store", "verify", "--repair"], ["store", "verify", "gone"]),
    "store copy": (["store", "copy", "--from", "STORE", "--to", "COPY"], ["store", "copy", "--from", "STORE"]),
    "memory list": (["memory", "list"], ["memory", "list", "--gone"]),
    "memory add": (["memory", "add", "Likes tea"], ["memory", "add", " "]),
    "memory remove": (["memory", "remove", "bees"], ["memory", "remove", "gone"]),
    "memory edit": (["memory", "edit", "bees", "Keeps hens"], ["memory", "edit", "gone", "Keeps hens"]),
    "memory keep": (["memory", "keep", "demo"], ["memory", "keep", "gone"]),
    "mcp list": (["mcp", "list"], ["mcp", "list", "--gone"]),
    "mcp check": (["mcp", "check"], ["mcp", "check", "gone"]),
    "replay": (["replay", "demo", "--check"], ["replay", "gone.json"]),
    "doctor": (["doctor", "LOG"], ["doctor", "gone.jsonl"]),
    "request": (["request", "demo", "--provider", "anthropic"], ["request", "demo", "--provider", "gone"]),
    "completion": (["completion", "bash"], ["completion", "tcsh"]),
    "config show": (["config", "show"], ["config", "show", "--gone"]),
    "config get": (["config", "get", "window"], ["config", "get", "gone"]),
    "config set": (["config", "set", "window", "9000", "--project"], ["config", "set", "window", "many", "--project"]),
    "config unset": (["config", "unset", "window", "--project"], ["config", "unset", "gone", "--project"]),
    "config edit": (["config", "edit", "--project"], ["config", "edit", "--gone"]),
    "config path": (["config", "path"], ["config", "path", "--gone"]),
    "workflow list": (["workflow", "list"], ["workflow", "list", "--gone"]),
    "tokens list": (["tokens", "list"], ["tokens", "list", "--gone"]),
    "tokens add": (["tokens", "add", "laptop"], ["tokens", "add", "No name"]),
    "tokens remove": (["tokens", "remove", "phone"], ["tokens", "remove", "gone"]),
    "trust list": (["trust", "list"], ["trust", "list", "--gone"]),
    "trust add": (["trust", "add", "model", "anthropic"], ["trust", "add", "gone", "anthropic"]),
    "trust remove": (["trust", "remove", "model", "openai"], ["trust", "remove", "model", "gemini"]),
}


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), build_click_command())]
    while waiting:
        words, command = waiting.pop()
        inner = getattr(command, "commands", {})
        waiting += [((*words, name), one) for name, one in inner.items()]
        if not inner:
            yield " ".join(words), command


# The body of each command's output as docs/reference/json-output.md names it.
DOCUMENTED = {
    cells[0].strip("`"): re.findall(r"\w+", cells[2])[0]
    for cells in rows(doc("reference/json-output.md"), under="Commands and bodies")
}
BODIES = find_body_types()
# Bodies that the tables of commands and routes do not name: lines of a chat, and the output of some options.
OTHER_BODIES = (OpenedChatJson, ToolResultJson, RecallEverywhereJson, SharedPrefixListJson, TurnPromptJson)
CHAT_LINES: dict[str, type[Struct]] = {
    "opened": OpenedChatJson,
    "delta": BODIES["DeltaEventJson"],
    "call": BODIES["ToolCallJson"],
    "result": ToolResultJson,
    "done": BODIES["TurnAnswerJson"],
    "error": BODIES["ErrorJson"],
}
# What reads stdin needs one of its own.
READS_STDIN = {"ask", *(f"code {kind}" for kind in TASKS_WITH_REQUEST)}
# An answer that comes piece by piece is told as lines: tests of its own look at those.
STREAMED = {"chat"}
# They never end, and what they tell they tell over a protocol: tests/server and tests of the integrations look at that.
ENDLESS = {"serve", "acp", "mcp serve"}
# Its result is a file.
WITHOUT_DATA = {"skill install"}
# Groups of commands about work in stages, each with a workflow.
WORKED = {"workflow": "rfc", "paper": "paper"}


def test_every_command_accepts_json() -> None:
    known = {name: command for name, command in leaves() if name not in ENDLESS | WITHOUT_DATA}
    assert [name for name, command in known.items() if not any("--json" in one.opts for one in command.params)] == []
    assert set(known) - STREAMED == set(COMMANDS)


def begin_work(url: str, command: str, workflow: str) -> None:
    """Work whose first stage has all that it has to have, and work that waits for approval."""
    with lamella.open(url) as engine:
        for name in ("work", "ready"):
            conversation = engine.chat(f"{command} {name}")
            stage = conversation.start_workflow(workflow).stages[0]
            conversation.write_stage(dict.fromkeys(stage.required, "given"))
        conversation.submit_stage()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A conversation that was compacted, and what commands are given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    monkeypatch.setenv("LAMELLA_STORE", url)
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setenv("LAMELLA_MEMORY_FOLDER", str(tmp_path / "memory"))
    MemoryFileStore(tmp_path / "memory").add("Keeps bees")
    replies = tmp_path / "replies.json"
    replies.write_text(json.dumps(["Yes.", "No."]), encoding="utf-8")
    model = f"scripted:{replies}"
    with lamella.open(url, model=model) as engine:
        conversation = engine.chat("demo")
        asked = conversation.ask("needle", attach=[Note(path="plan.md", text="# Plan\n" + "Beans. " * 900)])
        conversation.reply("needle " * 500)
        for number in range(3):
            conversation.ask(f"Question {number}?")
            conversation.reply(f"Answer {number}. " * 50)
        engine.chat("second").ask("Hello?")
        pinned = engine.chat("pinned")
        pinned.ask("Hello?")
        pinned.reply("Hello.")
        pinned.pin("turn:1")
        message = asked.envelope.message_id
    (tmp_path / "archives").mkdir()
    (tmp_path / "hours.csv").write_text("cups,hours\n0,7.9\n", encoding="utf-8")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("Beans.", encoding="utf-8")
    monkeypatch.setenv("LAMELLA_INDEX_FOLDER", str(tmp_path / "indexes"))
    writer = open_note_writer(tmp_path / "notes", read_services())
    writer.write(writer.plan_write("beans.md", "Sow in May.\n"))
    ran = run("chats", "export", "second", "--to", str(tmp_path / "archives"))
    assert run("tokens", "add", "phone").exit == 0
    assert run("trust", "add", "model", "openai").exit == 0
    assert run("trust", "add", "model", model).exit == 0
    requests = {"solve": {"prompt": "Why?"}, "filter": {"question": "Who?", "codebase": {"a.py": "x = 1\n"}}}
    for name, body in requests.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    logged = {"request": {"model": "gpt-5", "messages": [{"role": "user", "content": "Why?"}]}}
    (tmp_path / "log.jsonl").write_text(json.dumps(logged), encoding="utf-8")
    return {
        "LOG": str(tmp_path / "log.jsonl"),
        "REQUEST": str(tmp_path / "solve.json"),
        "REQUEST_FILES": str(tmp_path / "filter.json"),
        "ARCHIVE": ran.out.strip(),
        "COPY": f"sqlite:///{tmp_path / 'copy.db'}",
        "FOLDER": str(tmp_path / "to"),
        "MESSAGE": message,
        "MODEL": model,
        "NOTES": str(tmp_path / "notes"),
        "STORE": url,
    }


def read(ran: Ran) -> dict[str, Any]:
    value = json.loads(ran.out)
    assert isinstance(value, dict), ran
    assert value["lamella"] == 1, ran
    return value


@pytest.mark.parametrize("command", COMMANDS)
def test_stdout_is_one_value_and_an_error_one_of_the_same_shape(command: str, given: dict[str, str]) -> None:
    good, bad = COMMANDS[command]
    group = command.partition(" ")[0]
    if group in WORKED:
        begin_work(given["STORE"], group, WORKED[group])
    run_it = spawn if command in READS_STDIN else run
    ran = run_it(*(given.get(word, word) for word in bad), "--json")
    assert set(read(ran)) == {"lamella", "error"}, ran
    assert set(read(ran)["error"]) == {"code", "message", "hint"}
    assert ran.exit in (1, 2)
    ran = run_it(*(given.get(word, word) for word in good), "--json")
    assert "error" not in read(ran), ran
    check_output(BODIES[DOCUMENTED[_documented_name(command)]], read(ran))


def check_output(kind: type[Struct], value: dict[str, Any]) -> None:
    """Check a command's output: a body, with the version that every output has."""
    version = {} if "lamella" in kind.__struct_fields__ else {"lamella": 1}
    assert value.items() >= version.items()
    check_body(kind, {name: one for name, one in value.items() if name not in version})


def _documented_name(command: str) -> str:
    """Return the row of a command: `paper` has those of `workflow`, and tasks that of `code analyse`."""
    task = command.removeprefix("code ")
    return "code analyse" if task in TASKS_WITH_REQUEST and task != "fix" else command.replace("paper ", "workflow ")


def test_options_print_the_bodies_that_the_reference_names(given: dict[str, str]) -> None:
    everywhere = read(run("recall", "--all", "needle", "--json"))
    assert everywhere["hits"]
    check_output(RecallEverywhereJson, everywhere)
    check_output(SharedPrefixListJson, read(run("ledger", "--prefixes", "--json")))
    check_output(TurnPromptJson, read(spawn("ask", "And now?", "--chat", "demo", "--preview", "--json")))
    check_output(BODIES["ForkedConversationJson"], read(run("chats", "fork", "demo", given["MESSAGE"], "--json")))
    check_output(
        BODIES["CodeSelectionJson"],
        read(run("code", "select", given["NOTES"], "--question", "beans?", "--explain", "--json")),
    )
    imported = read(run("chats", "import", given["ARCHIVE"], "gone.md", "--json"))
    assert imported["failed"]
    check_output(BODIES["ImportResultsJson"], imported)


def test_every_body_is_the_output_of_a_command_or_a_route() -> None:
    with running("memory:", ScriptedProvider()) as server:
        described = set(server.client.get("/openapi.json").json()["components"]["schemas"])
    printed = build_body_schemas([*(BODIES[name] for name in DOCUMENTED.values()), *OTHER_BODIES])
    assert set(BODIES) - described - set(printed) == set()


def test_every_command_has_fields_in_reference() -> None:
    tasks = {f"code {kind}" for kind in TASKS_WITH_REQUEST if kind != "fix"}
    assert {name for name in COMMANDS if not name.startswith("paper")} - tasks == set(DOCUMENTED)


def test_json_names_key_and_name_of_changed_conversation(given: dict[str, str]) -> None:
    renamed = read(run("chats", "rename", "demo", "Tides", "--json"))
    assert renamed == {"lamella": 1, "conversation": renamed["conversation"], "name": "demo", "title": "Tides"}
    shown = read(run("chats", "show", "Tides", "--json"))
    assert (shown["conversation"], shown["title"], len(shown["turns"])) == (renamed["conversation"], "Tides", 4)
    assert shown["turns"][0]["attached"] == ["plan.md"]
    assert shown["branches"] == [shown["head"]]
    found = read(run("chats", "search", "question 1", "--json"))["hits"]
    assert [(hit["name"], hit["role"]) for hit in found] == [("demo", "user")]
    assert read(run("chats", "search", "nowhere said", "--json"))["hits"] == []
    into = read(run("chats", "fork", "demo", given["MESSAGE"], "--into", "other", "--json"))
    assert into["forked"] == {"conversation": renamed["conversation"], "name": "demo", "message": given["MESSAGE"]}
    assert read(run("chats", "edit", "demo", given["MESSAGE"], "Why?", "--json"))["answer"] == "Yes."
    assert read(run("store", "verify", "--json")) == {"lamella": 1, "verified": True, "damages": [], "repaired": []}


def test_json_lists_outcome_of_each_file(given: dict[str, str]) -> None:
    ran = run("chats", "import", given["ARCHIVE"], "gone.md", "--json")
    told = read(ran)
    assert ran.exit == 2
    assert [(one["file"], one["outcome"], one["name"]) for one in told["done"]] == [
        (given["ARCHIVE"], "same", "second")
    ]
    assert [(one["item"], one["error"]["code"]) for one in told["failed"]] == [("gone.md", "source_missing")]
    exported = read(run("chats", "export", "--all", "--to", given["FOLDER"], "--json"))
    assert {one["name"] for one in exported["done"]} == {"demo", "pinned", "second"}
    assert all(Path(one["file"]).is_file() for one in exported["done"])
    copied = read(run("store", "copy", "--from", given["STORE"], "--to", given["COPY"], "--json"))
    assert {(one["name"], one["outcome"]) for one in copied["conversations"]} == {
        (name, "new") for name in ("demo", "pinned", "second")
    }


def test_chat_json_prints_events_on_stdout_and_rest_on_stderr(given: dict[str, str], home: dict[str, str]) -> None:
    typed = b"First?\n/ledger\n/help\n/gone\n/new other\nSecond?\nThird?\n"
    ran = spawn("chat", "talk", "--model", given["MODEL"], "--json", stdin=typed, environment=home)
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert {line["lamella"] for line in lines} == {1}
    for line in lines:
        check_output(CHAT_LINES[line["event"]], {name: one for name, one in line.items() if name != "event"})
    assert [line["event"] for line in lines] == ["opened", "delta", "done", "error", "opened", "delta", "done", "error"]
    assert (lines[0]["name"], lines[0]["model"], lines[0]["turns"]) == ("talk", given["MODEL"], 0)
    assert (lines[1]["text"], lines[2]["answer"], lines[2]["conversation"]) == (
        "Yes.",
        "Yes.",
        lines[0]["conversation"],
    )
    assert lines[3]["error"]["message"] == "Unknown command: /gone"
    assert (lines[4]["name"], lines[6]["answer"]) == ("other", "No.")
    assert set(lines[7]["error"]) == {"code", "message", "hint"}
    assert "/help" in ran.err
    assert ran.exit == 1


def test_chat_that_cannot_be_opened_is_one_error(given: dict[str, str]) -> None:
    ran = spawn("chat", "talk", "--model", "scripted:gone.json", "--json", stdin=b"First?\n")
    assert set(read(ran)) == {"lamella", "error"}
    assert given
