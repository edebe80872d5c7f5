"""Command line sessions: files of commands and what they print, with times, ids and folders replaced.

``python -m tests.unit.cli.entry_point.sessions`` runs the commands again and writes what they print to the same files.
The sessions at a terminal are in ``terminal_sessions`` beside this module.
"""

import asyncio
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

import lamella
from lamella import Note
from lamella.cli.entry_point import run_command_line
from lamella.core.messages import CacheDiagnosis, StopReason, Usage
from lamella.errors import ProviderOverloadedError
from lamella.providers.scripted import ScriptedProvider, ScriptedReply

ROOT = Path(__file__).parents[4]
SESSIONS = sorted(Path(__file__).with_name("recorded").glob("*.txt"))
PRICED_STORE = "priced.db"
_UNSET_VARIABLES = ("COLORTERM", "FORCE_COLOR", "LAMELLA_CONFIG", "NO_COLOR")
_VARIABLES = r"(?:[A-Z_]+=(?:'[^']*'|\S*) )*"
_COMMAND = re.compile(rf"^\$ ({_VARIABLES}lamella .*)$", re.MULTILINE)


def read_session(session: Path) -> list[tuple[str, str]]:
    """The commands of a recorded session, and what each printed."""
    _, *parts = _COMMAND.split(session.read_text(encoding="utf-8"))
    return list(zip(parts[::2], parts[1::2], strict=True))


def read_commands(session: Path) -> list[str]:
    """The commands of a recorded session."""
    return [command for command, _ in read_session(session)]


def split_command(command: str) -> tuple[str, str]:
    """The variables before ``lamella``, and the words after it."""
    found = re.fullmatch(rf"({_VARIABLES})lamella (.*)", command)
    assert found is not None, command
    return found[1], found[2]


def run_session(commands: Iterable[str]) -> Iterator[str]:
    """Run commands in a new folder, and yield each with its output, its errors and its exit code.

    The folder holds a copy of ``examples/vault`` as ``vault``, scripts for models, transcripts, files of settings and
    facts about models, and ``priced.db``, a store with a conversation of known prices. A command ends with ``< TEXT`` if
    it has standard input; a backslash and n begin another line of it. Words such as ``NAME=value`` before a command set
    environment variables for it; with ``FORCE_COLOR=1`` it prints as at a terminal.
    """
    commands = list(commands)
    with open_session_folder() as folder:
        if any(PRICED_STORE in command for command in commands):
            asyncio.run(_write_priced_conversation(f"sqlite:///{PRICED_STORE}"))
            _damage_copy(Path(PRICED_STORE), Path("damaged.db"))
        for command in commands:
            yield f"$ {command}\n{_run_command(command, folder)}"


@contextmanager
def open_session_folder() -> Iterator[Path]:
    """A new folder with the files of a session, as the working folder and the home folder."""
    with TemporaryDirectory(prefix="lamella-session-") as name:
        folder = Path(name).resolve()
        _write_files(folder)
        with _environment(folder):
            yield folder


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
        "rounds.json": {
            "lamella": 1,
            "conversation": "rounds",
            "model": "anthropic:claude-opus-5-5",
            "layout": "in_place",
            "vault": "vault",
            "differing_turns": [2],
            "turns": [
                {"user": "What is planned?", "attach": [{"kind": "image", "path": "images/floor-plan.png"}]},
                {
                    "user": "And decided?",
                    "attach": [{"kind": "note", "path": "decisions/one-index.md"}],
                    "rounds": [
                        {
                            "text": "I look.",
                            "calls": [{"id": "c1", "name": "read_note", "arguments": {"path": "a.md"}}],
                            "results": [{"call": "c1", "output": "# A\nBeans."}],
                        }
                    ],
                    "reply": "Beans.",
                },
                {
                    "user": "Again?",
                    "attach": [{"kind": "note", "path": "decisions/one-index.md", "text": "# One index\nNew."}],
                },
            ],
        },
        "fix.json": [
            "I add a line.\n\nbeds.py\n<<<<<<< SEARCH\nBEDS = 2\n=======\nBEDS = 3\nPEAS = 1\n>>>>>>> REPLACE\n",
        ]
        * 3,
        "unmatched.json": ["beds.py\n<<<<<<< SEARCH\nBEDS = 9\n=======\nBEDS = 3\n>>>>>>> REPLACE\n"] * 3,
        "files.json": {"beds.py": "def wait():\n    return 1\n", "peas.py": "PEAS = 3\n"},
    }
    (folder / "code").mkdir()
    (folder / "code" / "beds.py").write_text("BEDS = 2\n", encoding="utf-8")
    (folder / "wrong.toml").write_text('layout = "nothing"\nwindow = "many"\n', encoding="utf-8")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


async def _write_priced_conversation(url: str) -> None:
    """A conversation with a hit, a miss that the provider explains, a retry, a cut answer, invalid usage and no answer."""
    note = Note(path="beds.md", text="# Beds\n" + "Beans along the fence, and peas behind them.\n" * 400)
    script = ScriptedProvider(
        ScriptedReply(text="One.", usage=Usage(plain=9, write=4_100, output=5)),
        ScriptedReply(text="Two.", usage=Usage(plain=30, read=4_109, output=5)),
        ScriptedReply(
            text="Three.",
            usage=Usage(plain=4_150, read=0, output=7),
            diagnosis=CacheDiagnosis(verdict="miss", reason="the tools changed"),
        ),
        ScriptedReply(error=ProviderOverloadedError("Busy.", hint="Wait.", wait=0)),
        ScriptedReply(text="Fo", usage=Usage(plain=20, read=4_160, output=1_024), stop_reason=StopReason.LENGTH),
        ScriptedReply(text="Five.", usage=Usage(plain=5, read=10**9, output=5)),
    )
    async with lamella.open(url, model="anthropic:claude-opus-5-5", provider=script) as engine:
        conversation = await engine.conversation("priced", layout="in_place")
        for number, word in enumerate(("What grows?", "And where?", "Why?", "Tell me all.", "More?"), start=1):
            async for _ in conversation.send(word, attach=[note] if number == 1 else []):
                pass


def _damage_copy(path: Path, copy: Path) -> None:
    """A copy of a store with a changed event."""
    shutil.copyfile(path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE events SET body = replace(body, 'And where?', 'And when?')")


def _run_command(command: str, folder: Path) -> str:
    line, _, text = command.replace("ROOT", str(ROOT)).partition(" < ")
    variables, words = split_command(line)
    with _variables(dict(one.split("=", 1) for one in shlex.split(variables))):
        return _run_words(shlex.split(words), text, folder)


def _run_words(words: list[str], text: str, folder: Path) -> str:
    streams = [TextIOWrapper(BytesIO(), encoding="utf-8") for _ in range(2)]
    with TemporaryFile("w+", encoding="utf-8") as stdin, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        stdin.write(text.replace("\\n", "\n") + "\n" if text else "")
        stdin.seek(0)
        before, sys.stdin = sys.stdin, stdin
        try:
            code = run_command_line(words)
        finally:
            sys.stdin = before
    out, err = (_written(stream) for stream in streams)
    errors = "".join(f"! {line}\n" for line in err.splitlines())
    return replace_varying(f"{out}{errors}[{code}]\n".replace("\x1b", "␛"), folder)


def _written(stream: TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """A home folder of its own, a fixed width and UTC while a session runs."""
    home = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CONFIG", "CACHE", "DATA")}
    memory = {"LAMELLA_MEMORY_FOLDER": str(folder / "memory")}
    terminal = {"COLUMNS": "100", "TERM": "xterm-256color"}
    unset = [name for name in os.environ if name.endswith("_API_KEY") or name in _UNSET_VARIABLES]
    working_folder = Path.cwd()
    with _variables({**home, **memory, **terminal, "HOME": str(folder), "TZ": "UTC"}, unset=unset):
        try:
            time.tzset()
            os.chdir(folder)
            yield
        finally:
            os.chdir(working_folder)
    time.tzset()


@contextmanager
def _variables(values: Mapping[str, str], *, unset: Iterable[str] = ()) -> Iterator[None]:
    before = dict(os.environ)
    try:
        for name in unset:
            del os.environ[name]
        os.environ.update(values)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


_VARYING = (
    (re.compile(r"\blamella_[\w-]{40,}"), "lamella_TOKEN"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d-[0-9a-f]{4}\b"), "NEW"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DATE"),
    (re.compile(r"\b([0-9a-f]{12,64}|(?=[a-f]*\d)[0-9a-f]{8})\b"), "ID"),
    (re.compile(r'(renderer"?:? )\d+'), r"\1N"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "N s"),
    (re.compile(r"(\b(?:build|first|total|latency)\w*=)\S+"), r"\1N"),
    (re.compile(r'"phases": \{[^}]*\}'), '"phases": {}'),
    (re.compile(r'("\w*(seconds|build|first|total|latency)\w*": )\d+\.\d+'), r"\1N"),
)


def replace_varying(text: str, folder: Path) -> str:
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
