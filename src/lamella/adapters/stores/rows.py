"""Rows of events, read back as records."""

import json

from lamella.adapters.stores.database import Row
from lamella.core.history.records import EventKind, Record
from lamella.errors import StoreDamagedError

EVENT_COLUMNS = "seq, kind, at, body, contents, hash"
VERIFY = "Run `lamella store verify` to see what is damaged, and restore it from a backup."


def read_record(conversation: str, row: Row) -> Record:
    """The record a row holds, or an error that names the event."""
    seq, kind, at, body, contents, _ = row
    try:
        return Record(kind=EventKind(kind), at=at, body=body, contents=_read_hashes(contents))
    except ValueError as error:
        raise StoreDamagedError(
            f"Event {seq} of the conversation {conversation} cannot be read: {error}.", hint=VERIFY
        ) from error


def _read_hashes(contents: str) -> tuple[str, ...]:
    if contents == "[]":
        return ()
    names = json.loads(contents)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its contents are not a list of hashes")
    return tuple(names)
