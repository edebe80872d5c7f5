"""The events that every format of snapshots is held to, and what snapshots of them are."""

import json
from hashlib import sha256
from pathlib import Path

from lamella.core.log.ids import Voice
from lamella.core.log.log import FORMAT, Log
from lamella.core.log.nodes import Node
from lamella.core.log.records import EventKind, Record
from lamella.core.log.snapshots.columns import set_apart
from lamella.core.log.snapshots.snapshot import Snapshot, make_snapshot, write_apart, write_snapshot
from lamella.core.text.content import canonical_json
from lamella.core.values import replace

FOLDER = Path(__file__).parent
NAME = "golden"


def golden_file(number: int = FORMAT) -> Path:
    return FOLDER / f"format.{number:04}.json"


def read_events() -> list[Record]:
    """Events of every kind that shapes a log, as a conversation wrote them."""
    written = json.loads((FOLDER / "events.json").read_text(encoding="utf-8"))
    return [
        Record(
            kind=EventKind(event["kind"]),
            at=event["at"],
            body=canonical_json(event["body"]),
            contents=tuple(event["contents"]),
        )
        for event in written
    ]


def fold(records: list[Record]) -> Log:
    log = Log(NAME)
    log.extend(records)
    return log


def take_snapshot(records: list[Record]) -> Snapshot:
    """A snapshot of events, with counts that nobody made."""
    snapshot = make_snapshot(fold(records), after=0)
    return replace(snapshot, tokens={1: [*range(-1, len(snapshot.nodes) - 1)]}, counts=bytes(range(44)), state=b"state")


def describe() -> str:
    """The bytes of the last snapshot, and a digest of each that leads there."""
    records = read_events()
    written = [write_snapshot(take_snapshot(records[:end])) or b"" for end in range(1, len(records) + 1)]
    told = {"bytes": written[-1].hex(), "digests": [sha256(data).hexdigest() for data in written]}
    return json.dumps({**told, "apart": write_turns_apart().hex()}, indent=1) + "\n"


def take_turns() -> list[Node]:
    """Whole turns, each after another: only of such is something kept apart."""
    nodes = fold(read_events()).nodes
    name, turns = "", list[Node]()
    while (asked := next((one for one in nodes.values() if one.parent == name and one.role is Voice.USER), None)) and (
        said := next((one for one in nodes.values() if one.parent == asked.id), None)
    ):
        turns += [asked, said]
        name = said.id
    return turns


def write_turns_apart() -> bytes:
    """What is kept apart of them where every second message stands."""
    turns = take_turns()
    _, apart = set_apart(turns, {one.id for one in turns[::2]})
    return write_apart(apart, (NAME, 3, 9))
