"""``lamella mcp``: servers that settings name, listed and tried; those of a project after a yes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest
from tests.journeys.running import COMMAND, Ran, refusal, spawn_in
from tests.waiting import HANG_SECONDS, wait_until

SERVER = Path(__file__).parents[1] / "faulty_tool_server.py"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(here: Path, *words: str, servers: object = None) -> Ran:
    own = {} if servers is None else {"LAMELLA_MCP": json.dumps(servers)}
    environment = {**os.environ, "XDG_CONFIG_HOME": str(here.parent / "config"), **own}
    return spawn_in(environment, *words, folder=here)


def odd(mode: str, **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": [str(SERVER), mode], **more}


def test_list_without_servers_says_so(here: Path) -> None:
    assert run(here, "mcp", "list").out.startswith("No MCP servers configured")
    assert json.loads(run(here, "mcp", "check", "--json").out) == {"lamella": 1, "servers": []}


def test_servers_are_listed_without_start_and_started_by_check(here: Path) -> None:
    servers = {"good": odd("plain", writes=True), "bad": odd("ends"), "shy": odd("plain")}
    listed = run(here, "mcp", "list", servers=servers)
    assert [line.split(":")[0] for line in listed.out.splitlines()] == ["bad", "good", "shy"]
    tried = run(here, "mcp", "check", servers=servers)
    assert tried.exit == 1
    assert "bad: The server bad could not be used" in tried.out
    assert "good: 3 tools\n  good__fail  [good]\n" in tried.out
    assert "shy: 0 tools\n  note: shy: 3 of 3 tools may change something" in tried.out
    alone = run(here, "mcp", "check", "good", "--json", servers=servers)
    body = json.loads(alone.out)["servers"]
    assert (alone.exit, [one["name"] for one in body], body[0]["error"]) == (0, ["good"], None)


def test_project_server_needs_trust_by_name(here: Path) -> None:
    command = json.dumps(sys.executable)
    args = json.dumps([str(SERVER), "plain"])
    (here / "lamella.toml").write_text(f"[mcp.theirs]\ncommand = {command}\nargs = {args}\n", encoding="utf-8")
    assert "(not trusted yet)" in run(here, "mcp", "list").out
    assert "names the MCP server theirs: " in refusal(run(here, "mcp", "check", "--json"), code="untrusted")
    assert run(here, "trust", "add", "mcp", "theirs").exit == 0
    assert "theirs: 0 tools" in run(here, "mcp", "check").out
    assert run(here, "trust", "remove", "mcp", "theirs").exit == 0
    assert run(here, "mcp", "check").exit == 2


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ({"it": {"command": "x", "env": ["KEY=secret"]}}, "'KEY' with more than the name of a variable"),
        ({"it": {}}, "neither a command nor a url"),
        ({"it": {"comand": "x"}}, "no setting mcp.it.comand"),
        ([], "mcp"),
    ],
)
def test_invalid_server_settings_are_reported(here: Path, servers: object, told: str) -> None:
    assert told in refusal(run(here, "mcp", "list", "--json", servers=servers), code="bad_setting")
    assert run(here, "config", "show", servers=servers).exit == 2


def test_unknown_server_is_reported(here: Path) -> None:
    assert "MCP server not found: gone" in refusal(run(here, "mcp", "check", "gone", "--json"), code="bad_usage")


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # One that nobody looked after yet has ended all the same.
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("mode", ["plain", "silent"])
def test_server_ends_with_program_despite_repeated_ctrl_c(here: Path, mode: str) -> None:
    """One hangs in a call, one never answers at all; both would outlive whoever started them."""
    started = here / "started"
    line = f"echo $$ > {started}.new; mv {started}.new {started}; exec {sys.executable} {SERVER} {mode}"
    servers = {"it": {"command": "sh", "args": ["-c", line], "writes": True, "seconds": 60}}
    script = here / "script.json"
    call = {"name": "it__wait", "arguments": {}}
    script.write_text(json.dumps([{"calls": [call]}, "Done."]), encoding="utf-8")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(here.parent / "config"), "LAMELLA_MCP": json.dumps(servers)}
    kept = ["--chat", "garden", "--store", f"sqlite:///{here}/chats.db"]
    words = [*COMMAND, "ask", "Hi", "--runner", "agent", "--model", f"scripted:{script}", *kept]
    with subprocess.Popen(words, env=environment, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        assert asking.stderr is not None
        wait_until(started.exists, "the server of the tools started")
        if mode == "plain":
            # What is called is told before it is called.
            while b"it__wait" not in (shown := asking.stderr.readline()):
                assert shown, "the command ended before it called the tool"
        # Once more and once more, until it is gone.
        until = monotonic() + HANG_SECONDS
        while asking.poll() is None and monotonic() < until:
            asking.send_signal(signal.SIGINT)
            sleep(0.005)
        _, told = asking.communicate(timeout=HANG_SECONDS)
    assert asking.returncode in (130, -signal.SIGINT), told
    assert (b"Continue with: lamella chats resume garden" in told) is (mode == "plain")
    assert not is_there(int(started.read_text(encoding="utf-8")))


def test_untrusted_server_does_not_block_runners_without_tools(here: Path) -> None:
    (here / "lamella.toml").write_text('[mcp.theirs]\ncommand = "theirs"\n', encoding="utf-8")
    (here / "frost.md").write_text("Frost comes in May.\n", encoding="utf-8")
    script = here.parent / "script.json"
    script.write_text('["In May [^1]."]', encoding="utf-8")
    words = ("ask", "When does frost come?", "--model", f"scripted:{script}", "--vault", ".")
    assert run(here, *words, "--runner", "vault_qa").exit == 0
    assert run(here, *words, "--runner", "chat").exit == 0
    assert "theirs" in refusal(run(here, *words, "--runner", "agent", "--json"), code="untrusted")
