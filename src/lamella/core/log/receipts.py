"""Compactions looked at: those that could not be applied as they were made."""

from collections.abc import Container, Iterable, Iterator

from lamella.core.log.events.artifact import Contents
from lamella.core.log.events.codec import read_event
from lamella.core.log.events.compaction import CompactionEvent, read_receipt
from lamella.core.log.receipt import StepName, is_stage
from lamella.core.log.records import EventKind, Record

# What these take out are artifacts; all others take out messages.
_OF_ARTIFACTS = (StepName.PREVIEW, StepName.HANDLE, StepName.TOOL_RESULTS)


def find_faulty_receipts(
    records: Iterable[Record], *, said: Container[str], contents: Contents
) -> Iterator[tuple[int, str]]:
    """Compactions that could not be applied as they were made: the number of each event, and what is wrong with it.

    ``said`` are the ids of all messages; ``contents`` are the texts at hand, without those that were erased.
    """
    for number, record in enumerate(records, start=1):
        if record.kind is EventKind.COMPACTION:
            fault = _find_fault(record, said=said, contents=contents)
            if fault is not None:
                yield number, fault


def _find_fault(record: Record, *, said: Container[str], contents: Contents) -> str | None:
    try:
        event = read_event(record)
        assert isinstance(event, CompactionEvent)
        receipt = read_receipt(event, contents)
    except ValueError as error:
        return f"cannot be read: {error}"
    if unlisted := set(event.hashes()).symmetric_difference(record.contents):
        return f"names other texts than it lists: {min(unlisted)}"
    messages = (name for step in receipt.steps if step.name not in _OF_ARTIFACTS for name in step.removed)
    taken = (name for name in messages if not is_stage(name))
    named = (*taken, *((receipt.parent,) if receipt.parent else ()))
    unknown = next((name for name in named if name not in said), None)
    return None if unknown is None else f"names a message that was never said: {unknown}"
