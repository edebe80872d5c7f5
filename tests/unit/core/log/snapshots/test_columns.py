"""Messages in columns: what is kept apart from them is read once somebody looks at more than ids and texts at hand."""

from collections.abc import Callable
from sys import getrefcount

import pytest
from tests.unit.core.log.scribe import Scribe
from tests.unit.core.log.snapshots.test_snapshot import CHAT, RECORDS, fold

from lamella.core.artifacts.model import ArtifactId, Kind
from lamella.core.log.events.artifact import StoredArtifact, StoredSource
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, list_said
from lamella.core.log.placement import Placement
from lamella.core.log.snapshots.columns import (
    NOTHING_APART,
    ApartColumns,
    Columns,
    PackedNodes,
    find_runs,
    keep_packed,
    list_texts,
    set_apart,
)
from lamella.core.log.snapshots.snapshot import (
    join_snapshots,
    make_snapshot,
    read_apart,
    read_snapshot,
    write_apart,
    write_snapshot,
)
from lamella.core.values import replace

TURNS = list(fold(RECORDS).nodes.values())
STANDING = {node.id for node in TURNS[::2]}


class Apart:
    """What is apart from columns, and how often it was asked for."""

    def __init__(self, nodes: list[Node], standing: set[str] | None = None) -> None:
        kept, self.apart = set_apart(nodes, standing)
        self.asked = 0
        self.nodes = PackedNodes(kept.columns, self.find)

    def find(self, _: Columns) -> ApartColumns:
        self.asked += 1
        return self.apart


def test_what_is_set_apart_comes_back_message_by_message() -> None:
    apart = Apart(TURNS, STANDING)
    assert list(apart.nodes) == TURNS
    assert apart.nodes.texts == tuple(node.text for node in TURNS)
    assert apart.asked == 1


def test_ids_numbers_and_texts_that_stand_are_there_without_asking() -> None:
    apart = Apart(TURNS, STANDING)
    columns = apart.nodes.columns
    assert columns.names == tuple(node.id for node in TURNS)
    assert columns.numbers == tuple(node.number for node in TURNS)
    assert columns.texts == tuple(node.text if node.id in STANDING else None for node in TURNS)
    assert apart.nodes.known_texts == columns.texts
    assert not apart.nodes.are_read
    assert apart.asked == 0


def test_where_nobody_knows_what_stands_every_text_does() -> None:
    apart = Apart(TURNS)
    assert list_texts(apart.nodes) == apart.nodes.known_texts == tuple(node.text for node in TURNS)
    assert apart.nodes.are_read
    assert apart.asked == 0
    assert apart.nodes[3] == TURNS[3]
    assert apart.asked == 1


def test_once_texts_were_read_they_are_known() -> None:
    nodes = Apart(TURNS, STANDING).nodes
    assert nodes.texts == nodes.known_texts
    assert nodes.are_read


def test_what_stands_again_is_at_hand_again() -> None:
    kept, _ = set_apart(TURNS, set())
    again, apart = set_apart(kept, None)
    assert again.columns.texts == tuple(node.text for node in TURNS)
    assert apart[0] == {}
    assert list(PackedNodes(again.columns, lambda _: apart)) == TURNS


def test_turns_that_are_not_whole_keep_all_of_it() -> None:
    kept, apart = set_apart(TURNS[:5], set())
    assert apart == NOTHING_APART
    assert kept.columns == keep_packed(TURNS[:5]).columns
    assert write_apart(apart, ("chat", 0, 5)) == b""


def test_a_branch_is_listed_and_its_texts_are_found_where_they_are() -> None:
    apart = Apart(TURNS, STANDING)
    snapshot = replace(make_snapshot(fold(RECORDS), after=0), nodes=apart.nodes)
    log, _ = join_snapshots([snapshot], Log(CHAT))
    names, texts = list_said(log.path())
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
    assert log.path() == fold(RECORDS).path()


def test_rounds_of_tools_come_back_too() -> None:
    scribe = Scribe()
    scribe.ask("Look.")
    scribe.run("find", "a.md")
    scribe.reply("Found.")
    nodes = list(scribe.log.nodes.values())
    apart = Apart(nodes, set())
    assert apart.nodes.columns.line is not None
    assert list(apart.nodes) == nodes


PLACED = Placement(priced=True)
IMPRINT = Imprint(renderer=1, system="s", library="l", prefix="p", whole="w")
NOTE = StoredArtifact(id=ArtifactId("a"), kind=Kind.NOTE, title="a", hash="h", source=StoredSource())
OWN: dict[str, Callable[[MessageEvent, int], MessageEvent]] = {
    "where things stand": lambda event, _: replace(event, placement=PLACED),
    "where things stand at a price": lambda event, at: replace(event, placement=replace(PLACED, cost=float(at))),
    "what was sent": lambda event, at: replace(event, imprint=replace(IMPRINT, whole=f"{at}")),
    "what came along": lambda event, at: replace(event, attached=(replace(NOTE, hash=f"{at}"),)),
}


def change(node: Node, how: Callable[[MessageEvent, int], MessageEvent]) -> Node:
    return replace(node, event=how(node.event, node.number)) if isinstance(node.event, MessageEvent) else node


@pytest.mark.parametrize("own", OWN)
def test_turns_are_one_run_whatever_each_has_of_its_own(own: str) -> None:
    nodes = [change(node, OWN[own]) for node in TURNS]
    (run,) = find_runs(nodes)
    assert run[3] == 6
    assert list(Apart(nodes).nodes) == nodes


def test_turns_of_which_only_some_were_placed_are_no_run_with_the_others() -> None:
    nodes = [*TURNS[:2], change(TURNS[2], OWN["where things stand"]), *TURNS[3:]]
    assert [run[3] for run in find_runs(nodes)] == [1, 1, 4]


def test_what_is_apart_is_of_one_place_and_whole_or_not_at_all() -> None:
    _, apart = set_apart(TURNS, STANDING)
    data = write_apart(apart, ("chat", 0, 12))
    assert read_apart(data, ("other", 0, 12)) is None
    assert read_apart(data, ("chat", 0, 12)) == apart
    assert read_apart(data, ("chat", 0, 11)) is None
    assert read_apart(data, ("chat", 1, 12)) is None
    assert read_apart(data[:-1], ("chat", 0, 12)) is None
    assert read_apart(data + b"\0", ("chat", 0, 12)) is None
    assert read_apart(b"", ("chat", 0, 12)) is None


def test_a_snapshot_is_written_without_what_is_apart_and_reads_it_by_its_place() -> None:
    kept, apart = set_apart(TURNS, set())
    data = write_snapshot(replace(make_snapshot(fold(RECORDS), after=0), nodes=kept))
    assert data is not None
    places: list[tuple[str, int, int]] = []

    def find(place: tuple[str, int, int], _: Columns) -> ApartColumns:
        places.append(place)
        return apart

    snapshot = read_snapshot(data, find_apart=find)
    assert snapshot is not None
    assert places == []
    assert list(snapshot.nodes) == TURNS
    assert places == [("chat", 0, 12)]
    assert all(node.text.encode() not in data for node in TURNS if len(node.text) > 1)


def test_nothing_of_a_snapshot_holds_on_to_its_bytes() -> None:
    data = write_snapshot(make_snapshot(fold(RECORDS), after=0))
    assert data is not None
    held = getrefcount(data)
    snapshot = read_snapshot(data)
    assert snapshot is not None
    assert getrefcount(data) == held
