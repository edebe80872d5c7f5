"""Receipts as events: a compaction written down, read back exactly, and voided by an undo."""

import re
from collections.abc import Container, Iterable, Iterator

from lamella.core.artifacts.make import canonical_json
from lamella.core.log.events import Body, Contents, parse_body
from lamella.core.log.fields import as_list, as_mapping, as_text
from lamella.core.log.receipt import Receipt, Skip, Step, StepName
from lamella.core.log.records import EventKind, Record, Written
from lamella.core.text.content import encode_text, hash_text

_FRAME = re.compile(r"</?(?:conversation_summary|stage_digest|content|exact)>")
# What these take out are artifacts; all others take out messages.
_OF_ARTIFACTS = (StepName.PREVIEW, StepName.HANDLE, StepName.TOOL_RESULTS)


def write_receipt(receipt: Receipt, *, at: str, before: str | None = None) -> Written:
    """The event of a compaction; texts that stand in for messages are contents, so that they can be erased.

    ``before`` names a message that was asked already and is sent again after it.
    """
    texts = [text for step in receipt.steps if step.text is not None for text in (step.text, step.content)]
    contents = {hash_text(text): encode_text(text) for text in texts if text}
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
    steps = [step for body in bodies for step in as_list(body["steps"]) if isinstance(step, dict)]
    named = (step[name] for step in steps for name in ("text", "content") if name in step)
    return tuple(dict.fromkeys(map(as_text, named)))


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
    if step.text is not None:
        written["text"] = hash_text(step.text)
        if step.content:
            written["content"] = hash_text(step.content)
    return written


def _read_step(written: object, contents: Contents) -> Step:
    step = as_mapping(written)
    before, after = _numbers(step["tokens"])
    text = _read_text(step, "text", contents)
    content = _read_text(step, "content", contents)
    return Step(
        name=StepName(as_text(step["name"])),
        removed=tuple(as_text(name) for name in as_list(step["removed"])),
        text=text,
        # Receipts of before kept the block alone.
        content=content if content is not None else _strip_frame(text or ""),
        tokens_before=before,
        tokens_after=after,
    )


def _read_text(step: Body, name: str, contents: Contents) -> str | None:
    data = contents.get(as_text(step[name])) if name in step else None
    return None if data is None else data.decode()


def _strip_frame(block: str) -> str:
    """What a block of an older receipt tells, without the lines that make it a block."""
    return "\n".join(line for line in block.split("\n")[2:] if line and not _FRAME.fullmatch(line))


def _read_skipped(written: object) -> Skip:
    name, why = (as_text(part) for part in as_list(written))
    return Skip(name=StepName(name), why=why)


def _numbers(value: object) -> list[int]:
    numbers = [number for number in as_list(value) if isinstance(number, int)]
    if len(numbers) != len(as_list(value)):
        raise ValueError("a number of tokens was expected")
    return numbers
