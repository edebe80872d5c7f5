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

from lamella.core.log.events.kinds import EventKind
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.log import SNAPSHOT_FORMAT, FoldedLog
from lamella.core.log.snapshots import decode_separate_columns, decode_snapshot, has_other_format_version, restore_log
from lamella.core.log.tree import PackedMessages, split_columns
from lamella.core.log.turn_records import MessageNode

CHANGED = "a log folds or is written otherwise: raise FORMAT in core/log/log.py, then regenerate"


def test_snapshot_format_writes_its_golden_file() -> None:
    assert describe() == golden_file().read_text(encoding="utf-8"), CHANGED


def test_snapshot_reads_as_log_folded_from_events() -> None:
    snapshot = decode_snapshot(bytes.fromhex(json.loads(golden_file().read_text(encoding="utf-8"))["bytes"]))
    assert snapshot == take_snapshot(read_events())
    log, _ = restore_log([snapshot] if snapshot else [], FoldedLog(NAME))
    assert log == fold(read_events())


def test_separate_columns_read_as_messages() -> None:
    data = bytes.fromhex(json.loads(golden_file().read_text(encoding="utf-8"))["apart"])
    turns = take_turns()
    kept, apart = split_columns(turns, {one.id for one in turns[::2]})
    assert len(turns) >= 4
    assert decode_separate_columns(data, (NAME, 3, 9)) == apart
    assert list(PackedMessages(kept.columns, lambda _: apart)) == turns


def test_snapshot_of_other_format_is_not_read() -> None:
    others = [path for path in FOLDER.glob("format.*.json") if path != golden_file()]
    for path in others:
        data = bytes.fromhex(json.loads(path.read_text(encoding="utf-8"))["bytes"])
        assert decode_snapshot(data) is None, path
        assert has_other_format_version(data), path
    assert len(others) == SNAPSHOT_FORMAT - 1


def test_golden_events_cover_every_log_field() -> None:
    log, empty = fold(read_events()), FoldedLog("empty")
    assert [name for name in log.__struct_fields__ if getattr(log, name) == getattr(empty, name)] == []
    bare = MessageNode(event=QuestionEvent(id="", parent="", text=""))
    nodes = list(log.nodes.values())
    fields = bare.__struct_fields__
    assert [name for name in fields if all(getattr(node, name) == getattr(bare, name) for node in nodes)] == []
    assert {record.kind for record in read_events()} == set(EventKind)
