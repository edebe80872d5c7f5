"""Rows of events, read back as records."""

import json
from typing import TypeGuard

from lamella.adapters.stores.database import Row
from lamella.core.log.records import EventKind, Record
from lamella.core.text.content import hash_bytes
from lamella.doors import Door
from lamella.errors import StoreDamagedError
from lamella.holdings import ChatListing

RECORD_COLUMNS = "seq, kind, at, body, contents, counts"
LISTED_COLUMNS = "id, name, title, created, updated, version, erased"
_KINDS = {kind.value: kind for kind in EventKind}


def tell_damage(door: Door) -> str:
    """What to do where a row, or what it names, is damaged."""
    return f"{door.verify_store()} tells what is damaged; restore it from a backup."


def tell_repair(door: Door) -> str:
    """What to do where a row is damaged that follows from others."""
    return f"{door.repair_store()} derives again what the events still tell."


def read_record(conversation: str, row: Row) -> Record:
    """The record a row holds, or an error that names the event."""
    seq, kind, at, body, contents, counts = row
    try:
        if not (isinstance(at, str) and isinstance(body, str)):
            raise ValueError(f"{at!r} or its body is no text")
        return Record(
            kind=_KINDS.get(kind) or EventKind(kind),
            at=at,
            body=body,
            contents=() if contents == "[]" else _read_hashes(contents),
            # Counts of another type than bytes are nobody's; without them the texts are counted again.
            counts=counts if isinstance(counts, bytes) else b"",
        )
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreDamagedError(
            f"Event {seq} of the conversation {conversation} cannot be read: {error}.", hint=tell_damage
        ) from error


def read_listing(row: Row) -> ChatListing:
    """The listing a row holds. A value of another type is left out: verifying tells of it, and others are listed."""
    key, name, title, created, updated, version, erased = row
    return ChatListing(
        conversation=_read_text(key),
        name=name if is_key(name) else _read_text(key),
        title=_read_text(title),
        created=_read_text(created),
        updated=_read_text(updated),
        version=version if isinstance(version, int) else 0,
        erased=None if erased is None else _read_text(erased),
    )


def _read_text(value: object) -> str:
    return value if is_text(value) else ""


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text that can be written as UTF-8; SQLite keeps anything in any column."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value))


def is_key(value: object) -> TypeGuard[str]:
    """Whether a value can be the key of a conversation in every store."""
    return is_text(value) and bool(value) and "\0" not in value


def read_version(conversation: str, version: object) -> int:
    """How many events a conversation says it has, or an error that it does not say so."""
    if isinstance(version, int):
        return version
    raise StoreDamagedError(
        f"The conversation {conversation} has {version!r} where the number of its events should be.", hint=tell_repair
    )


def write_record(seq: int, record: Record, *, counted: bool) -> Row:
    """The row of a record, with or without its counts."""
    counts = record.counts if counted and record.counts else None
    contents = json.dumps(record.contents) if record.contents else "[]"
    return seq, record.kind.value, record.at, record.body, contents, counts


def is_content(name: object, data: object) -> bool:
    """Whether a row holds what its name says."""
    return isinstance(data, bytes) and hash_bytes(data) == name


def _read_hashes(contents: str) -> tuple[str, ...]:
    names = json.loads(contents)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its contents are not a list of hashes")
    return tuple(names)
