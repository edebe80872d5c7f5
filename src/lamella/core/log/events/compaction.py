"""Compactions: a receipt written down and read back exactly, and the undo that voids it."""

import re
from collections.abc import Iterator

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from lamella.core.log.events.artifact import Contents, read_kept
from lamella.core.log.receipt import Certificate, Receipt, Skip, Step, StepName
from lamella.core.text.content import canonical_json, encode_text, hash_text

_COUNTS = 6
_GISTS = Decoder(tuple[str, ...])
_FRAME = re.compile(r"</?(?:conversation_summary|stage_digest|content|exact)>")


class StoredStep(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A step; ``text`` and ``content`` are hashes: of the block that stands in for what went, and of what it tells.

    ``gists`` is the hash of what outlines tell, as a list in JSON.
    """

    name: StepName
    removed: tuple[str, ...]
    tokens: tuple[int, int]
    text: str | None = None
    content: str | None = None
    gists: str | None = None


class StoredSkip(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A step that could have run and did not."""

    name: StepName
    why: str


class CompactionEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="compaction"):
    """A compaction after the message ``parent``. ``before`` is one that was asked already and is sent again after it.

    ``chain`` says by which rules it is applied; what does not say so is of the first. ``certificate`` are the counts of
    exact words and of wishes that stand, are recallable and are gone. ``since`` is the message that it begins with,
    where nothing before that moved.

    Texts that stand in for messages are contents, so that they can be erased.
    """

    id: str
    parent: str
    steps: tuple[StoredStep, ...]
    skipped: tuple[StoredSkip, ...]
    tokens: tuple[int, int]
    target: int
    automatic: bool
    before: str | None = None
    chain: int = 1
    certificate: tuple[int, ...] = ()
    since: str = ""

    def hashes(self) -> Iterator[str]:
        """The texts that it put in place of messages."""
        for step in self.steps:
            yield from (name for name in (step.text, step.content, step.gists) if name is not None)


class UndoEvent(Struct, frozen=True, kw_only=True, gc=False):
    """A compaction and all later ones of the branch are void."""

    receipt: str


def make_compaction(receipt: Receipt, *, before: str | None = None) -> CompactionEvent:
    """The event of a compaction."""
    return CompactionEvent(
        id=receipt.id,
        parent=receipt.parent,
        steps=tuple(map(_store_step, receipt.steps)),
        skipped=tuple(StoredSkip(name=skip.name, why=skip.why) for skip in receipt.skipped),
        tokens=(receipt.tokens_before, receipt.tokens_after),
        target=receipt.target,
        automatic=receipt.automatic,
        before=before,
        chain=receipt.chain,
        certificate=() if receipt.certificate is None else (*receipt.certificate.words, *receipt.certificate.rules),
        since=receipt.since,
    )


def gather_receipt(receipt: Receipt) -> dict[str, bytes]:
    """The contents that the event of a compaction names."""
    contents: dict[str, bytes] = {}
    for step in receipt.steps:
        if step.text is not None:
            contents[hash_text(step.text)] = encode_text(step.text)
            if step.content:
                contents[hash_text(step.content)] = encode_text(step.content)
        if step.gists:
            contents[hash_text(_write_gists(step))] = encode_text(_write_gists(step))
    return contents


def read_receipt(event: CompactionEvent, contents: Contents) -> Receipt:
    """The receipt that an event describes; a text that was erased stands in for nothing any more."""
    return Receipt(
        id=event.id,
        parent=event.parent,
        steps=tuple(_read_step(step, contents) for step in event.steps),
        skipped=tuple(Skip(name=skip.name, why=skip.why) for skip in event.skipped),
        tokens_before=event.tokens[0],
        tokens_after=event.tokens[1],
        target=event.target,
        automatic=event.automatic,
        chain=event.chain,
        certificate=_read_certificate(event.certificate),
        since=event.since,
    )


def _read_certificate(counts: tuple[int, ...]) -> Certificate | None:
    if len(counts) != _COUNTS:
        return None
    return Certificate(words=(counts[0], counts[1], counts[2]), rules=(counts[3], counts[4], counts[5]))


def _store_step(step: Step) -> StoredStep:
    return StoredStep(
        name=step.name,
        removed=step.removed,
        tokens=(step.tokens_before, step.tokens_after),
        text=hash_text(step.text) if step.text is not None else None,
        content=hash_text(step.content) if step.text is not None and step.content else None,
        gists=hash_text(_write_gists(step)) if step.gists else None,
    )


def _write_gists(step: Step) -> str:
    return canonical_json(list(step.gists))


def _read_gists(stored: StoredStep, contents: Contents) -> tuple[str, ...]:
    """What outlines tell; where that is not at hand, or is of other messages, it is found again in what was said."""
    text = read_kept(stored.gists, contents)
    try:
        gists = _GISTS.decode(text) if text else ()
    except DecodeError:
        return ()
    return gists if len(gists) == len(stored.removed) else ()


def _read_step(stored: StoredStep, contents: Contents) -> Step:
    text = read_kept(stored.text, contents)
    content = read_kept(stored.content, contents)
    return Step(
        name=stored.name,
        removed=stored.removed,
        text=text,
        # Receipts of before kept the block alone.
        content=content if content is not None else _strip_frame(text or ""),
        gists=_read_gists(stored, contents) if stored.gists else (),
        tokens_before=stored.tokens[0],
        tokens_after=stored.tokens[1],
    )


def _strip_frame(block: str) -> str:
    """What a block of an older receipt tells, without the lines that make it a block."""
    return "\n".join(line for line in block.split("\n")[2:] if line and not _FRAME.fullmatch(line))
