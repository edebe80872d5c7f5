"""What starting the command costs beside starting Python: CPU time of fresh processes, taken in turn."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import lamella

_RUNS = 11
_START = "import sys; from lamella.cli import main; sys.exit(main({words}))"


def measure_starts(folder: Path) -> dict[str, float]:
    """``lamella --version`` and ``lamella chats list`` over a small store, each as a multiple of a bare Python."""
    url = f"sqlite:///{folder}/chats.db"
    with lamella.open(url) as engine:
        conversation = engine.chat("garden")
        conversation.ask("What is decided?")
        conversation.reply("One index.")
    environment = {**os.environ, "HOME": str(folder), "LAMELLA_CONFIG": os.devnull, "LAMELLA_STORE": url}
    bare = [sys.executable, "-c", "pass"]
    starts = {
        " ".join(words): [sys.executable, "-c", _START.format(words=words)]
        for words in (["--version"], ["chats", "list"])
    }
    # Side by side, so that whatever else the machine does falls on all of them.
    rounds = [
        {name: measure_cpu(command, environment) for name, command in {"": bare, **starts}.items()}
        for _ in range(_RUNS)
    ]
    floor = median(times[""] for times in rounds)
    return {name: median(times[name] for times in rounds) / floor for name in starts}


def measure_cpu(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Seconds of CPU, user and system, that a process takes; it must end well."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"{command} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
