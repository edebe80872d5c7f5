"""Marks: after which message a conversation was compacted, and after which one that was undone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lamella.core.log.branch import read_receipts
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.compaction import CompactionEvent
from lamella.core.log.log import Log
from lamella.core.log.receipt import Receipt
from lamella.core.log.records import EventKind, Record
from lamella.faces.cli.receipts import tell_receipt

_MARKED = (EventKind.COMPACTION, EventKind.UNDO)


@dataclass(slots=True)
class _Mark:
    """A line below a message; a compaction that is still in force has its receipt."""

    message: str
    line: str
    receipt: Receipt | None = None


def find_marks(conversation: str, records: Sequence[Record]) -> Mapping[str, Sequence[str]]:
    """Lines to show below messages, by the id of the message."""
    log = Log(conversation)
    marks: list[_Mark] = []
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
                marks.append(_undo(log, marks, before))
    lines: dict[str, list[str]] = {}
    for mark in marks:
        lines.setdefault(mark.message, []).append(mark.line)
    return lines


def _mark(record: Record) -> _Mark:
    event = read_event(record)
    assert isinstance(event, CompactionEvent)
    (receipt,) = read_receipts([event], {})
    return _Mark(receipt.parent, f"compacted: {tell_receipt(receipt)}", receipt)


def _undo(log: Log, marks: Sequence[_Mark], before: Sequence[str]) -> _Mark:
    """The line of an undo; what it voided says so as well."""
    voided = [name for name in before if name not in _in_force(log)]
    for mark in marks:
        if mark.receipt is not None and mark.receipt.id in voided:
            mark.line, mark.receipt = f"{mark.line}, undone later", None
    return _Mark(log.head, f"undone: {', '.join(voided)}")


def _in_force(log: Log) -> Sequence[str]:
    return [event.id for event in log.committed(log.path()).events]
