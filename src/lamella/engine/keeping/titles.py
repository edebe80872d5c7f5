"""Titles: the one that was given last, else one made of the first question."""

from collections.abc import Sequence

from lamella.core.log.events.changes import RenameEvent
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.message import MessageEvent
from lamella.core.log.log import Log
from lamella.core.log.nodes import UNREADABLE, damaged
from lamella.core.log.records import EventKind, Record
from lamella.core.text.words import make_title


def tell_title(log: Log) -> str:
    """The title of a conversation."""
    if log.title:
        return log.title
    first = next(iter(log.nodes.values()), None)
    return "" if first is None else make_title(first.typed)


def read_title(records: Sequence[Record]) -> str | None:
    """The title that the first events of a conversation give; none where they give none."""
    given = read_given_title(records)
    first = next((record for record in records if record.kind is EventKind.MESSAGE), None)
    if given or first is None:
        return given
    event = _read(first)
    assert isinstance(event, MessageEvent)
    return make_title(event.text if event.typed is None else event.typed)


def read_given_title(records: Sequence[Record]) -> str | None:
    """The title that some events give; none where they give none: what a list shows then stays."""
    last = next((record for record in reversed(records) if record.kind is EventKind.RENAME), None)
    event = None if last is None else _read(last)
    return event.title if isinstance(event, RenameEvent) else None


def _read(record: Record) -> object:
    try:
        return read_event(record)
    except UNREADABLE as error:
        raise damaged("A title", error) from error
