"""Eight processes at once: every event once, in an order each of them can explain."""

import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.conftest import OpenStore
from tests.conformance.stores.material import LATER, attach, say
from tests.contracts.repository import ROOT

from lamella.core.text.content import hash_bytes
from lamella.errors import ConflictError
from lamella.ports import Store
from lamella.stores.sql_schema import load_migrations

PROCESSES = 8
EACH = 20

# Forks one client for each list of conversations. A client appends each of its events until it is taken, and prints at
# which version it was acknowledged. All begin at once, when the last has opened the store.
CLIENTS = """
import json, os, sys
from tests.conformance.stores.material import attach
from lamella.stores.open_store import open_store
from lamella.errors import ConflictError

def run(url, each, client, names):
    store = open_store(url, timeout=60.0)
    os.write(ready[1], b".")
    os.close(go[1])
    os.read(go[0], 1)
    for name in names:
        version = 0
        for number in range(each):
            text = f"{client}-{number}"
            while True:
                try:
                    written = attach(b"shared by all", text.encode(), text=text)
                    version = store.append(name, written, expected=version)
                    break
                except ConflictError as error:
                    version = error.found
            os.write(1, json.dumps([client, name, version, text]).encode() + b"\\n")
    store.close()

url, each, conversations = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
ready, go = os.pipe(), os.pipe()
for client, names in enumerate(conversations):
    if os.fork() == 0:
        run(url, each, client, names)
        os._exit(0)
left = len(conversations)
while left:
    left -= len(os.read(ready[0], left))
os.close(go[1])
sys.exit(any(os.wait()[1] for _ in conversations))
"""

Told = tuple[int, str, int, str]


def run_clients(url: str, conversations: Sequence[Sequence[str]]) -> list[Told]:
    """Run a process for each list of conversations, all at once: what each was told, as it was told."""
    command = [sys.executable, "-c", CLIENTS, url, str(EACH), json.dumps(conversations)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [tuple(json.loads(line)) for line in result.stdout.splitlines()]


def _check(store: Store, told: Sequence[Told]) -> None:
    """Every event is there once, at the version its client was told, and after what its client wrote before it."""
    acknowledged = {(name, version): (client, text) for client, name, version, text in told}
    assert len(acknowledged) == len(told)
    for name in {name for name, _ in acknowledged}:
        loaded = [json.loads(record.body)["text"] for record in store.load(name)]
        assert loaded == [acknowledged[name, version][1] for version in range(1, len(loaded) + 1)]
        for client in {client for client, _ in acknowledged.values()}:
            own = [text for text in loaded if text.startswith(f"{client}-")]
            assert own == [f"{client}-{number}" for number in range(EACH)]
        held = {hash_bytes(data) for data in (b"shared by all", *(text.encode() for text in loaded))}
        assert set(store.read_contents(name, sorted(held))) == held
    assert list(store.verify()) == []


def test_eight_processes_append_to_one_conversation(url: str, opened: OpenStore) -> None:
    told = run_clients(url, [["c"]] * PROCESSES)
    store = opened(url)
    assert len(store.load("c")) == PROCESSES * EACH
    _check(store, told)


def test_eight_processes_append_to_many_conversations(url: str, opened: OpenStore) -> None:
    names = ["w", "x", "y", "z"]
    told = run_clients(url, [[*names[client % 4 :], *names[: client % 4]] for client in range(PROCESSES)])
    store = opened(url)
    assert {name: len(store.load(name)) for name in names} == dict.fromkeys(names, PROCESSES * EACH)
    _check(store, told)


def test_processes_opening_new_store_create_it_once(url: str, opened: OpenStore) -> None:
    with ThreadPoolExecutor(PROCESSES) as pool:
        stores = list(pool.map(opened, [url] * PROCESSES))
    assert {store.stats().schema for store in stores} == {len(load_migrations("sqlite"))}


@pytest.mark.parametrize("round_", range(3))
def test_erasure_during_concurrent_sharing_loses_no_content(url: str, opened: OpenStore, round_: int) -> None:
    shared = b"held by all, in turn"
    stores = [opened(url) for _ in range(4)]

    def come_and_go(client: int) -> None:
        for number in range(10):
            stores[client].append(f"{client}-{number}", attach(shared), expected=0)
            if number % 2 == round_ % 2:
                stores[client].erase_conversation(f"{client}-{number}", at=LATER)

    with ThreadPoolExecutor(len(stores)) as pool:
        list(pool.map(come_and_go, range(len(stores))))
    kept = [f"{client}-{number}" for client in range(4) for number in range(10) if number % 2 != round_ % 2]
    assert [stores[0].read_contents(name, [hash_bytes(shared)]) for name in kept] == [{hash_bytes(shared): shared}] * 20
    assert list(stores[0].verify()) == []


def test_late_writer_gets_conflict_and_can_continue(url: str, opened: OpenStore) -> None:
    first, second = opened(url), opened(url)
    first.append("c", say("first"), expected=0)
    with pytest.raises(ConflictError) as caught:
        second.append("c", say("second"), expected=0)
    assert second.append("c", say("second"), expected=caught.value.found) == 2


def test_store_refuses_use_after_fork(tmp_path: Path) -> None:
    script = """
import os, sys
from lamella.stores.open_store import open_store
from lamella.errors import InvalidOperationError
store = open_store(sys.argv[1])
if os.fork() == 0:
    try:
        store.load("c")
    except InvalidOperationError as error:
        print(error.hint, flush=True)
    os._exit(0)
os.wait()
store.close()
"""
    command = [sys.executable, "-c", script, f"sqlite:///{tmp_path}/chats.db"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "Open it in each process that uses it.\n"
