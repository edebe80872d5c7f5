"""Checkpoints where they matter: in new processes, under writers that are killed, and in the bytes of a file."""

import json
import random
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from tests import preloaded
from tests.checkpoints import list_checkpoints
from tests.journeys.running import run
from tests.journeys.test_erasure import file_bytes

import lamella
from lamella import Note
from lamella.clocks import SystemClock
from lamella.conversation.checkpoints import EVENTS_PER_CHECKPOINT, Checkpoints
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.token_counts import decode_count_entries
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import decode_snapshot
from lamella.ports import Store
from lamella.stores.open_store import open_store

SECRET = "the zebra keeps its stripes in a drawer"
HEADER = b"lamella log "
TURNS = EVENTS_PER_CHECKPOINT // 2 + 6

# Opens the conversation, asks one question, and prints the messages.
ASKER = """
import json, sys
import lamella
with lamella.open(sys.argv[1]) as engine:
    turn = engine.chat("mine").ask(sys.argv[2])
    print(json.dumps([message.to_dict() for message in turn.messages]))
"""

# Renames a conversation that others rename too, so many times, with checkpoints often; prints each once it is written.
WRITER = """
import sys
from lamella.core.values import replace
from lamella.errors import ConflictError
from lamella.conversation.conversation import Conversation
from lamella.wiring import open_backend
url, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
chat = Conversation.open(replace(open_backend(url), checkpoint_every=3), "mine", {})
for number in range(times):
    while True:
        try:
            chat.rename(f"{name} {number}")
            break
        except ConflictError:
            chat.reload()
    print(f"{name} {number}", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chats.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


def fill(url: str) -> None:
    """A conversation that has a checkpoint, and a note that was counted for it."""
    with lamella.open(url) as engine:
        conversation = engine.chat("mine", layout="in_place")
        conversation.ask("First", attach=[Note(path="secret.md", text=SECRET)])
        conversation.reply("Understood.")
        for number in range(1, TURNS):
            conversation.ask(f"Question {number}?")
            conversation.reply(f"Answer {number}.")


def _key(store: Store) -> str:
    [listed] = store.list_conversations()
    return listed.conversation


def verify(url: str) -> tuple[list[str], int]:
    """The titles that were written, and how many events an opening does not fold; nothing may be damaged."""
    with closing(open_store(url)) as store:
        assert list(ConversationRepository(store, SystemClock()).verify()) == []
        key = _key(store)
        records = store.load(key)
        folded = FoldedLog(key)
        folded.extend(records)
        restored = Checkpoints(store, key).restore().log
        version = restored.version
        restored.extend(records[version:])
        assert restored == folded
    return [json.loads(record.body)["title"] for record in records], version


def test_new_process_with_checkpoint_sends_like_full_fold(url: str, path: Path) -> None:
    fill(url)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("SELECT version FROM checkpoints").fetchall() == [(EVENTS_PER_CHECKPOINT + 1,)]
    bare = path.with_name("bare.db")
    assert run("store", "copy", "--from", url, "--to", f"sqlite:///{bare}").exit == 0
    sent = []
    for address in (url, f"sqlite:///{bare}"):
        with preloaded.Writing(ASKER, address, "And now?") as asker:
            sent.append("".join(asker.lines))
    assert sent[0] == sent[1]
    assert len(json.loads(sent[0])) == 2 * TURNS + 1


def test_two_processes_that_write_at_once_leave_checkpoints_that_agree(url: str) -> None:
    open_store(url).close()
    with preloaded.Writing(WRITER, url, "left", "25") as left, preloaded.Writing(WRITER, url, "right", "25") as right:
        ended = [writer.finish() for writer in (left, right)]
    assert [code for code, _ in ended] == [0, 0]
    titles, restored = verify(url)
    assert sorted(titles) == sorted(line.rstrip("\n") for _, said in ended for line in said)
    assert restored > len(titles) - 10


def kill_later(writer: preloaded.Writing, seconds: float) -> Sequence[str]:
    """What a writer has said until it is killed."""
    with writer:
        first = writer.lines.readline()
        time.sleep(seconds)
        writer.kill()
        said = [first, *writer.lines]
    return [line.rstrip("\n") for line in said if line.endswith("\n")]


def test_writer_killed_before_checkpoint_loses_nothing(url: str) -> None:
    moments = random.Random(7)
    acknowledged: list[str] = []
    for number in range(6):
        acknowledged += kill_later(preloaded.Writing(WRITER, url, str(number), "100000"), moments.random() / 10)
        titles, _ = verify(url)
        assert [title for title in titles if title in acknowledged] == acknowledged


def test_erased_artifact_leaves_no_token_counts_in_file(url: str, path: Path) -> None:
    fill(url)
    with closing(open_store(url)) as store:
        found = decode_snapshot(list_checkpoints(store, _key(store))[0].data)
        digests = [digest for digest, _, _ in decode_count_entries([found.text_token_counts if found else b""])]
    before = file_bytes(path)
    assert digests
    assert all(word in before for word in (HEADER, SECRET.encode(), *digests))
    assert run("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url).exit == 0
    left = file_bytes(path)
    assert not any(word in left for word in (HEADER, SECRET.encode(), *digests))
    assert run("store", "verify", "--erased", "mine", "--store", url).exit == 0
    with preloaded.Writing(ASKER, url, "And now?") as asker:
        assert SECRET not in "".join(asker.lines)
    assert HEADER in file_bytes(path)
    assert not any(digest in file_bytes(path) for digest in digests)
    assert run("store", "verify", "--erased", "mine", "--store", url).exit == 0


def test_erased_conversation_leaves_no_checkpoints(url: str, path: Path) -> None:
    fill(url)
    assert run("chats", "delete", "mine", "--yes", "--store", url).exit == 0
    left = file_bytes(path)
    assert [word in left for word in (HEADER, b"Question 1?", b"Understood.")] == [False] * 3
    assert run("store", "verify", "--erased", "mine", "--store", url).exit == 0


def test_checkpoint_restored_after_erasure_is_found(url: str, path: Path) -> None:
    fill(url)
    with closing(sqlite3.connect(path)) as connection, connection:
        (row,) = connection.execute("SELECT * FROM checkpoints").fetchall()
    run("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
    ran = run("store", "verify", "--erased", "mine", "--store", url)
    assert (ran.exit, "checkpoint 129: left after erasure" in ran.err) == (1, True)
    assert run("chats", "delete", "mine", "--artifact", "secret.md", "--yes", "--store", url).exit == 0
    assert run("store", "verify", "--erased", "mine", "--store", url).exit == 0


def test_damaged_checkpoint_is_named_and_not_copied(url: str, path: Path) -> None:
    fill(url)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET data = substr(data, 1, 100)")
    ran = run("store", "verify", "--store", url)
    said = "mine  checkpoint 129: cannot be read and is not used; the next one replaces it\n"
    assert (ran.exit, ran.err.startswith(said + "hint: ")) == (1, True)
    copy = f"sqlite:///{path.with_name('copy.db')}"
    assert run("store", "copy", "--from", url, "--to", copy).exit == 0
    assert run("store", "verify", "--store", copy).exit == 0


def test_archive_carries_no_checkpoint(url: str, tmp_path: Path) -> None:
    fill(url)
    assert run("chats", "export", "mine", "--to", str(tmp_path / "out"), "--store", url).exit == 0
    assert HEADER not in b"".join(file.read_bytes() for file in (tmp_path / "out").iterdir())
