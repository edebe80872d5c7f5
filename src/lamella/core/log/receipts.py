"""Receipts as events: a compaction written down, read back exactly, and voided by an undo."""

from collections.abc import Container, Iterable, Iterator

from lamella.core.artifacts.make import canonical_json
from lamella.core.log.events import Body, Contents, parse_body
from lamella.core.log.fields import as_list, as_mapping, as_text
from lamella.core.log.receipt import Cut, Receipt, Skipped, Step, StepName
from lamella.core.log.records import EventKind, Record, Written
from lamella.core.text.content import encode_text, hash_text

# What these take out are artifacts; all others take out messages.
_OF_ARTIFACTS = (StepName.PREVIEW, StepName.HANDLE, StepName.TOOL_RESULTS)


def write_receipt(receipt: Receipt, *, at: str, before: str | None = None) -> Written:
    """The event of a compaction; texts that stand in for messages are contents, so that they can be erased.

    ``before`` names a message that was asked already and is sent again after it.
    """
    texts = [step.cut.text for step in receipt.steps if step.cut.text is not None]
    contents = {hash_text(text): encode_text(text) for text in texts}
    body = {
        "id": receipt.id,
        "parent": receipt.parent,
        "steps": [_write_step(step) for step in receipt.steps],
        "skipped": [[skipped.name, skipped.why] for skipped in receipt.skipped],
        "tokens": [receipt.tokens_before, receipt.tokens_after],
        "target": receipt.target,
        "automatic": receipt.automatic,
        **({} if before is None else {"before": before}),
    }
    record = Record(kind=EventKind.COMPACTION, at=at, body=canonical_json(body), contents=tuple(contents))
    return Written(records=(record,), contents=contents)


def join_written(*parts: Written) -> Written:
    """Several events in one append."""
    records = tuple(record for part in parts for record in part.records)
    contents: dict[str, bytes] = {}
    for part in parts:
        contents.update(part.contents)
    return Written(records=records, contents=contents)


def read_receipt(body: Body, contents: Contents) -> Receipt:
    """The receipt that a body describes; a text that was erased stands in for nothing any more."""
    before, after = _numbers(body["tokens"])
    return Receipt(
        id=as_text(body["id"]),
        parent=as_text(body["parent"]),
        steps=tuple(_read_step(step, contents) for step in as_list(body["steps"])),
        skipped=tuple(_read_skipped(skipped) for skipped in as_list(body["skipped"])),
        tokens_before=before,
        tokens_after=after,
        target=_numbers([body["target"]])[0],
        automatic=body["automatic"] is True,
    )


def receipt_hashes(bodies: Iterable[Body]) -> tuple[str, ...]:
    """The hashes of every text that receipts put in place of messages."""
    steps = [step for body in bodies for step in as_list(body["steps"])]
    return tuple(dict.fromkeys(as_text(step["text"]) for step in steps if isinstance(step, dict) and "text" in step))


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
        body = parse_body(record)
        receipt = read_receipt(body, contents)
        unlisted = set(receipt_hashes([body])).symmetric_difference(record.contents)
    except (LookupError, TypeError, ValueError) as error:
        return f"cannot be read: {error}"
    if unlisted:
        return f"names other texts than it lists: {min(unlisted)}"
    taken = (name for step in receipt.steps if step.name not in _OF_ARTIFACTS for name in step.removed)
    named = (*taken, *((receipt.parent,) if receipt.parent else ()))
    unknown = next((name for name in named if name not in said), None)
    return None if unknown is None else f"names a message that was never said: {unknown}"


def _write_step(step: Step) -> dict[str, object]:
    written: dict[str, object] = {
        "name": step.name,
        "removed": list(step.removed),
        "tokens": [step.tokens_before, step.tokens_after],
    }
    if step.cut.text is not None:
        written["text"] = hash_text(step.cut.text)
    return written


def _read_step(written: object, contents: Contents) -> Step:
    step = as_mapping(written)
    before, after = _numbers(step["tokens"])
    text = contents.get(as_text(step["text"])) if "text" in step else None
    cut = Cut(
        name=StepName(as_text(step["name"])),
        removed=tuple(as_text(name) for name in as_list(step["removed"])),
        text=None if text is None else text.decode(),
    )
    return Step(cut=cut, tokens_before=before, tokens_after=after)


def _read_skipped(written: object) -> Skipped:
    name, why = (as_text(part) for part in as_list(written))
    return Skipped(name=StepName(name), why=why)


def _numbers(value: object) -> list[int]:
    numbers = [number for number in as_list(value) if isinstance(number, int)]
    if len(numbers) != len(as_list(value)):
        raise ValueError("a number of tokens was expected")
    return numbers
