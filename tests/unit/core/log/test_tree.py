"""The tree as snapshots keep it: runs of talk are told without unpacking, and everything else is as it was folded."""

from collections.abc import Sequence

import pytest
from msgspec import Raw, msgpack
from tests.unit.core.log.scribe import Scribe
from tests.unit.core.log.snapshots.test_snapshot import AT, CHAT, RECORDS, fold, snap
from tests.unit.raw import write_raw

from lamella.core.log.branch import path_hashes, read_past, read_turns
from lamella.core.log.events.imprint import Imprint
from lamella.core.log.events.reply import ReplyEvent
from lamella.core.log.log import Log
from lamella.core.log.nodes import Node, Told, ToldRun, list_parts, list_said, name_messages, split_told
from lamella.core.log.records import EventKind, Record
from lamella.core.log.snapshots.columns import PackedNodes, find_runs, list_texts, pack_nodes
from lamella.core.log.snapshots.snapshot import join_snapshots, make_snapshot
from lamella.core.log.terms import Terms
from lamella.core.log.tree import Nodes, list_parents
from lamella.core.log.turn import Turn, TurnRun, list_turns
from lamella.core.values import replace
from lamella.errors import StoreDamagedError


def restore(*ends: int, records: Sequence[Record] = RECORDS) -> Log:
    """A log out of snapshots that each end after so many events."""
    starts = (0, *ends)
    kept = [make_snapshot(fold(records[:end]), after=start) for start, end in zip(starts, ends, strict=False)]
    return join_snapshots(kept, Log(CHAT))[0]


def nodes_of(log: Log) -> Nodes:
    assert isinstance(log.nodes, Nodes)
    return log.nodes


def runs_on(log: Log) -> list[int]:
    """How many turns each run of the active branch has."""
    return [len(part.names) // 2 for part in list_parts(log.path()) if isinstance(part, ToldRun)]


def test_talk_is_one_run_for_each_snapshot() -> None:
    assert runs_on(restore(8, 12)) == [4, 2]
    assert runs_on(fold(RECORDS)) == []


def test_a_turn_that_two_snapshots_share_stands_apart_between_their_runs() -> None:
    log = restore(7, 12)
    assert runs_on(log) == [3, 2]
    assert log.path() == fold(RECORDS).path()


def test_the_turns_of_a_run_are_those_that_were_folded() -> None:
    log, folded = restore(8, 12), fold(RECORDS)
    assert log.path() == folded.path()
    assert list(reversed(log.path())) == list(reversed(folded.path()))
    assert (log.path()[0], log.path()[-1], log.path()[1:3]) == (
        folded.path()[0],
        folded.path()[-1],
        folded.path()[1:3],
    )
    assert len(log.path()) == 6
    assert name_messages(log.path()) == name_messages(folded.path())
    with pytest.raises(IndexError):
        log.path()[6]


@pytest.mark.parametrize("ends", [(8, 12), (7, 12), (5, 9), (12,), (4,)])
def test_any_turn_of_a_branch_is_found_by_its_number(ends: tuple[int, ...]) -> None:
    path = restore(*ends).path()
    told = list(path)
    assert [path[at] for at in range(len(path))] == told
    assert [path[at - len(path)] for at in range(len(path))] == told
    assert all(path[first:end] == told[first:end] for first in range(-8, 8) for end in range(-8, 8))
    assert path[::-2] == told[::-2]


def test_what_was_said_is_listed_alike_in_runs_and_turn_by_turn() -> None:
    log, folded = restore(7, 12), fold(RECORDS)
    names, texts = list_said(log.path())
    assert (names, texts) == list_said(folded.path())
    nodes = [node for told in folded.path() for node in (told.message, told.reply) if node is not None]
    assert (names, texts) == (tuple(node.id for node in nodes), tuple(node.event.text for node in nodes))


@pytest.mark.parametrize("ends", [(8, 12), (7, 12), ()])
@pytest.mark.parametrize("turns", range(7))
def test_a_branch_is_split_after_any_turn_whatever_runs_it_has(ends: tuple[int, ...], turns: int) -> None:
    path = (restore(*ends) if ends else fold(RECORDS)).path()
    before, rest = (name_messages(part) for part in split_told(path, turns))
    assert (before, rest) == (name_messages(path)[: 2 * turns], name_messages(path)[2 * turns :])


def test_turns_read_for_going_on_are_those_read_one_by_one_but_for_what_was_sent() -> None:
    log, folded = restore(8, 12), fold(RECORDS)
    read = [replace(turn, imprint=None) for turn in read_turns(folded.path(), {}, usual=Terms())]
    assert list_turns(read_past(log.path(), {}, usual=Terms())) == read


def test_what_turns_brought_is_named_and_read_without_unpacking() -> None:
    note = {"id": "a.md", "kind": "note", "title": "a", "hash": "sha256:a", "source": {"path": "a.md"}}
    asked = write_raw(EventKind.MESSAGE, AT, id="q", parent="", text="With it?", attached=[note]).records
    records = [*asked, *write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records]
    log = restore(2, records=records)
    assert runs_on(log) == [1]
    assert path_hashes(log.path()) == ("sha256:a",)
    (turn,) = list_turns(read_past(log.path(), {"sha256:a": b"Text."}, usual=Terms()))
    assert [artifact.text for artifact in turn.attached] == ["Text."]
    (gone,) = list_turns(read_past(log.path(), {}, usual=Terms()))
    assert (gone.attached, gone.warnings) == ((), ("a.md was erased and is left out.",))


@pytest.mark.parametrize(("attachments", "kind"), [("turn", TurnRun), ("sticky", Turn)])
def test_a_turn_that_brought_what_stays_attached_is_read_apart_from_its_run(attachments: str, kind: type) -> None:
    note = {"id": "a.md", "kind": "note", "title": "a", "hash": "sha256:a", "source": {"path": "a.md"}}
    said: dict[str, object] = {"id": "q", "parent": "", "text": "With it?", "attached": [note]}
    asked = write_raw(EventKind.MESSAGE, AT, **said, attachments=attachments).records
    records = [*asked, *write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records]
    log = restore(2, records=records)
    assert runs_on(log) == [1]
    (part,) = read_past(log.path(), {"sha256:a": b"Text."}, usual=Terms())
    assert isinstance(part, kind)


def test_messages_of_a_snapshot_equal_the_same_in_any_sequence_and_no_others() -> None:
    nodes = [*fold(RECORDS).nodes.values()]
    packed = PackedNodes(pack_nodes(nodes))
    assert packed == nodes
    assert packed != nodes[:-1]
    assert packed != nodes[0]


def test_a_question_that_says_more_than_its_terms_is_in_no_run() -> None:
    said = [
        *RECORDS[:2],
        *write_raw(EventKind.MESSAGE, AT, id="q", parent=fold(RECORDS[:2]).head, text="?", fold=True).records,
    ]
    said += write_raw(EventKind.REPLY, AT, id="r", parent="q", text="Yes.").records
    assert [run[3] for run in find_runs(list(fold(said).nodes.values()))] == [1]


def test_from_the_middle_of_a_run_a_branch_is_told_turn_by_turn() -> None:
    log, folded = restore(12), fold(RECORDS)
    middle = folded.path()[2]
    assert middle.reply is not None
    assert log.path(middle.reply.id) == folded.path(middle.reply.id)
    assert all(isinstance(part, Told) for part in list_parts(log.path(middle.reply.id)))


def test_a_message_said_again_ends_what_is_taken_for_granted() -> None:
    again = [*RECORDS, *write_raw(EventKind.SWITCH, AT, head=fold(RECORDS).path()[0].message.id).records, RECORDS[1]]
    log = restore(12, records=again)
    log.extend(again[12:])
    assert log == fold(again)
    assert nodes_of(log).runs == {}
    assert log.path() == fold(again).path()
    assert nodes_of(restore(12, 14, records=again)).runs == {}


def test_a_log_that_goes_on_snapshots_only_what_is_new() -> None:
    log = restore(8)
    log.extend(RECORDS[8:])
    made = make_snapshot(log, after=8)
    assert made == make_snapshot(fold(RECORDS), after=8)
    assert make_snapshot(log, after=0) == make_snapshot(fold(RECORDS), after=0)
    assert len(log.nodes) == 12


def test_numbers_and_texts_are_known_of_what_is_packed() -> None:
    nodes, folded = nodes_of(restore(12)), fold(RECORDS).nodes
    assert {name: nodes.number(name) for name in nodes} == {name: node.number for name, node in folded.items()}
    assert list(list_texts(snap(12).nodes)) == [node.text for node in folded.values()]


def test_a_log_forgets_no_message() -> None:
    nodes = nodes_of(restore(12))
    with pytest.raises(TypeError):
        del nodes[next(iter(nodes))]


def test_whole_turns_that_follow_one_another_are_told_without_a_look_at_the_rest() -> None:
    records = RECORDS[:8]
    told = fold(records).path()
    snapshot = make_snapshot(fold(records), after=0)
    columns = pack_nodes(snapshot.nodes)._replace(rest=Raw(b"nothing that was written"))
    assert columns.line is not None
    log, _ = join_snapshots([replace(snapshot, nodes=PackedNodes(columns))], Log(CHAT))
    assert list_said(log.path()) == list_said(told)
    assert len(log.path()) == len(told)
    assert list(list_parents(log.nodes)) == [(name, node.parent) for name, node in fold(records).nodes.items()]
    with pytest.raises(StoreDamagedError):
        list(log.path())


def test_what_cannot_be_unpacked_is_damage() -> None:
    columns = pack_nodes(snap(12).nodes)
    runs, apart, _ = msgpack.decode(columns.rest)

    def read(rest: bytes) -> Node:
        return PackedNodes(columns._replace(rest=Raw(rest)))[0]

    for packed in (b"", b"nothing that was packed"):
        with pytest.raises(StoreDamagedError):
            read(msgpack.encode((runs, apart, packed)))
    with pytest.raises(StoreDamagedError, match="cannot be read: Expected"):
        read(b"nothing that was written")


def test_hashes_of_what_was_sent_are_packed_by_number_and_come_back_as_they_were() -> None:
    scribe, sent = (
        Scribe(),
        Imprint(renderer=1, system="sha256:s", library="sha256:l", prefix="sha256:p", whole="sha256:1"),
    )
    for number in (1, 2):
        scribe.ask(f"q{number}", imprint=replace(sent, whole=f"sha256:{number}"))
        scribe.reply(f"a{number}")
    log = join_snapshots([make_snapshot(scribe.log, after=0)], Log(CHAT))[0]
    imprints = [told.message.event.imprint for told in log.path() if not isinstance(told.message.event, ReplyEvent)]
    assert imprints == [replace(sent, whole="sha256:1"), replace(sent, whole="sha256:2")]
