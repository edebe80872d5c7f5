"""Snapshots that were written stay what they were: a log that folds or is written otherwise has another format."""

import json

from tests.golden.snapshots.story import (
    FOLDER,
    NAME,
    describe,
    fold,
    golden_file,
    read_events,
    take_snapshot,
    take_turns,
)

from lamella.core.log.events.message import MessageEvent
from lamella.core.log.log import FORMAT, Log
from lamella.core.log.nodes import Node
from lamella.core.log.records import EventKind
from lamella.core.log.snapshots.columns import PackedNodes, set_apart
from lamella.core.log.snapshots.snapshot import is_of_another_format, join_snapshots, read_apart, read_snapshot

CHANGED = "a log folds or is written otherwise: raise FORMAT in core/log/log.py, then regenerate"


def test_this_format_still_writes_the_bytes_of_its_golden_file() -> None:
    assert describe() == golden_file().read_text(encoding="utf-8"), CHANGED


def test_what_this_format_has_written_is_read_as_the_log_that_its_events_fold_to() -> None:
    snapshot = read_snapshot(bytes.fromhex(json.loads(golden_file().read_text(encoding="utf-8"))["bytes"]))
    assert snapshot == take_snapshot(read_events())
    log, _ = join_snapshots([snapshot] if snapshot else [], Log(NAME))
    assert log == fold(read_events())


def test_what_this_format_has_kept_apart_is_read_as_its_messages() -> None:
    data = bytes.fromhex(json.loads(golden_file().read_text(encoding="utf-8"))["apart"])
    turns = take_turns()
    kept, apart = set_apart(turns, {one.id for one in turns[::2]})
    assert len(turns) >= 4
    assert read_apart(data, (NAME, 3, 9)) == apart
    assert list(PackedNodes(kept.columns, lambda _: apart)) == turns


def test_what_another_format_has_written_is_not_read() -> None:
    others = [path for path in FOLDER.glob("format.*.json") if path != golden_file()]
    for path in others:
        data = bytes.fromhex(json.loads(path.read_text(encoding="utf-8"))["bytes"])
        assert read_snapshot(data) is None, path
        assert is_of_another_format(data), path
    assert len(others) == FORMAT - 1


def test_nothing_that_a_log_can_hold_is_missing_from_the_events() -> None:
    log, empty = fold(read_events()), Log("empty")
    assert [name for name in log.__struct_fields__ if getattr(log, name) == getattr(empty, name)] == []
    bare = Node(event=MessageEvent(id="", parent="", text=""))
    nodes = list(log.nodes.values())
    fields = bare.__struct_fields__
    assert [name for name in fields if all(getattr(node, name) == getattr(bare, name) for node in nodes)] == []
    assert {record.kind for record in read_events()} == set(EventKind)
