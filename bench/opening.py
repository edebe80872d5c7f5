"""Opening a conversation in a process that has never seen it: ``python -m bench.opening URL CONVERSATION``.

Prints seconds as JSON: opening it and building its next turn, and building further turns once it is warm. Another
conversation is asked first, and what that left behind is collected: modules, vocabulary and prices are loaded once a
process, whatever is opened in it.
"""

import gc
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import lamella
from lamella import Conversation

WARM = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What opening a conversation and building its next turn takes, beside building that turn warm."""

    opened: float
    warm: float

    @property
    def ratio(self) -> float:
        return self.opened / self.warm


def measure_opening(url: str, conversation: str) -> Opening:
    """Open a conversation in a new process."""
    command = [sys.executable, "-m", "bench.opening", url, conversation]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return Opening(**json.loads(printed))


def ask(chat: Conversation) -> float:
    """What building the next turn takes; it is answered after that."""
    started = time.perf_counter()
    turn = chat.ask("And what follows from that?")
    taken = time.perf_counter() - started
    if not turn.messages:
        raise AssertionError("nothing was built")
    chat.reply("Nothing.")
    return taken


def main(url: str, conversation: str) -> None:
    """Measure in this process."""
    with lamella.open(url) as engine:
        ask(engine.chat("bench-first"))
        gc.collect()
        started = time.perf_counter()
        chat = engine.chat(conversation)
        opened = time.perf_counter() - started + ask(chat)
        warm = statistics.median(ask(chat) for _ in range(WARM))
    print(json.dumps({"opened": opened, "warm": warm}))


if __name__ == "__main__":
    main(*sys.argv[1:])
