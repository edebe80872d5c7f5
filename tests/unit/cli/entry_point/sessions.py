"""Command line sessions: files of commands and what they print, with times, ids and folders replaced.

``python -m tests.unit.cli.entry_point.sessions`` runs the commands again and writes what they print to the same files.
"""

import json
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from lamella.cli.entry_point import run_command_line

ROOT = Path(__file__).parents[4]
SESSIONS = sorted(Path(__file__).with_name("recorded").glob("*.txt"))
PROMPT = "$ lamella "


def read_commands(session: Path) -> list[str]:
    """The commands of a recorded session, without ``lamella``."""
    text = session.read_text(encoding="utf-8")
    return [line.removeprefix(PROMPT) for line in text.splitlines() if line.startswith(PROMPT)]


def run_session(commands: Iterable[str]) -> Iterator[str]:
    """Run commands in a new folder, and yield each with its output, its errors and its exit code.

    The folder holds a copy of ``examples/vault`` as ``vault``, two scripts for models and a transcript. A command ends
    with ``< TEXT`` if it has standard input; a backslash and n begin another line of it.
    """
    with TemporaryDirectory(prefix="lamella-session-") as name:
        folder = Path(name).resolve()
        _write_files(folder)
        with _environment(folder):
            for command in commands:
                yield f"{PROMPT}{command}\n{_run_command(command, folder)}"


def _write_files(folder: Path) -> None:
    shutil.copytree(ROOT / "examples" / "vault", folder / "vault")
    # Code selection ranks files by the time of their last change.
    for number, file in enumerate(sorted((folder / "vault").rglob("*"))):
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    usage = {"plain": 40, "read": 1_200, "write": 7, "output": 5}
    files: dict[str, object] = {
        "replies.json": ["Peas and beans.", "Garlic.", "Garlic, in October.", "Compost.", "Yes.", "No."],
        "calls.json": [
            {"text": "I search.", "calls": [{"name": "search_notes", "arguments": {"query": "index"}, "id": "1"}]},
            {"calls": [{"name": "read_note", "arguments": {"path": "nothing.md"}, "id": "2"}]},
            "An index decides.",
            "Nothing more.",
        ],
        "usage.json": [{"text": "By an index.", "usage": usage}] * 4,
        "short.json": {
            "lamella": 1,
            "turns": [{"user": "Hi"}, {"user": "Now?", "attach": [{"text": "Peas.", "title": "Beds"}]}],
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def _run_command(command: str, folder: Path) -> str:
    words, _, text = command.replace("ROOT", str(ROOT)).partition(" < ")
    streams = [TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2)]
    with TemporaryFile("w+", encoding="utf-8") as stdin, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        stdin.write(text.replace("\\n", "\n") + "\n" if text else "")
        stdin.seek(0)
        before, sys.stdin = sys.stdin, stdin
        try:
            code = run_command_line(shlex.split(words))
        finally:
            sys.stdin = before
    out, err = (_written(stream) for stream in streams)
    errors = "".join(f"! {line}\n" for line in err.splitlines())
    return _replace_varying(f"{out}{errors}[{code}]\n", folder)


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """A home folder of its own, a fixed width and UTC while a session runs."""
    home = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CONFIG", "CACHE", "DATA")}
    memory = {"LAMELLA_MEMORY_FOLDER": str(folder / "memory"), "LAMELLA_CONFIG": os.devnull}
    before, working_folder = dict(os.environ), Path.cwd()
    try:
        for name in [one for one in before if one.endswith("_API_KEY")]:
            del os.environ[name]
        os.environ.update({**home, **memory, "HOME": str(folder), "COLUMNS": "100", "TZ": "UTC"})
        time.tzset()
        os.chdir(folder)
        yield
    finally:
        os.chdir(working_folder)
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


_VARYING = (
    (re.compile(r"\blamella_[\w-]{40,}"), "lamella_TOKEN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d-[0-9a-f]{4}\b"), "NEW"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b([0-9a-f]{12,64}|(?=[a-f]*\d)[0-9a-f]{8})\b"), "ID"),
    (re.compile(r'(renderer"?:? )\d+'), r"\1N"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "N s"),
    (re.compile(r'"phases": \{[^}]*\}'), '"phases": {}'),
    (re.compile(r'("\w*(seconds|build|first|total|latency)\w*": )\d+\.\d+'), r"\1N"),
)


def _replace_varying(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    for pattern, name in _VARYING:
        text = pattern.sub(name, text)
    return text


def record() -> None:
    """Write what the commands of each session print now."""
    for session in SESSIONS:
        session.write_text("\n".join(run_session(read_commands(session))), encoding="utf-8")


if __name__ == "__main__":
    record()
