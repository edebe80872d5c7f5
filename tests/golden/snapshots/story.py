"""The events that every snapshot format is tested with, and the snapshots of them."""

import json
from hashlib import sha256
from pathlib import Path

from lamella.core.log.events.kinds import EventKind, EventRecord
from lamella.core.log.log import SNAPSHOT_FORMAT, FoldedLog
from lamella.core.log.snapshots import Snapshot, encode_separate_columns, encode_snapshot, make_snapshot
from lamella.core.log.tree import split_columns
from lamella.core.log.turn import MessageAuthor
from lamella.core.log.turn_records import MessageNode
from lamella.core.text.content import canonical_json
from lamella.core.values import replace

FOLDER = Path(__file__).parent
NAME = "golden"


def golden_file(number: int = SNAPSHOT_FORMAT) -> Path:
    return FOLDER / f"format.{number:04}.json"


def read_events() -> list[EventRecord]:
    """Events of every kind that shapes a log, as a conversation wrote them."""
    written = json.loads((FOLDER / "events.json").read_text(encoding="utf-8"))
    return [
        EventRecord(
            kind=EventKind(event["kind"]),
            at=event["at"],
            body=canonical_json(event["body"]),
            contents=tuple(event["contents"]),
        )
        for event in written
    ]


def fold(records: list[EventRecord]) -> FoldedLog:
    log = FoldedLog(NAME)
    log.extend(records)
    return log


def take_snapshot(records: list[EventRecord]) -> Snapshot:
    """A snapshot of events, with counts that nobody made."""
    snapshot = make_snapshot(fold(records), after=0)
    return replace(
        snapshot,
        message_token_counts={1: [*range(-1, len(snapshot.nodes) - 1)]},
        text_token_counts=bytes(range(44)),
        encoded_state=b"state",
    )


def describe() -> str:
    """The bytes of the last snapshot, and a digest of each that leads there."""
    records = read_events()
    written = [encode_snapshot(take_snapshot(records[:end])) or b"" for end in range(1, len(records) + 1)]
    told = {"bytes": written[-1].hex(), "digests": [sha256(data).hexdigest() for data in written]}
    return json.dumps({**told, "apart": write_separate_turns().hex()}, indent=1) + "\n"


def take_turns() -> list[MessageNode]:
    """Whole turns, each after another: only of such is something stored separately."""
    nodes = fold(read_events()).nodes
    name, turns = "", list[MessageNode]()
    while (
        asked := next((one for one in nodes.values() if one.parent == name and one.role is MessageAuthor.USER), None)
    ) and (said := next((one for one in nodes.values() if one.parent == asked.id), None)):
        turns += [asked, said]
        name = said.id
    return turns


def write_separate_turns() -> bytes:
    """What is stored separately of them where every second message stands."""
    turns = take_turns()
    _, apart = split_columns(turns, {one.id for one in turns[::2]})
    return encode_separate_columns(apart, (NAME, 3, 9))
