"""Snapshots: a log as bytes, whole or not at all, and only those that follow one another."""

from collections.abc import Sequence
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack
from tests.unit.raw_events import write_raw

from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.log import SNAPSHOT_FORMAT, FoldedLog
from lamella.core.log.snapshots import (
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    has_other_format_version,
    make_snapshot,
    restore_log,
)
from lamella.core.log.turn import MessageAuthor, compute_message_id
from lamella.core.values import replace

AT = "2026-03-01T12:00:00Z"
CHAT = "chat"
HEADER = b"lamella log %d\n" % SNAPSHOT_FORMAT


def write_turns(turns: int, *, conversation: str = CHAT) -> list[EventRecord]:
    """So many questions and answers, each after the other."""
    records: list[EventRecord] = []
    parent = ""
    for number in range(turns):
        for role, kind, text in (
            (MessageAuthor.USER, EventKind.MESSAGE, f"q{number}"),
            (MessageAuthor.REPLY, EventKind.REPLY, "a"),
        ):
            name = compute_message_id(conversation, parent=parent, role=role, text=text)
            records += write_raw(kind, AT, id=name, parent=parent, text=text).records
            parent = name
    return records


def fold(records: Sequence[EventRecord], *, conversation: str = CHAT) -> FoldedLog:
    log = FoldedLog(conversation)
    log.extend(records)
    return log


RECORDS = write_turns(6)
FOLDED = fold(RECORDS)


def test_snapshot_of_log_only_is_otherwise_empty() -> None:
    made = make_snapshot(FOLDED, after=0)
    assert (made.message_token_counts, made.text_token_counts, made.encoded_state, made.blocks) == ({}, b"", b"", {})


def snap(version: int, *, after: int = 0) -> Snapshot:
    """A snapshot of so many events, for who has those before, as it is read again."""
    data = encode_snapshot(make_snapshot(fold(RECORDS[:version]), after=after))
    assert data is not None
    snapshot = decode_snapshot(data)
    assert snapshot is not None
    return snapshot


def forge(data: bytes) -> bytes:
    """Any bytes under the header and the digest that a snapshot of this format has."""
    return HEADER + crc32(data).to_bytes(4, "big") + data


def versions(snapshots: Sequence[Snapshot]) -> list[int]:
    return [snapshot.version for snapshot in snapshots]


def test_snapshot_round_trips() -> None:
    assert snap(12) == make_snapshot(FOLDED, after=0)
    assert snap(0).log == FoldedLog(CHAT)


def test_snapshot_has_only_messages_since_previous_one() -> None:
    snapshot = snap(12, after=8)
    assert [node.event_number for node in snapshot.nodes] == [8, 9, 10, 11]
    assert snapshot.log is not None
    assert snapshot.log.nodes == {}


def test_making_snapshot_does_not_change_log() -> None:
    log = fold(RECORDS)
    make_snapshot(log, after=4)
    assert log == FOLDED


def test_repeated_message_keeps_first_position() -> None:
    again = [
        *RECORDS[:4],
        *write_raw(EventKind.SWITCH, AT, head=FOLDED.branch_records()[0].message.id).records,
        RECORDS[1],
    ]
    folded = fold(again)
    assert folded.nodes[folded.head].event_number == 5
    log, _ = restore_log([make_snapshot(fold(again[:4]), after=0), make_snapshot(folded, after=4)], FoldedLog(CHAT))
    assert log == folded
    assert list(log.nodes) == list(folded.nodes)


def test_snapshots_that_follow_one_another_lead_to_the_whole_log() -> None:
    log, used = restore_log([snap(4), snap(8, after=4), snap(12, after=8)], FoldedLog(CHAT))
    assert log == FOLDED
    assert versions(used) == [4, 8, 12]


def test_restored_log_continues_like_folded_one() -> None:
    log, _ = restore_log([snap(4), snap(7, after=4)], FoldedLog(CHAT))
    log.extend(RECORDS[7:])
    assert log == FOLDED
    log.extend(write_raw(EventKind.FORK, AT, head=log.branch_records()[2].message.id).records)
    assert log.list_branch_heads() == (FOLDED.head, log.head)


def test_no_snapshots_give_empty_log() -> None:
    assert restore_log([], FoldedLog(CHAT)) == (FoldedLog(CHAT), ())


def test_snapshots_after_gap_are_ignored() -> None:
    log, used = restore_log([snap(4), snap(12, after=8)], FoldedLog(CHAT))
    assert log == fold(RECORDS[:4])
    assert versions(used) == [4]


def test_replacement_snapshot_after_gap_is_used() -> None:
    log, used = restore_log([snap(4), snap(9, after=8), snap(11, after=4)], FoldedLog(CHAT))
    assert log == fold(RECORDS[:11])
    assert versions(used) == [4, 11]


def test_longer_of_two_snapshot_chains_is_used() -> None:
    ours, theirs = [snap(4), snap(8, after=4)], [snap(5), snap(10, after=5)]
    log, used = restore_log([*ours, *theirs], FoldedLog(CHAT))
    assert log == fold(RECORDS[:10])
    assert versions(used) == [5, 10]


def test_snapshot_of_another_conversation_is_not_used() -> None:
    other = make_snapshot(fold(write_turns(2, conversation="other"), conversation="other"), after=0)
    assert restore_log([other], FoldedLog(CHAT)) == (FoldedLog(CHAT), ())


@pytest.mark.parametrize("after", [4, 5, 400])
def test_snapshot_that_follows_itself_or_a_later_one_is_not_used(after: int) -> None:
    odd = replace(snap(4), after=after)
    assert restore_log([odd], FoldedLog(CHAT)) == (FoldedLog(CHAT), ())


def test_snapshot_without_continuation_ends_chain() -> None:
    assert restore_log([snap(0)], FoldedLog(CHAT)) == (FoldedLog(CHAT), ())
    log, used = restore_log([snap(4), replace(snap(4), after=4)], FoldedLog(CHAT))
    assert (log, versions(used)) == (fold(RECORDS[:4]), [4])


@given(st.data())
def test_snapshot_with_any_damaged_byte_is_not_read(data: st.DataObject) -> None:
    whole = encode_snapshot(make_snapshot(FOLDED, after=0))
    assert whole is not None
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    assert decode_snapshot(bytes(damaged)) is None


@given(st.integers(1, 10_000))
def test_snapshot_that_was_cut_short_is_not_read(missing: int) -> None:
    whole = encode_snapshot(make_snapshot(FOLDED, after=0))
    assert whole is not None
    assert decode_snapshot(whole[:-missing]) is None
    assert decode_snapshot(whole + b"\0") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        msgpack.encode({"after": 0}),
        msgpack.encode({"after": 0, "log": {"conversation": CHAT, "version": "many"}, "nodes": []}),
        msgpack.encode(make_snapshot(FOLDED, after=12)).replace(b"chat", b"\xff\xff\xff\xff"),
        b"\x91" * 100_000,
    ],
)
def test_forged_snapshot_is_not_read(data: bytes) -> None:
    assert decode_snapshot(forge(data)) is None


def test_snapshot_of_another_format_is_not_read_and_not_damaged() -> None:
    whole = encode_snapshot(make_snapshot(FOLDED, after=0))
    assert whole is not None
    other = b"lamella log %d\n" % (SNAPSHOT_FORMAT + 1) + whole.removeprefix(HEADER)
    assert decode_snapshot(other) is None
    assert [has_other_format_version(data) for data in (other, whole, b"", b"what", HEADER)] == [True] + [False] * 4


@pytest.mark.parametrize("number", ["9" * 40, "-" + "9" * 40, str(2**64)])
def test_huge_number_prevents_snapshot(number: str) -> None:
    selected = f'{{"id":"s","kind":"selected_text","title":"s","hash":"h","source":{{"lines":[1,{number}]}}}}'
    body = f'{{"id":"m","parent":"","text":"q","attached":[{selected}]}}'
    log = fold([EventRecord(kind=EventKind.MESSAGE, at=AT, body=body)])
    assert encode_snapshot(make_snapshot(log, after=0)) is None
    assert encode_snapshot(make_snapshot(log, after=1)) is not None


def test_oversized_snapshot_is_not_written() -> None:
    snapshot = make_snapshot(FOLDED, after=0)
    whole = encode_snapshot(snapshot)
    assert whole is not None
    size = len(whole) - len(HEADER) - 4
    assert encode_snapshot(snapshot, max_bytes=size) == whole
    assert encode_snapshot(snapshot, max_bytes=size - 1) is None


def test_message_token_counts_are_in_snapshot() -> None:
    snapshot = replace(make_snapshot(FOLDED, after=10), message_token_counts={7: [1, -1]}, text_token_counts=b"\0\xff")
    data = encode_snapshot(snapshot)
    assert data is not None
    assert decode_snapshot(data) == snapshot
