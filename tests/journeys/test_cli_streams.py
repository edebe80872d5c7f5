"""The command among other programs: pipes, closed streams, full disks, old locales, and a hand on Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.running import COMMAND, SECONDS, one_turn, refusal, spawn

OLD = {"PYTHONIOENCODING": "ascii"}
NONE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
MANY = {"lamella": 1, "window": 10**9, "turns": [{"user": f"{'word ' * 400}{number}"} for number in range(40)]}


@pytest.fixture
def good(tmp_path: Path) -> str:
    file = tmp_path / "good.json"
    file.write_text(json.dumps(one_turn(user="héllo 🙂")), encoding="utf-8")
    return str(file)


@pytest.fixture
def long(tmp_path: Path) -> str:
    """A conversation that prints more than a pipe holds."""
    file = tmp_path / "long.json"
    file.write_text(json.dumps(MANY), encoding="utf-8")
    return str(file)


def in_shell(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The command as ``lamella`` in a shell, with words as $1 and so on."""
    named = " ".join(f"'{word}'" for word in COMMAND)
    return subprocess.run(
        ["bash", "-c", f'lamella() {{ {named} "$@"; }}\n{script}', "bash", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_transcript_from_stdin_is_one_from_a_file(good: str) -> None:
    data = Path(good).read_bytes()
    assert spawn("replay", "-", "--json", stdin=data).out == spawn("replay", good, "--json").out


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{", b'{"lamella": 2, "turns": []}'])
def test_broken_transcript_from_stdin_is_refused_by_that_name(data: bytes) -> None:
    assert refusal(spawn("replay", "-", "--json", stdin=data), code="bad_transcript").startswith("stdin is ")


def test_endless_transcript_on_stdin_is_limited() -> None:
    done = in_shell("yes | lamella replay - --json; lamella replay /dev/zero --json")
    codes = [json.loads(line)["error"]["code"] for line in done.stdout.splitlines()]
    # A device is refused before any of it is read.
    assert codes == ["source_too_large", "bad_transcript"]


@pytest.mark.parametrize(
    "options", [("--json",), ("--messages",), (), ("--help",)], ids=["json", "messages", "table", "help"]
)
def test_closed_pipe_is_not_an_error(long: str, options: tuple[str, ...]) -> None:
    done = in_shell('lamella replay "$@" | head -c 3 > /dev/null; echo "${PIPESTATUS[0]}"', long, *options)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_closed_pipe_before_error_keeps_exit_code(tmp_path: Path) -> None:
    done = in_shell('lamella replay "$1" --json | true; echo "${PIPESTATUS[0]}"', str(tmp_path / "gone.json"))
    assert done.stdout == "2\n"
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", ["", "--json", "--messages"])
def test_full_disk_is_reported_as_error_not_bug(long: str, options: str) -> None:
    done = in_shell(f'lamella replay "$1" {options} > /dev/full; echo $?', long)
    assert done.stdout == "1\n"
    assert (
        done.stderr
        == "error: The operating system reported: No space left on device.\nhint: Check free space and permissions.\n"
    )


def test_unprintable_error_keeps_exit_code(tmp_path: Path) -> None:
    done = in_shell('lamella replay "$1" --json > /dev/full; echo $?', str(tmp_path / "gone.json"))
    assert done.stdout == "2\n"
    assert "cannot be read" in done.stderr
    assert len(done.stderr.splitlines()) == 2


def test_closed_streams_are_reported_or_ignored(good: str) -> None:
    script = """
    lamella replay "$1" >&-; echo "stdout $?"
    lamella replay "$1" --json >&-; echo "stdout $?"
    lamella replay - <&-; echo "stdin $?"
    lamella replay gone.json 2>&-; echo "stderr $?"
    lamella replay "$1" --json 2>&- | head -c 12; echo
    """
    done = in_shell(script, good)
    assert done.stdout.splitlines() == ["stdout 1", "stdout 1", "stdin 2", "stderr 2", '{"lamella": ']
    assert [line.partition(" ")[0] for line in done.stderr.splitlines()] == ["error:", "hint:"] * 3


@pytest.mark.parametrize("environment", [OLD, NONE], ids=["ascii", "none"])
def test_old_locale_gives_the_same_bytes(good: str, environment: dict[str, str]) -> None:
    for options in (["--json"], ["--messages"]):
        there, here = spawn("replay", good, *options, environment=environment), spawn("replay", good, *options)
        assert (there.exit, there.err) == (0, "")
        assert there.out == here.out


def test_old_locale_gives_the_same_error(tmp_path: Path) -> None:
    name = str(tmp_path / "müll 🙂.json")
    there, here = (spawn("replay", name, "--json", environment=environment) for environment in (OLD, {}))
    assert there == here
    assert "müll 🙂.json cannot be read" in refusal(here, code="bad_transcript")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_ctrl_c_ends_command_with_two_lines(options: list[str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "replay", "-", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: once it is written, the command is up and reading.
        process.stdin.write(b" " * 1_000_000)
        process.stdin.flush()
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert err.decode() == "error: Stopped.\nhint: Run the command again to start over.\n"
    error = {"code": "lamella_error", "message": "Stopped.", "hint": "Run the command again to start over."}
    told = {"lamella": 1, "error": error}
    assert [json.loads(line) for line in out.splitlines()] == ([told] if options else [])


# Ctrl-C while the command is still being imported: the first module that a face needs is told of before it is loaded.
AT_START = """
import os, signal, sys

def interrupt(event, args):
    if event == "import" and args[0] == "typer":
        os.kill(os.getpid(), signal.SIGINT)

from lamella.cli import main
sys.addaudithook(interrupt)
sys.exit(main(["--help"]))
"""


def test_ctrl_c_at_start_ends_silently() -> None:
    done = subprocess.run([sys.executable, "-c", AT_START], capture_output=True, check=False, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_entry_point_imports_nothing_slow() -> None:
    code = "import lamella.cli, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pydantic", "typer", "lamella.wiring", "lamella.cli.app"} & set(loaded)


def test_error_midway_leaves_no_partial_json(tmp_path: Path) -> None:
    turns = [{"user": "good"}, {"user": "bad", "attach": [{"kind": "note", "path": "gone.md"}]}]
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"lamella": 1, "turns": turns}), encoding="utf-8")
    message = refusal(spawn("replay", str(file), "--json"), code="source_missing")
    assert message.startswith("In turn 2: ")


def test_check_without_reader_does_not_pass(tmp_path: Path) -> None:
    turns = [{"user": f"Question {number}", "reply": "word " * 200} for number in range(60)]
    file = tmp_path / "long.json"
    file.write_text(json.dumps({"lamella": 1, "turns": turns}), encoding="utf-8")
    named = " ".join(f"'{word}'" for word in COMMAND)
    piped = f"set -o pipefail; {named} replay '{file}' --messages --check | head -1"
    assert subprocess.run(["bash", "-c", piped], capture_output=True, check=False).returncode == 1
