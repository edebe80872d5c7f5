"""Messages in columns: the separate columns are loaded when more than ids and available texts is needed."""

from collections.abc import Callable
from sys import getrefcount

import pytest
from tests.unit.core.log.log_writer import Scribe
from tests.unit.core.log.test_snapshots import CHAT, RECORDS, fold

from lamella.core.artifacts.model import ArtifactId, ArtifactKind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.events.message import QuestionEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.snapshots import (
    decode_separate_columns,
    decode_snapshot,
    encode_separate_columns,
    encode_snapshot,
    make_snapshot,
    restore_log,
)
from lamella.core.log.tree import (
    NO_SEPARATE_COLUMNS,
    MessageColumns,
    PackedMessages,
    SeparateColumns,
    group_turn_batches,
    list_texts,
    pack_messages,
    split_columns,
)
from lamella.core.log.turn import LayoutPlan, RequestFingerprint
from lamella.core.log.turn_records import MessageNode, message_ids_and_texts
from lamella.core.values import replace

TURNS = list(fold(RECORDS).nodes.values())
STANDING = {node.id for node in TURNS[::2]}


class Apart:
    """What is apart from columns, and how often it was asked for."""

    def __init__(self, nodes: list[MessageNode], standing: set[str] | None = None) -> None:
        kept, self.apart = split_columns(nodes, standing)
        self.asked = 0
        self.nodes = PackedMessages(kept.columns, self.find)

    def find(self, _: MessageColumns) -> SeparateColumns:
        self.asked += 1
        return self.apart


def test_separated_columns_restore_every_message() -> None:
    apart = Apart(TURNS, STANDING)
    assert list(apart.nodes) == TURNS
    assert apart.nodes.texts == tuple(node.text for node in TURNS)
    assert apart.asked == 1


def test_ids_numbers_and_sent_texts_need_no_separate_columns() -> None:
    apart = Apart(TURNS, STANDING)
    columns = apart.nodes.columns
    assert columns.message_ids == tuple(node.id for node in TURNS)
    assert columns.event_numbers == tuple(node.event_number for node in TURNS)
    assert columns.texts == tuple(node.text if node.id in STANDING else None for node in TURNS)
    assert apart.nodes.loaded_texts == columns.texts
    assert not apart.nodes.are_texts_loaded
    assert apart.asked == 0


def test_all_texts_are_loaded_if_sent_ones_are_unknown() -> None:
    apart = Apart(TURNS)
    assert list_texts(apart.nodes) == apart.nodes.loaded_texts == tuple(node.text for node in TURNS)
    assert apart.nodes.are_texts_loaded
    assert apart.asked == 0
    assert apart.nodes[3] == TURNS[3]
    assert apart.asked == 1


def test_loaded_texts_are_kept() -> None:
    nodes = Apart(TURNS, STANDING).nodes
    assert nodes.texts == nodes.loaded_texts
    assert nodes.are_texts_loaded


def test_texts_sent_again_are_kept_in_snapshot() -> None:
    kept, _ = split_columns(TURNS, set())
    again, apart = split_columns(kept, None)
    assert again.columns.texts == tuple(node.text for node in TURNS)
    assert apart[0] == {}
    assert list(PackedMessages(again.columns, lambda _: apart)) == TURNS


def test_incomplete_turns_are_not_separated() -> None:
    kept, apart = split_columns(TURNS[:5], set())
    assert apart == NO_SEPARATE_COLUMNS
    assert kept.columns == pack_messages(TURNS[:5]).columns
    assert encode_separate_columns(apart, ("chat", 0, 5)) == b""


def test_branch_is_listed_and_texts_are_found_lazily() -> None:
    apart = Apart(TURNS, STANDING)
    snapshot = replace(make_snapshot(fold(RECORDS), after=0), nodes=apart.nodes)
    log, _ = restore_log([snapshot], FoldedLog(CHAT))
    names, texts = message_ids_and_texts(log.branch_records())
    assert [name for name, text in zip(names, texts, strict=True) if isinstance(text, str)] == [
        node.id for node in TURNS[::2]
    ]
    assert apart.asked == 0
    shelf = texts[1]
    assert not isinstance(shelf, str)
    assert texts[3] is shelf
    assert list(shelf) == [node.id for node in TURNS]
    assert apart.asked == 0
    assert dict(shelf) == {node.id: node.text for node in TURNS}
    assert apart.asked == 1
    assert log.branch_records() == fold(RECORDS).branch_records()


def test_tool_rounds_survive_separation() -> None:
    scribe = Scribe()
    scribe.ask("Look.")
    scribe.run("find", "a.md")
    scribe.reply("Found.")
    nodes = list(scribe.log.nodes.values())
    apart = Apart(nodes, set())
    assert apart.nodes.columns.consecutive_start is not None
    assert list(apart.nodes) == nodes


PLACED = LayoutPlan(priced=True)
IMPRINT = RequestFingerprint(renderer=1, system="s", library="l", prefix="p", whole="w")
NOTE = StoredArtifact(id=ArtifactId("a"), kind=ArtifactKind.NOTE, title="a", hash="h", source=StoredSource())
OWN: dict[str, Callable[[QuestionEvent, int], QuestionEvent]] = {
    "where things stand": lambda event, _: replace(event, placement=PLACED),
    "where things stand at a price": lambda event, at: replace(event, placement=replace(PLACED, cost=float(at))),
    "what was sent": lambda event, at: replace(event, imprint=replace(IMPRINT, whole=f"{at}")),
    "what came along": lambda event, at: replace(event, attached=(replace(NOTE, hash=f"{at}"),)),
}


def change(node: MessageNode, how: Callable[[QuestionEvent, int], QuestionEvent]) -> MessageNode:
    return replace(node, event=how(node.event, node.event_number)) if isinstance(node.event, QuestionEvent) else node


@pytest.mark.parametrize("own", OWN)
def test_turns_with_own_fields_are_one_batch(own: str) -> None:
    nodes = [change(node, OWN[own]) for node in TURNS]
    (run,) = group_turn_batches(nodes)
    assert run[3] == 6
    assert list(Apart(nodes).nodes) == nodes


def test_partly_placed_turns_are_separate_batches() -> None:
    nodes = [*TURNS[:2], change(TURNS[2], OWN["where things stand"]), *TURNS[3:]]
    assert [run[3] for run in group_turn_batches(nodes)] == [1, 1, 4]


def test_separate_columns_belong_to_one_position() -> None:
    _, apart = split_columns(TURNS, STANDING)
    data = encode_separate_columns(apart, ("chat", 0, 12))
    assert decode_separate_columns(data, ("other", 0, 12)) is None
    assert decode_separate_columns(data, ("chat", 0, 12)) == apart
    assert decode_separate_columns(data, ("chat", 0, 11)) is None
    assert decode_separate_columns(data, ("chat", 1, 12)) is None
    assert decode_separate_columns(data[:-1], ("chat", 0, 12)) is None
    assert decode_separate_columns(data + b"\0", ("chat", 0, 12)) is None
    assert decode_separate_columns(b"", ("chat", 0, 12)) is None


def test_snapshot_without_separate_columns_reads_them_by_position() -> None:
    kept, apart = split_columns(TURNS, set())
    data = encode_snapshot(replace(make_snapshot(fold(RECORDS), after=0), nodes=kept))
    assert data is not None
    places: list[tuple[str, int, int]] = []

    def find(place: tuple[str, int, int], _: MessageColumns) -> SeparateColumns:
        places.append(place)
        return apart

    snapshot = decode_snapshot(data, load_separate_columns=find)
    assert snapshot is not None
    assert places == []
    assert list(snapshot.nodes) == TURNS
    assert places == [("chat", 0, 12)]
    assert all(node.text.encode() not in data for node in TURNS if len(node.text) > 1)


def test_snapshot_does_not_keep_its_bytes_alive() -> None:
    data = encode_snapshot(make_snapshot(fold(RECORDS), after=0))
    assert data is not None
    held = getrefcount(data)
    snapshot = decode_snapshot(data)
    assert snapshot is not None
    assert getrefcount(data) == held
