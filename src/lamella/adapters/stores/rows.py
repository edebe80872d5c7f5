"""Rows of events, read back as records."""

import json

from lamella.adapters.stores.database import Row
from lamella.core.log.records import EventKind, Record
from lamella.doors import Door
from lamella.errors import StoreDamagedError

RECORD_COLUMNS = "seq, kind, at, body, contents, counts"
_KINDS = {kind.value: kind for kind in EventKind}


def tell_damage(door: Door) -> str:
    """What to do where a row, or what it names, is damaged."""
    return f"{door.verify_store()} tells what is damaged; restore it from a backup."


def read_record(conversation: str, row: Row) -> Record:
    """The record a row holds, or an error that names the event."""
    seq, kind, at, body, contents, counts = row
    try:
        return Record(
            kind=_KINDS.get(kind) or EventKind(kind),
            at=at,
            body=body,
            contents=() if contents == "[]" else _read_hashes(contents),
            # Counts of another type than bytes are nobody's; without them the texts are counted again.
            counts=counts if isinstance(counts, bytes) else b"",
        )
    except ValueError as error:
        raise StoreDamagedError(
            f"Event {seq} of the conversation {conversation} cannot be read: {error}.", hint=tell_damage
        ) from error


def write_record(seq: int, record: Record, *, counted: bool) -> Row:
    """The row of a record, with or without its counts."""
    counts = record.counts if counted and record.counts else None
    return seq, record.kind.value, record.at, record.body, json.dumps(record.contents), counts


def _read_hashes(contents: str) -> tuple[str, ...]:
    names = json.loads(contents)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its contents are not a list of hashes")
    return tuple(names)
