"""Running the command: in this process, as a function that gives an exit code, or as a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

from tests import preloaded
from tests.waiting import HANG_SECONDS

from lamella.cli import main

PROGRAM = "import sys; from lamella.cli import main; sys.exit(main())"
COMMAND = (sys.executable, "-c", PROGRAM)
SECONDS = HANG_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left behind."""

    exit: int
    out: str
    err: str

    def warnings(self) -> list[str]:
        """Every warning of a replay that was printed as JSON."""
        turns = json.loads(self.out)["turns"]
        return [warning for turn in turns for warning in turn["envelope"]["warnings"]]


def run(*words: str) -> Ran:
    """The command in this process, on streams that an old locale would give."""
    out, err = (TextIOWrapper(BytesIO(), encoding="ascii") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return Ran(exit=code, out=_written(out), err=_written(err))


def spawn(*words: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> Ran:
    """The command as a process; one that hangs is an error."""
    return spawn_in({**os.environ, **(environment or {})}, *words, stdin=stdin)


def spawn_in(environment: Mapping[str, str], *words: str, stdin: bytes = b"", folder: Path | None = None) -> Ran:
    """The command as a process that has this environment alone, in a folder."""
    if preloaded.is_warm(environment):
        order = preloaded.Order(program=PROGRAM, words=words, environment=environment, folder=str(folder or Path.cwd()))
        done = preloaded.run(order, stdin=stdin, seconds=SECONDS)
        return Ran(exit=done.exit, out=done.out.decode(), err=done.err.decode())
    cold = subprocess.run(
        [*COMMAND, *words],
        input=stdin,
        env=environment,
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return Ran(exit=cold.returncode, out=cold.stdout.decode(), err=cold.stderr.decode())


def replay(folder: Path, transcript: object, *options: str) -> Ran:
    """A replay, as JSON, of a transcript given as bytes or as what JSON can say."""
    file = folder / "transcript.json"
    file.write_bytes(transcript if isinstance(transcript, bytes) else json.dumps(transcript).encode())
    return run("replay", str(file), "--json", *options)


def one_turn(**fields: object) -> dict[str, object]:
    """The smallest transcript, its one turn with more fields."""
    return {"lamella": 1, "turns": [{"user": "hi", **fields}]}


def refusal(ran: Ran, *, code: str, exit_code: int = 2) -> str:
    """The message of a failure, once it is told as every failure is: two lines on stderr, one object on stdout."""
    assert ran.exit == exit_code, ran
    error, hint = ran.err.splitlines()
    assert error.startswith("error: "), ran
    assert hint.startswith("hint: "), ran
    assert len(hint) > len("hint: ")
    assert "bug in Lamella" not in hint, ran
    message = error.removeprefix("error: ")
    told = {"code": code, "message": message, "hint": hint.removeprefix("hint: ")}
    assert json.loads(ran.out) == {"lamella": 1, "error": told}
    return message


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, BytesIO)
    return buffer.getvalue().decode()
