"""The tree in snapshots: batches of turns are read without unpacking, and equal the folded ones."""

from collections.abc import Sequence

import pytest
from msgspec import Raw, msgpack
from tests.unit.core.log.log_writer import Scribe
from tests.unit.core.log.test_snapshots import AT, CHAT, RECORDS, fold, snap
from tests.unit.raw_events import write_raw

from lamella.core.log.branch import branch_content_hashes, read_turns, read_turns_in_batches
from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import make_snapshot, restore_log
from lamella.core.log.tree import (
    MessageTree,
    PackedMessages,
    group_turn_batches,
    iter_message_parents,
    list_texts,
    pack_columns,
)
from lamella.core.log.turn import ReplyEvent, RequestFingerprint, Turn, TurnBatch, TurnSettings, expand_batches
from lamella.core.log.turn_records import (
    MessageNode,
    TurnRecord,
    TurnRecordBatch,
    branch_message_ids,
    message_ids_and_texts,
    split_records,
    unpack_branch_parts,
)
from lamella.core.values import replace
from lamella.errors import StoreCorruptedError


def restore(*ends: int, records: Sequence[EventRecord] = RECORDS) -> FoldedLog:
    """A log out of snapshots that each end after so many events."""
    starts = (0, *ends)
    kept = [make_snapshot(fold(records[:end]), after=start) for start, end in zip(starts, ends, strict=False)]
    return restore_log(kept, FoldedLog(CHAT))[0]


def nodes_of(log: FoldedLog) -> MessageTree:
    assert isinstance(log.nodes, MessageTree)
    return log.nodes


def runs_on(log: FoldedLog) -> list[int]:
    """How many turns each run of the active branch has."""
    return [
        len(part.message_ids) // 2
        for part in unpack_branch_parts(log.branch_records())
        if isinstance(part, TurnRecordBatch)
    ]


def test_messages_form_one_batch_per_snapshot() -> None:
    assert runs_on(restore(8, 12)) == [4, 2]
    assert runs_on(fold(RECORDS)) == []


def test_turn_split_by_two_snapshots_is_between_batches() -> None:
    log = restore(7, 12)
    assert runs_on(log) == [3, 2]
    assert log.branch_records() == fold(RECORDS).branch_records()


def test_turns_of_batch_equal_folded_ones() -> None:
    log, folded = restore(8, 12), fold(RECORDS)
    assert log.branch_records() == folded.branch_records()
    assert list(reversed(log.branch_records())) == list(reversed(folded.branch_records()))
    assert (log.branch_records()[0], log.branch_records()[-1], log.branch_records()[1:3]) == (
        folded.branch_records()[0],
        folded.branch_records()[-1],
        folded.branch_records()[1:3],
    )
    assert len(log.branch_records()) == 6
    assert branch_message_ids(log.branch_records()) == branch_message_ids(folded.branch_records())
    with pytest.raises(IndexError):
        log.branch_records()[6]


@pytest.mark.parametrize("ends", [(8, 12), (7, 12), (5, 9), (12,), (4,)])
def test_any_turn_of_branch_is_found_by_index(ends: tuple[int, ...]) -> None:
    path = restore(*ends).branch_records()
    records = list(path)
    assert [path[at] for at in range(len(path))] == records
    assert [path[at - len(path)] for at in range(len(path))] == records
    assert all(path[first:end] == records[first:end] for first in range(-8, 8) for end in range(-8, 8))
    assert path[::-2] == records[::-2]


def test_messages_are_listed_equally_in_batches_and_singly() -> None:
    log, folded = restore(7, 12), fold(RECORDS)
    names, texts = message_ids_and_texts(log.branch_records())
    assert (names, texts) == message_ids_and_texts(folded.branch_records())
    nodes = [node for record in folded.branch_records() for node in (record.message, record.reply) if node is not None]
    assert (names, texts) == (tuple(node.id for node in nodes), tuple(node.event.text for node in nodes))


@pytest.mark.parametrize("ends", [(8, 12), (7, 12), ()])
@pytest.mark.parametrize("turns", range(7))
def test_branch_is_split_after_any_turn(ends: tuple[int, ...], turns: int) -> None:
    path = (restore(*ends) if ends else fold(RECORDS)).branch_records()
    before, rest = (branch_message_ids(part) for part in split_records(path, turns))
    assert (before, rest) == (branch_message_ids(path)[: 2 * turns], branch_message_ids(path)[2 * turns :])


def test_turns_read_in_batches_equal_single_ones() -> None:
    log, folded = restore(8, 12), fold(RECORDS)
    read = [
        replace(turn, fingerprint=None) for turn in read_turns(folded.branch_records(), {}, defaults=TurnSettings())
    ]
    assert expand_batches(read_turns_in_batches(log.branch_records(), {}, defaults=TurnSettings())) == read


def test_attachments_of_turns_are_listed_without_unpacking() -> None:
    note = {"id": "a.md", "kind": "note", "title": "a", "hash": "sha256:a", "source": {"path": "a.md"}}
    asked = write_raw(EventKind.MESSAGE, AT, id="q", parent="", text="With it?", attached=[note]).records
    records = [*asked, *write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records]
    log = restore(2, records=records)
    assert runs_on(log) == [1]
    assert branch_content_hashes(log.branch_records()) == ("sha256:a",)
    (turn,) = expand_batches(
        read_turns_in_batches(log.branch_records(), {"sha256:a": b"Text."}, defaults=TurnSettings())
    )
    assert [artifact.text for artifact in turn.attached] == ["Text."]
    (gone,) = expand_batches(read_turns_in_batches(log.branch_records(), {}, defaults=TurnSettings()))
    assert (gone.attached, gone.warnings) == ((), ("a.md was erased and is left out.",))


@pytest.mark.parametrize(("attachments", "kind"), [("turn", TurnBatch), ("sticky", Turn)])
def test_turn_with_sticky_attachment_is_read_outside_batch(attachments: str, kind: type) -> None:
    note = {"id": "a.md", "kind": "note", "title": "a", "hash": "sha256:a", "source": {"path": "a.md"}}
    said: dict[str, object] = {"id": "q", "parent": "", "text": "With it?", "attached": [note]}
    asked = write_raw(EventKind.MESSAGE, AT, **said, attachments=attachments).records
    records = [*asked, *write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records]
    log = restore(2, records=records)
    assert runs_on(log) == [1]
    (part,) = read_turns_in_batches(log.branch_records(), {"sha256:a": b"Text."}, defaults=TurnSettings())
    assert isinstance(part, kind)


def test_packed_messages_equal_same_messages_only() -> None:
    nodes = [*fold(RECORDS).nodes.values()]
    packed = PackedMessages(pack_columns(nodes))
    assert packed == nodes
    assert packed != nodes[:-1]
    assert packed != nodes[0]


def test_question_with_more_than_settings_is_in_no_batch() -> None:
    said = [
        *RECORDS[:2],
        *write_raw(EventKind.MESSAGE, AT, id="q", parent=fold(RECORDS[:2]).head, text="?", fold=True).records,
    ]
    said += write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records
    assert [run[3] for run in group_turn_batches(list(fold(said).nodes.values()))] == [1]


def test_branch_from_middle_of_batch_is_read_singly() -> None:
    log, folded = restore(12), fold(RECORDS)
    middle = folded.branch_records()[2]
    assert middle.reply is not None
    assert log.branch_records(middle.reply.id) == folded.branch_records(middle.reply.id)
    assert all(isinstance(part, TurnRecord) for part in unpack_branch_parts(log.branch_records(middle.reply.id)))


def test_repeated_message_ends_batch() -> None:
    again = [
        *RECORDS,
        *write_raw(EventKind.SWITCH, AT, head=fold(RECORDS).branch_records()[0].message.id).records,
        RECORDS[1],
    ]
    log = restore(12, records=again)
    log.extend(again[12:])
    assert log == fold(again)
    assert nodes_of(log).batches == {}
    assert log.branch_records() == fold(again).branch_records()
    assert nodes_of(restore(12, 14, records=again)).batches == {}


def test_continued_log_snapshots_only_new_events() -> None:
    log = restore(8)
    log.extend(RECORDS[8:])
    made = make_snapshot(log, after=8)
    assert made == make_snapshot(fold(RECORDS), after=8)
    assert make_snapshot(log, after=0) == make_snapshot(fold(RECORDS), after=0)
    assert len(log.nodes) == 12


def test_event_numbers_and_texts_of_packed_messages_are_known() -> None:
    nodes, folded = nodes_of(restore(12)), fold(RECORDS).nodes
    assert {name: nodes.event_number(name) for name in nodes} == {
        name: node.event_number for name, node in folded.items()
    }
    assert list(list_texts(snap(12).nodes)) == [node.text for node in folded.values()]


def test_log_keeps_every_message() -> None:
    nodes = nodes_of(restore(12))
    with pytest.raises(TypeError):
        del nodes[next(iter(nodes))]


def test_consecutive_turns_are_listed_without_unpacking() -> None:
    records = RECORDS[:8]
    told = fold(records).branch_records()
    snapshot = make_snapshot(fold(records), after=0)
    columns = pack_columns(snapshot.nodes)._replace(rest=Raw(b"nothing that was written"))
    assert columns.consecutive_start is not None
    log, _ = restore_log([replace(snapshot, nodes=PackedMessages(columns))], FoldedLog(CHAT))
    assert message_ids_and_texts(log.branch_records()) == message_ids_and_texts(told)
    assert len(log.branch_records()) == len(told)
    assert list(iter_message_parents(log.nodes)) == [(name, node.parent) for name, node in fold(records).nodes.items()]
    with pytest.raises(StoreCorruptedError):
        list(log.branch_records())


def test_corrupted_columns_are_damage() -> None:
    columns = pack_columns(snap(12).nodes)
    runs, apart, _ = msgpack.decode(columns.rest)

    def read(rest: bytes) -> MessageNode:
        return PackedMessages(columns._replace(rest=Raw(rest)))[0]

    for packed in (b"", b"nothing that was packed"):
        with pytest.raises(StoreCorruptedError):
            read(msgpack.encode((runs, apart, packed)))
    with pytest.raises(StoreCorruptedError, match="cannot be read: Expected"):
        read(b"nothing that was written")


def test_sent_hashes_are_packed_and_restored() -> None:
    scribe, sent = (
        Scribe(),
        RequestFingerprint(renderer=1, system="sha256:s", library="sha256:l", prefix="sha256:p", whole="sha256:1"),
    )
    for number in (1, 2):
        scribe.ask(f"q{number}", fingerprint=replace(sent, whole=f"sha256:{number}"))
        scribe.reply(f"a{number}")
    log = restore_log([make_snapshot(scribe.log, after=0)], FoldedLog(CHAT))[0]
    imprints = [
        record.message.event.imprint
        for record in log.branch_records()
        if not isinstance(record.message.event, ReplyEvent)
    ]
    assert imprints == [replace(sent, whole="sha256:1"), replace(sent, whole="sha256:2")]
