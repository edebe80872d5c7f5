"""Events of compactions and of workflow stages.

``CompactionEvent`` stores a receipt, and ``UndoEvent`` voids it; ``make_compaction_event`` and ``read_receipt``
convert in both directions. ``StageEvent`` is an action on a workflow stage. The start event contains the whole
``WorkflowSpec``, so that later changes of the workflow file do not affect a running workflow.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from lamella.core.log.events.artifact import ContentsByHash, read_stored_text
from lamella.core.log.receipts import (
    CompactionCertificate,
    CompactionReceipt,
    CompactionStep,
    CompactionStepName,
    SkippedStep,
)
from lamella.core.text.content import canonical_json, encode_text, hash_text

_CERTIFICATE_LENGTH = 6
_GISTS_DECODER = Decoder(tuple[str, ...])
_BLOCK_TAG = re.compile(r"</?(?:conversation_summary|stage_digest|content|exact)>")


class StoredStep(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A stored compaction step.

    ``text`` and ``content`` are hashes of the placeholder block and of its text. ``gists`` is the hash of the texts of
    reply outlines, as a JSON list.
    """

    name: CompactionStepName
    removed: tuple[str, ...]
    tokens: tuple[int, int]
    text: str | None = None
    content: str | None = None
    gists: str | None = None


class StoredSkip(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A step that could have run and did not."""

    name: CompactionStepName
    why: str


class CompactionEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, tag="compaction"):
    """A compaction after the message ``parent``.

    - ``before``: an existing message that is sent again after the compaction.
    - ``chain``: the version of the rules by which it is applied; events without it have version 1.
    - ``certificate``: counts of exact tokens and of rules that are in the prompt, recallable, and lost.
    - ``since``: the first message that the compaction covers, if nothing before it changed.
    - ``soft``: the token count down to which user messages were removed, if it differs from ``target``.
    - ``in_place``: the compaction only replaces tool results by handles where they are; ``why`` says why it was made.

    Placeholder texts are stored as contents, so that they can be erased.
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
    soft: int = 0
    in_place: bool = False
    why: str = ""

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield the hashes of the placeholder texts."""
        for step in self.steps:
            yield from (name for name in (step.text, step.content, step.gists) if name is not None)


class UndoEvent(Struct, frozen=True, kw_only=True, gc=False):
    """Void a compaction and all later ones of the branch."""

    receipt: str


def make_compaction_event(receipt: CompactionReceipt, *, resent_message: str | None = None) -> CompactionEvent:
    """Build the event of a compaction."""
    return CompactionEvent(
        id=receipt.id,
        parent=receipt.parent,
        steps=tuple(map(_to_stored_step, receipt.steps)),
        skipped=tuple(StoredSkip(name=skip.name, why=skip.why) for skip in receipt.skipped),
        tokens=(receipt.tokens_before, receipt.tokens_after),
        target=receipt.target,
        automatic=receipt.automatic,
        before=resent_message,
        chain=receipt.chain_version,
        certificate=()
        if receipt.certificate is None
        else (*receipt.certificate.exact_strings, *receipt.certificate.rules),
        since=receipt.since_message,
        soft=receipt.soft_target,
        in_place=receipt.clears_in_place,
        why=receipt.why,
    )


def contents_of_receipt(receipt: CompactionReceipt) -> dict[str, bytes]:
    """Return the contents that the event of a compaction refers to, by hash."""
    contents: dict[str, bytes] = {}
    for step in receipt.steps:
        if step.text is not None:
            contents[hash_text(step.text)] = encode_text(step.text)
            if step.content:
                contents[hash_text(step.content)] = encode_text(step.content)
        if step.outlines:
            contents[hash_text(_encode_gists(step))] = encode_text(_encode_gists(step))
    return contents


def read_receipt(event: CompactionEvent, contents: ContentsByHash) -> CompactionReceipt:
    """Return the receipt of a compaction event; placeholders whose text was erased have none."""
    return CompactionReceipt(
        id=event.id,
        parent=event.parent,
        steps=tuple(_read_step(step, contents) for step in event.steps),
        skipped=tuple(SkippedStep(name=skip.name, why=skip.why) for skip in event.skipped),
        tokens_before=event.tokens[0],
        tokens_after=event.tokens[1],
        target=event.target,
        automatic=event.automatic,
        chain_version=event.chain,
        certificate=_read_certificate(event.certificate),
        since_message=event.since,
        soft_target=event.soft,
        clears_in_place=event.in_place,
        why=event.why,
    )


def _read_certificate(counts: tuple[int, ...]) -> CompactionCertificate | None:
    if len(counts) != _CERTIFICATE_LENGTH:
        return None
    return CompactionCertificate(
        exact_strings=(counts[0], counts[1], counts[2]), rules=(counts[3], counts[4], counts[5])
    )


def _to_stored_step(step: CompactionStep) -> StoredStep:
    return StoredStep(
        name=step.name,
        removed=step.removed,
        tokens=(step.tokens_before, step.tokens_after),
        text=hash_text(step.text) if step.text is not None else None,
        content=hash_text(step.content) if step.text is not None and step.content else None,
        gists=hash_text(_encode_gists(step)) if step.outlines else None,
    )


def _encode_gists(step: CompactionStep) -> str:
    return canonical_json(list(step.outlines))


def _read_gists(stored: StoredStep, contents: ContentsByHash) -> tuple[str, ...]:
    """Return the texts of reply outlines, or nothing if they are missing or do not match the messages.

    Then they are computed again from the replies.
    """
    text = read_stored_text(stored.gists, contents)
    try:
        gists = _GISTS_DECODER.decode(text) if text else ()
    except DecodeError:
        return ()
    return gists if len(gists) == len(stored.removed) else ()


def _read_step(stored: StoredStep, contents: ContentsByHash) -> CompactionStep:
    text = read_stored_text(stored.text, contents)
    content = read_stored_text(stored.content, contents)
    return CompactionStep(
        name=stored.name,
        removed=stored.removed,
        text=text,
        # Older receipts stored only the block.
        content=content if content is not None else _strip_block_tags(text or ""),
        outlines=_read_gists(stored, contents) if stored.gists else (),
        tokens_before=stored.tokens[0],
        tokens_after=stored.tokens[1],
    )


def _strip_block_tags(block: str) -> str:
    """Return the text of an older receipt's block, without the lines that frame it."""
    return "\n".join(line for line in block.split("\n")[2:] if line and not _BLOCK_TAG.fullmatch(line))


# Workflow stages.


class WorkflowStageAction(StrEnum):
    """The actions on a workflow stage."""

    NEW = "new"
    DATA = "data"
    REFERENCES = "references"
    EXHIBIT = "exhibit"
    DECISION = "decision"
    UNDO = "undo"
    SUBMIT = "submit"
    APPROVE = "approve"
    CHANGES = "changes"
    REWIND = "rewind"


class StageFieldType(StrEnum):
    """What a field of a stage may contain."""

    TEXT = "text"
    LIST = "list"
    NUMBER = "number"
    REFERENCES = "references"
    ANY = "any"


class FieldPlacement(StrEnum):
    """Where a field of a stage appears in the document; working fields do not appear."""

    TEXT = "text"
    WORKING = "working"
    TITLE = "title"
    AUTHORS = "authors"
    INSTITUTION = "institution"
    KEYWORDS = "keywords"


class SectionKind(StrEnum):
    """What a stage contributes to the document; a stage without a section contributes nothing."""

    CHAPTER = "chapter"
    NONE = "none"
    ABSTRACT = "abstract"
    REFERENCES = "references"
    APPENDIX = "appendix"


class StageFieldSpec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A field of a stage: its labels by language, what it may contain, and where it appears in the document.

    With ``heading`` its label is a heading above its text.
    """

    name: str
    labels: Mapping[str, str] = {}
    type: StageFieldType = StageFieldType.ANY
    description: str = ""
    document: FieldPlacement = FieldPlacement.TEXT
    heading: bool = True


class StageSpec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One stage of a workflow; ``labels`` are by language, and ``search`` enables tools that look things up.

    ``section`` says what the stage contributes to the document, under one of its ``headings``. Workflows from before
    there were sections have none: then every stage is a chapter.
    """

    id: str
    labels: Mapping[str, str] = {}
    phase: str = ""
    instructions: str = ""
    required: tuple[str, ...] = ()
    search: bool = False
    section: SectionKind | None = None
    headings: Mapping[str, str] = {}
    fields: tuple[StageFieldSpec, ...] = ()

    def field(self, name: str) -> StageFieldSpec | None:
        """Return the specification of a field, or None if the workflow does not describe it."""
        return next((one for one in self.fields if one.name == name), None)


class WorkflowSpec(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A workflow: its stages in order, the language of its labels, and the form of its summaries.

    ``title_from`` is the field that provides the title of the work, as ``stage.field``.
    """

    name: str
    title: str = ""
    language: str = "en"
    summary_language: str = ""
    summary_form: str = ""
    title_from: str = ""
    stages: tuple[StageSpec, ...] = ()

    def stage_index(self, stage: str) -> int | None:
        """Return the index of the stage with this id, or None."""
        return next((at for at, one in enumerate(self.stages) if one.id == stage), None)

    def label(self, stage: StageSpec) -> str:
        """Return the label of a stage in the language of the workflow, else in English, else its id."""
        return self.localize(stage.labels) or stage.id

    def heading(self, stage: StageSpec) -> str:
        """Return the heading of a stage in the document."""
        return self.localize(stage.headings) or self.label(stage)

    def field_label(self, stage: StageSpec, name: str) -> str:
        """Return the label of a field; that of an undescribed field is its name as words."""
        described = stage.field(name)
        return (self.localize(described.labels) if described else "") or _name_to_words(name)

    def localize(self, texts: Mapping[str, str]) -> str:
        """Return the text in the language of the workflow, else in English, else any, else ""."""
        return texts.get(self.language) or texts.get("en") or next(iter(texts.values()), "")


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")


def _name_to_words(name: str) -> str:
    """Return the name of a field as words: ``tujuanPenelitian`` becomes ``Tujuan penelitian``."""
    words = " ".join(_WORD_START.sub(" ", name).split()).casefold()
    return words[:1].upper() + words[1:] or name


class Exhibit(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A figure or a table of the document, by the key with which the text refers to it: ``fig:sleep``, ``tbl:hours``.

    A figure has the hash of its image. A table has columns and rows.
    """

    key: str
    caption: str
    image: str = ""
    media_type: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class StageEvent(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An action on a stage, after the message ``after``; it belongs to the branches that continue from there since.

    Only the event that starts the workflow has ``workflow``, so that later changes of the workflow file have no effect
    on it. Older events without an action have no effect.
    """

    action: WorkflowStageAction | None = None
    after: str = ""
    stage: str = ""
    workflow: WorkflowSpec | None = None
    fields: Mapping[str, object] = {}
    decision: str = ""
    references: tuple[Mapping[str, object], ...] = ()
    exhibit: Exhibit | None = None
    # Keys of references, figures and tables that are removed.
    removed: tuple[str, ...] = ()
    # Whether a model wrote this, and not a person.
    by_model: bool = False

    def hashes(self) -> Iterator[str]:
        """Yield the hash of the image, if the event adds a figure."""
        if self.exhibit is not None and self.exhibit.image:
            yield self.exhibit.image
