"""Marks: after which message a conversation was compacted, and after which one that was undone."""

from collections.abc import Sequence

from msgspec import Struct

from lamella.core.log.branch import read_receipts
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.log import Log
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import EventKind, Record
from lamella.core.values import replace

_MARKED = (EventKind.COMPACTION, EventKind.UNDO)


class CompactionMark(Struct, frozen=True, kw_only=True):
    """Something that happened after a message: a compaction, by its receipt, or an undo, by what it ``voided``.

    A compaction that was ``undone`` later is no longer in force.
    """

    message: str
    receipt: Receipt | None = None
    undone: bool = False
    voided: tuple[str, ...] = ()


def find_marks(conversation: str, records: Sequence[Record]) -> tuple[CompactionMark, ...]:
    """Every compaction and every undo of a conversation, in the order in which they happened."""
    log = Log(conversation)
    marks: list[CompactionMark] = []
    start = 0
    for end, record in enumerate(records):
        if record.kind in _MARKED:
            log.extend(records[start:end])
            before = _in_force(log)
            log.extend((record,))
            start = end + 1
            if record.kind is EventKind.COMPACTION:
                marks.append(_mark(record))
            else:
                marks = _undo(log, marks, before)
    return tuple(marks)


def _mark(record: Record) -> CompactionMark:
    event = read_event(record)
    assert isinstance(event, CompactionEvent)
    (receipt,) = read_receipts([event], {})
    return CompactionMark(message=receipt.parent, receipt=receipt)


def _undo(log: Log, marks: Sequence[CompactionMark], before: Sequence[str]) -> list[CompactionMark]:
    """The marks with one for an undo; what it voided says so as well."""
    voided = tuple(name for name in before if name not in _in_force(log))
    told = [
        replace(mark, undone=True) if mark.receipt is not None and mark.receipt.id in voided else mark for mark in marks
    ]
    return [*told, CompactionMark(message=log.head, voided=voided)]


def _in_force(log: Log) -> Sequence[str]:
    return [event.id for event in log.committed(log.path()).events]
