"""Acknowledged means durable: writers and servers are killed at random points, and no acknowledged event is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path

import pytest
from tests import servers
from tests.conformance.stores.material import say, texts
from tests.contracts.repository import ROOT

from lamella.core.log.events.kinds import EventKind
from lamella.core.text.content import hash_bytes
from lamella.ports import Store
from lamella.stores.open_store import open_store

ROUNDS = 15
BATCH = 3

# Forks a writer for each address it is given, and says when that one has ended. A writer appends batches of events with
# contents to two conversations in turn, some of them erasing a content of an earlier batch, and prints each version it
# was told before it begins the next batch.
WRITERS = r"""
import json, os, random, sys
from lamella.stores.open_store import open_store
from lamella.core.text.content import hash_bytes
from lamella.core.log.events.kinds import EventKind, EventRecord, EventBatch

def make_record(mark, part, names, kind=EventKind.MESSAGE):
    body = json.dumps({**mark, "part": part, "fill": "x" * random.choice([1, 300, 6_000])})
    return EventRecord(kind=kind, at="2026-01-01T00:00:00Z", body=body, contents=tuple(names))

def write(url, seed):
    random.seed(seed)
    store = open_store(url, timeout=30.0)
    versions = {name: len(store.load(name)) for name in ("left", "right")}
    held = {"left": [], "right": []}
    for turn in range(100_000):
        name = "left" if turn % 2 else "right"
        mark = {"seed": seed, "turn": turn}
        data = f"{seed}/{turn}/".encode() * random.choice([1, 50, 5_000])
        records = [make_record(mark, part, [hash_bytes(data)]) for part in range(2)]
        if held[name] and random.random() < 0.3:
            records.append(make_record(mark, 2, [held[name].pop()], EventKind.ERASURE))
        else:
            records.append(make_record(mark, 2, []))
        written = EventBatch(records=tuple(records), contents={hash_bytes(data): data})
        versions[name] = store.append(name, written, expected=versions[name])
        held[name].append(hash_bytes(data))
        os.write(1, json.dumps([name, versions[name], turn]).encode() + b"\n")

for line in sys.stdin:
    url, seed = line.split()
    writer = os.fork()
    if writer == 0:
        os.write(1, f"{os.getpid()}\n".encode())
        write(url, int(seed))
    os.waitpid(writer, 0)
    os.write(1, b"ended\n")
"""


@dataclass(frozen=True)
class Writer:
    """One process that writes, and the lines it prints until it has ended."""

    pid: int
    lines: Iterator[str]

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class Writers:
    """Writers that begin without delay, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    @contextmanager
    def writing(self, url: str, seed: int) -> Iterator[Writer]:
        """A writer that has begun; killed at the latest when this is over."""
        self._input.write(f"{url} {seed}\n")
        self._input.flush()
        lines = takewhile(lambda line: line != "ended\n", self._output)
        writer = Writer(pid=int(next(lines)), lines=lines)
        try:
            yield writer
        finally:
            # Not yet waited for, so that the number is still its own.
            if next(lines, None) is not None:
                writer.kill()
                list(lines)


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    command = [sys.executable, "-c", WRITERS]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Writers(process)


@dataclass
class Told:
    """What writers were told: for each conversation, which turn of which writer ends at which version."""

    ends: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    def write_and_kill(self, writer: Writer, *, seed: int, appends: int, delay: float) -> None:
        """Let a writer write for a moment more after a number of appends, kill it, and note what it was told."""
        self.note(seed, islice(writer.lines, appends))
        time.sleep(delay)
        writer.kill()
        self.note(seed, writer.lines)

    def note(self, seed: int, lines: Iterable[str]) -> None:
        for line in lines:
            name, version, turn = json.loads(line)
            self.ends[name, version] = seed, turn

    def check(self, store: Store) -> None:
        """Every acknowledged batch is there; and every batch that is there is whole, acknowledged or not."""
        assert list(store.verify()) == []
        for name in ("left", "right"):
            records = store.load(name)
            bodies = [json.loads(record.body) for record in records]
            written: dict[tuple[str, int], tuple[int, int]] = {}
            for start in range(0, len(bodies), BATCH):
                batch = bodies[start : start + BATCH]
                assert [body["part"] for body in batch] == [0, 1, 2]
                [written[name, start + BATCH]] = {(body["seed"], body["turn"]) for body in batch}
            assert {key: turn for key, turn in self.ends.items() if key[0] == name}.items() <= written.items()
            erased = {hash_ for record in records if record.kind is EventKind.ERASURE for hash_ in record.contents}
            held = {hash_ for record in records for hash_ in record.contents} - erased
            assert {hash_bytes(data) for data in store.read_contents(name, sorted(held)).values()} == held


@pytest.fixture(scope="module")
def safe_server() -> Iterator[servers.Server]:
    """A server that writes to the disk before it answers."""
    with servers.running(servers.SAFE) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'chats.db'}"
    server: servers.Server = request.getfixturevalue("safe_server")
    return server.make_store_url()


def test_writer_killed_anywhere_loses_no_acknowledged_event(url: str, writers: Writers) -> None:
    chance = random.Random(20260101)
    record = Told()
    for seed in range(ROUNDS):
        # The first ones are killed while they open the store, the others while they write.
        appends = 0 if seed < 3 else chance.randint(1, 12)
        with writers.writing(url, seed) as writer:
            record.write_and_kill(writer, seed=seed, appends=appends, delay=chance.uniform(0.0, 0.02))
        with closing(open_store(url)) as store:
            record.check(store)
    assert len(record.ends) >= ROUNDS - 3


def test_server_killed_anywhere_loses_no_acknowledged_event(safe_server: servers.Server, writers: Writers) -> None:
    chance = random.Random(20260102)
    url = safe_server.make_store_url()
    record = Told()
    with closing(open_store(url, timeout=20.0)) as store:
        for seed in range(2):
            with writers.writing(url, seed) as writer:
                record.note(seed, islice(writer.lines, chance.randint(3, 20)))
                time.sleep(chance.uniform(0.0, 0.02))
                safe_server.kill()
                safe_server.start()
                # The writer is still there and goes on where it was, as if nothing had happened.
                record.write_and_kill(writer, seed=seed, appends=20, delay=0.0)
            record.check(store)
            assert store.append("other", say(f"after {seed}"), expected=seed) == seed + 1
        assert texts(store, "other") == ["after 0", "after 1"]
    assert len(record.ends) >= 2 * (3 + 20)


def test_writer_killed_while_creating_store_leaves_usable_store(tmp_path: Path, writers: Writers) -> None:
    chance = random.Random(20260103)
    for seed in range(10):
        url = f"sqlite:///{tmp_path / f'{seed}.db'}"
        record = Told()
        with writers.writing(url, seed) as writer:
            record.write_and_kill(writer, seed=seed, appends=0, delay=chance.uniform(0.0, 0.03))
        with closing(open_store(url)) as store:
            record.check(store)
            assert store.append("new", say("one"), expected=0) == 1
