"""A process that begins warm does what a Python does that is started for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded
from tests.journeys.running import SECONDS

PROGRAMS = {
    "ends": "print('äöü', end='')",
    "says its code": "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)",
    "says why it ends": "import sys; sys.exit('because')",
    "is killed": "import os, signal; print('lost?'); os.kill(os.getpid(), signal.SIGKILL)",
    "is ended by a signal": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "reads": "import sys; print(sys.stdin.read().upper(), sys.argv[1:], sys.stdin.isatty())",
    "looks around": "import os, time; print(os.getcwd(), os.environ['MOOD'], 'HOME' in os.environ, time.tzname)",
    "ends with a thread": "import threading; threading.Timer(0.1, print, ['late']).start()",
    "cleans up": "import atexit; atexit.register(print, 'at the end')",
    "knows what streams are": "import sys; print(sys.stdout.encoding, sys.stderr.errors, sys.stdout.line_buffering)",
}


def run_cold(order: preloaded.Order, stdin: bytes) -> preloaded.Done:
    done = subprocess.run(
        [sys.executable, "-c", order.program, *order.words],
        input=stdin,
        env=order.environment,
        cwd=order.folder,
        capture_output=True,
        check=False,
    )
    return preloaded.Done(exit=done.returncode, out=done.stdout, err=done.stderr)


def make_order(program: str, folder: Path, *words: str) -> preloaded.Order:
    at_start = {name: value for name, value in os.environ.items() if name.startswith(preloaded.AT_START)}
    environment = {**at_start, "PATH": os.environ["PATH"], "MOOD": "glad", "TZ": "Asia/Tokyo"}
    return preloaded.Order(program=program, words=words, environment=environment, folder=str(folder))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_warm_process_behaves_like_cold_one(tmp_path: Path, program: str) -> None:
    order = make_order(program, tmp_path, "one", "zwölf")
    assert preloaded.is_warm(order.environment)
    assert preloaded.run(order, stdin=b"typed", seconds=SECONDS) == run_cold(order, b"typed")


def test_program_error_is_reported_with_exit_code_1(tmp_path: Path) -> None:
    done = preloaded.run(make_order("raise ValueError('odd')", tmp_path), seconds=SECONDS)
    assert (done.exit, done.out) == (1, b"")
    assert done.err.endswith(b"ValueError: odd\n")


def test_processes_run_concurrently_with_large_output(tmp_path: Path) -> None:
    with preloaded.Writing("print(input.__name__, flush=True); import time; time.sleep(600)") as other:
        assert other.lines.readline() == "input\n"
        order = make_order("import sys; sys.stdout.write(sys.stdin.read())", tmp_path)
        assert preloaded.run(order, stdin=b"x" * 1_000_000, seconds=SECONDS).out == b"x" * 1_000_000


def test_python_startup_variables_force_cold_process() -> None:
    assert preloaded.is_warm(dict(os.environ))
    for name in ("PYTHONUTF8", "LC_ALL", "LANG"):
        assert not preloaded.is_warm({**os.environ, name: "x"})
