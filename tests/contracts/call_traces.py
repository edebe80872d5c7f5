"""Counts what a turn passes through: each call of a function of ``src``, with the files and packages.

``python -m tests.contracts.call_traces`` prints it as JSON. It runs in a process of its own, since what another test has
already looked up would not be called again.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TypeVar

from tests.contracts.repository import ROOT

import lamella
from lamella import Conversation, Note
from lamella.testing import ScriptedProvider, ScriptedReply

PACKAGE = Path(lamella.__file__).parent
# Below these a room is the second folder, elsewhere the first.
PARENTS = ("core", "adapters", "faces")
ANSWER = ScriptedReply(text="It is a service to book desks by. " * 5)

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How long a way was: calls, the files they were in, and how often the next call was in another package.

    ``passed`` are those files, in the order in which they were first come to.
    """

    calls: int
    files: int
    changes: int
    passed: tuple[str, ...]


def package_of(path: Path) -> str:
    """The room of a file, whose path is relative to the package."""
    first, *rest = path.with_suffix("").parts
    return f"{first}/{rest[0]}" if first in PARENTS and len(rest) > 1 else first


def measure(passed: list[Path]) -> Walk:
    rooms = [package_of(path) for path in passed]
    files = tuple(dict.fromkeys(path.as_posix() for path in passed))
    changes = sum(one != other for one, other in pairwise(rooms))
    return Walk(calls=len(passed), files=len(files), changes=changes, passed=files)


@contextmanager
def follow() -> Iterator[list[Path]]:
    """The file of each function called in the block, in order. Lambdas, comprehensions and module bodies are none."""
    before = sys.getprofile()
    passed: list[Path] = []
    by_thread: dict[int, list[Path]] = {}
    _FOLLOWED[:] = [by_thread]
    sys.setprofile(_note_down)
    try:
        yield passed
    finally:
        sys.setprofile(before)
        _FOLLOWED.clear()
        # One thread after the other: which of two goes on first is no part of the way.
        passed += [path for paths in by_thread.values() for path in paths]


# Where what is called is noted down now, if anywhere: threads are told once, when they start, whom to tell.
_FOLLOWED: list[dict[int, list[Path]]] = []


def _note_down(frame: FrameType, event: str, _: object) -> None:
    code, inside = frame.f_code, f"{PACKAGE}/"
    if event == "call" and _FOLLOWED and code.co_filename.startswith(inside) and code.co_name[0] != "<":
        _FOLLOWED[0].setdefault(threading.get_ident(), []).append(Path(code.co_filename[len(inside) :]))


def walk_turns(vault: Path) -> dict[str, Walk]:
    """One send with a note, one plan of a single step, one of all steps, and one send after a plan was undone."""
    (vault / "spec.md").write_text("# Spec\n\nIt has three things: a desk, a booking, a token.\n", encoding="utf-8")
    # Most of a send is walked by workers, of which the first is there before anything is followed.
    threading.setprofile(_note_down)
    engine = lamella.open("memory:", vault=str(vault), model="scripted:walk", provider=ScriptedProvider(*[ANSWER] * 24))
    # A plan that asks a model for a summary goes the way of a send as well.
    conversation = engine.chat("walk", layout="library", summarizer="off", compaction={"steps": ["expendable"]})
    walks: dict[str, Walk] = {}

    def take(name: str, step: Callable[[], _Result]) -> _Result:
        with follow() as passed:
            result = step()
        walks[name] = measure(passed)
        return result

    _send(conversation, "Is anybody there?")
    take("send", lambda: _send(conversation, "Summarize this", Note(path="spec.md")))
    for number in range(6):
        _send(conversation, f"Tell me more about part {number} of what stands in the specification, please.")
    planned = take("plan", lambda: conversation.plan(to=0.003))
    assert planned.receipt is not None
    assert len(planned.receipt.steps) == 1
    # Down to a goal that no step reaches.
    whole = engine.chat("whole", layout="library", summarizer="off")
    _send(whole, "Summarize this", Note(path="spec.md"))
    for number in range(7):
        _send(whole, f"Tell me more about part {number} of what stands in the specification, please.")
    assert take("plan_all", lambda: whole.plan(to=0.0005)).receipt is not None
    take("commit", lambda: conversation.commit(planned))
    take("undo", conversation.undo)
    take("ask_after_undo", lambda: _send(conversation, "And now?"))
    return walks


def _send(chat: Conversation, text: str, *attached: Note) -> None:
    async def read_out() -> None:
        # Nothing is given back: a loop that ends writes what it was given, and those calls are none of a turn's.
        async for _ in chat.send(text, attach=attached):
            pass

    asyncio.run(read_out())


@cache
def walk_in_new_process() -> dict[str, Walk]:
    """What ``main`` prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAMELLA_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.contracts.call_traces"],
        cwd=ROOT,
        env={**environment, "LAMELLA_CONFIG": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: Walk(**fields) for name, fields in json.loads(done.stdout).items()}


def main() -> None:
    with TemporaryDirectory() as vault:
        walks = walk_turns(Path(vault))
    sys.stdout.write(json.dumps({name: asdict(walk) for name, walk in walks.items()}))


if __name__ == "__main__":
    main()
