"""The data of an archive that people do not read: front matter, and the comment with all events.

``render_comment`` and ``parse_comment`` convert the comment at the end of a file. Each event and each content has a
line of its own, so that a diff of two versions of a file shows what was added. ``split_included_and_named_contents`` decides which
contents the archive includes and which it only names, because the vault has them. ``replace_artifact_refs`` changes the artifact
references in events, and ``EventAppender`` appends events for messages that come from a file.
"""

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lamella.core.artifacts.kinds import KINDS, LIBRARY_KIND, SourceMedium
from lamella.core.artifacts.model import ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.core.log.events.artifact import PendingCommandsEvent, StoredArtifact
from lamella.core.log.events.codec import decode_event, encode_event
from lamella.core.log.events.kinds import (
    Event,
    EventKind,
    EventRecord,
    ForkEvent,
    RenameEvent,
    SwitchEvent,
    referenced_content_hashes,
)
from lamella.core.log.events.message import QuestionEvent, StoredRound, copy_round_events, with_position
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import HistoryChangeReason, MessageAuthor, ReplyEvent
from lamella.core.log.turn_records import MessageNode, derive_message_id
from lamella.core.text.content import canonical_json, encode_text, hash_bytes
from lamella.core.values import replace
from lamella.errors import BadInputError
from lamella.ports import ConversationExport, SourceReaders

# Returns the artifact that replaces a reference, or None to remove it.
ChangeRef = Callable[["ArtifactRef"], StoredArtifact | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactRef:
    """One reference to a stored artifact. ``inlined`` means that the instructions include its text."""

    stored: StoredArtifact
    inlined: bool = False

    @property
    def id(self) -> str:
        return self.stored.id

    @property
    def kind(self) -> ArtifactKind:
        return self.stored.kind

    @property
    def hash(self) -> str:
        return self.stored.hash

    @property
    def path(self) -> str | None:
        return self.stored.source.path

    @property
    def policy(self) -> AttachmentPolicy | None:
        return self.stored.policy


def iter_artifact_refs(event: QuestionEvent | PendingCommandsEvent) -> Iterator[ArtifactRef]:
    """Yield every reference of an event.

    A message has tool results, attachments, and the notes that its instructions include. An attachment command that is
    pending for the next message has the artifacts that it attaches.
    """
    if isinstance(event, PendingCommandsEvent):
        yield from (ArtifactRef(stored=stored) for stored in event.attached)
        return
    for stored in (*event.results, *event.attached):
        yield ArtifactRef(stored=stored)
    if event.system is not None:
        for stored in event.system.inlined:
            yield ArtifactRef(stored=stored, inlined=True)


def replace_artifact_refs(event: QuestionEvent, change: ChangeRef) -> QuestionEvent:
    """Return the event with each reference replaced by the result of ``change``, or removed if that is None."""
    changed = replace(
        event, results=_replace_each_ref(event.results, change), attached=_replace_each_ref(event.attached, change)
    )
    if event.system is None or not event.system.inlined:
        return changed
    inlined = _replace_each_ref(event.system.inlined, change, inlined=True)
    return replace(changed, system=replace(event.system, inlined=inlined))


def replace_command_artifact_refs(event: PendingCommandsEvent, change: ChangeRef) -> PendingCommandsEvent:
    """Return a pending attachment command with its references changed in the same way."""
    return replace(event, attached=_replace_each_ref(event.attached, change))


def _replace_each_ref(
    stored: Iterable[StoredArtifact], change: ChangeRef, *, inlined: bool = False
) -> tuple[StoredArtifact, ...]:
    given = (change(ArtifactRef(stored=one, inlined=inlined)) for one in stored)
    return tuple(one for one in given if one is not None)


# Included and named contents.

QUESTION_KINDS = (EventKind.MESSAGE, EventKind.EDIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A content that the archive only names: its hash, and the file whose text it is."""

    hash: str
    kind: ArtifactKind
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivePayload:
    """The contents of a conversation: those that the archive includes, and the files that it only names."""

    files: tuple[FileRef, ...]
    contents: Mapping[str, bytes]


def split_included_and_named_contents(export: ConversationExport, sources: SourceReaders | None) -> ArchivePayload:
    """Split the contents of a conversation into included ones and named files.

    The newest text of a file is only named. The archive includes everything that a vault could not return unchanged:

    - contents that are not files,
    - snapshots,
    - older texts of a file that was edited between two turns,
    - with ``sources``, every file whose text in the vault differs now.
    """
    refs = list(iter_all_artifact_refs(export.records))
    newest = {ref.id: ref.hash for ref in refs if _is_file(ref)}
    riding = {ref.hash for ref in refs if not _is_file(ref) or newest[ref.id] != ref.hash}
    # A tool result is the text at the time of the call, even if a file has the same text today.
    riding |= {name for record in export.records if record.kind is EventKind.RESULTS for name in record.contents}
    named = {
        (ref.hash, ref.path): FileRef(hash=ref.hash, kind=LIBRARY_KIND[ref.kind], path=ref.path)
        for ref in refs
        if ref.path is not None and ref.hash in export.contents and ref.hash not in riding
    }
    files = tuple(file for file in named.values() if sources is None or _is_in_vault(sources, file))
    by_name = {file.hash for file in files}
    contents = {name: data for name, data in export.contents.items() if name not in by_name}
    return ArchivePayload(files=files, contents=contents)


def iter_all_artifact_refs(records: Iterable[EventRecord]) -> Iterable[ArtifactRef]:
    """Yield every artifact reference of a log, in the order of its events."""
    for record in records:
        if record.kind in (*QUESTION_KINDS, EventKind.ATTACHMENT):
            event = decode_event(record)
            if isinstance(event, QuestionEvent | PendingCommandsEvent):
                yield from iter_artifact_refs(event)


def _is_file(ref: ArtifactRef) -> bool:
    # The text of a PDF or an office file comes from a converter, and another version of it may extract another text.
    is_own_text = KINDS[ref.kind].medium is SourceMedium.FILE
    return is_own_text and ref.path is not None and ref.policy is not AttachmentPolicy.SNAPSHOT


def _is_in_vault(sources: SourceReaders, file: FileRef) -> bool:
    try:
        return sources.read(UnresolvedAttachment(kind=file.kind, name=file.path)).hash == file.hash
    except BadInputError:
        return False


# The comment.

# Kinds of events whose bodies are decoded, to check the contents that they name.
_KINDS_WITH_CONTENTS = (*QUESTION_KINDS, EventKind.ATTACHMENT, EventKind.CALLS, EventKind.RESULTS)
_COMMENT_START = "<!-- lamella-context: "
_COMMENT_STARTS = re.compile(r"^<!-- lamella-context:[ \t]*", re.MULTILINE)
_COMMENT_END = "-->"
_STRICT_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True)
_DAMAGED_HINT = (
    "Take the file from a backup or export the conversation again; docs/reference/formats/archive.md shows the format."
)


class EventInput(BaseModel):
    """One event. A body that is not canonical JSON is given as text, so that its bytes survive."""

    model_config = _STRICT_CONFIG

    kind: EventKind = Field(strict=False)
    at: str
    body: dict[str, object] | str
    contents: list[str] = Field(default_factory=list)


class NamedFileInput(BaseModel):
    """A content that is only named, as the text of a file in the vault."""

    model_config = _STRICT_CONFIG

    hash: str
    kind: ArtifactKind = Field(strict=False)
    path: str


class Base64BytesInput(BaseModel):
    """A content that is not text."""

    model_config = _STRICT_CONFIG

    base64: str


class ArchiveCommentInput(BaseModel):
    """The JSON object of the comment."""

    model_config = _STRICT_CONFIG

    lamella: int
    conversation: str
    title: str
    created: str
    events: list[EventInput]
    files: list[NamedFileInput] = Field(default_factory=list)
    contents: dict[str, str | Base64BytesInput] = Field(default_factory=dict)


def render_comment(export: ConversationExport, payload: ArchivePayload) -> str:
    """Render the comment. Text inside cannot close it: an arrow is written as an escape."""
    head = {"conversation": export.conversation_key, "created": export.created, "title": export.title}
    events = [canonical_json(_event_to_json(record)) for record in export.records]
    files = [canonical_json({"hash": f.hash, "kind": f.kind.value, "path": f.path}) for f in payload.files]
    contents = [f"{json.dumps(name)}:{_content_to_json(data)}" for name, data in sorted(payload.contents.items())]
    inside = (
        f'{canonical_json({**head, "lamella": 1})[:-1]},"events":[\n{_join_rows(events)}],'
        f'"files":[\n{_join_rows(files)}],"contents":{{\n{_join_rows(contents)}}}}}'
    )
    # Arrows occur only inside JSON strings, so a JSON escape keeps the value. HTML also ends a comment at --!>.
    return _COMMENT_START + inside.replace("-->", "--\\u003e").replace("--!>", "--!\\u003e") + f" {_COMMENT_END}\n"


def split_comment(body: str) -> tuple[str, str]:
    """Split the body of a file into its visible text and the JSON of its comment."""
    starts = list(_COMMENT_STARTS.finditer(body))
    if len(starts) != 1:
        raise BadInputError(
            f"The archive has {len(starts)} lamella-context comments; it needs exactly one.",
            hint=_DAMAGED_HINT
            if starts
            else f"{_DAMAGED_HINT} Without the line `lamella:` in front it is read as plain messages.",
        )
    end = body.find(_COMMENT_END, starts[0].end())
    if end < 0:
        raise BadInputError("The archive's lamella-context comment is not closed.", hint=_DAMAGED_HINT)
    after = body[end + len(_COMMENT_END) :]
    return body[: starts[0].start()] + after.lstrip("\n"), body[starts[0].end() : end]


def parse_comment(text: str) -> tuple[ConversationExport, tuple[FileRef, ...]]:
    """Parse a comment: return the conversation with its included contents, and the files that it only names."""
    try:
        comment = ArchiveCommentInput.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"])) or "the whole"
        raise _damaged_comment_error(f"{location}: {first['msg'][0].lower()}{first['msg'][1:]}") from error
    except (ValueError, RecursionError) as error:
        raise _damaged_comment_error(f"it is not JSON: {error}") from error
    if comment.lamella != 1:
        raise BadInputError(
            f"The archive's comment is in format {comment.lamella}; this version reads format 1.",
            hint="Use a newer version of Lamella.",
        )
    export = ConversationExport(
        conversation_key=comment.conversation,
        title=comment.title,
        created=comment.created,
        records=tuple(_event_from_json(event, number) for number, event in enumerate(comment.events, start=1)),
        contents={name: _content_from_json(name, written) for name, written in comment.contents.items()},
    )
    files = tuple(FileRef(hash=f.hash, kind=f.kind, path=f.path) for f in comment.files)
    _check_contents_complete(export, files)
    return export, files


def _join_rows(rows: Iterable[str]) -> str:
    joined = ",\n".join(rows)
    return f"{joined}\n" if joined else ""


def _event_to_json(record: EventRecord) -> Mapping[str, object]:
    body = json.loads(record.body)
    written = body if isinstance(body, dict) and _is_canonical(body, record.body) else record.body
    event: dict[str, object] = {"kind": record.kind.value, "at": record.at, "body": written}
    if record.contents:
        event["contents"] = list(record.contents)
    return event


def _is_canonical(body: object, written: str) -> bool:
    try:
        return canonical_json(body) == written
    except BadInputError:
        return False


def _event_from_json(event: EventInput, number: int) -> EventRecord:
    try:
        body = event.body if isinstance(event.body, str) else canonical_json(event.body)
        record = EventRecord(kind=event.kind, at=event.at, body=body, contents=tuple(event.contents))
        # Raises if the text has half of a surrogate pair, which JSON escapes can express and UTF-8 cannot.
        encode_text(body + event.at)
        if event.kind in _KINDS_WITH_CONTENTS:
            decode_event(record)
    except (ValueError, BadInputError) as error:
        raise _damaged_comment_error(f"event {number}: {error}") from error
    return record


def _check_contents_complete(export: ConversationExport, files: Sequence[FileRef]) -> None:
    """Raise if an event names a content that is neither included, nor named as a file, nor erased."""
    erased = {name for record in export.records if record.kind is EventKind.ERASURE for name in record.contents}
    known_hashes = {*export.contents, *(file.hash for file in files), *erased}
    for number, record in enumerate(export.records, start=1):
        named = referenced_content_hashes(decode_event(record)) if record.kind in _KINDS_WITH_CONTENTS else ()
        if unlisted := set(named).difference(record.contents):
            raise _damaged_comment_error(f"event {number} does not list the content {min(unlisted)}, which it names")
        if missing := set(record.contents).difference(known_hashes):
            raise _damaged_comment_error(f"the content {min(missing)} of event {number} is not there")


def _content_to_json(data: bytes) -> str:
    try:
        return json.dumps(data.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return canonical_json({"base64": b64encode(data).decode()})


def _content_from_json(name: str, written: str | Base64BytesInput) -> bytes:
    try:
        data = encode_text(written) if isinstance(written, str) else b64decode(written.base64, validate=True)
    except (ValueError, BadInputError) as error:
        raise _damaged_comment_error(f"the content {name} cannot be read: {error}") from error
    if hash_bytes(data) != name:
        raise _damaged_comment_error(f"the content {name} has the hash {hash_bytes(data)}")
    return data


def _damaged_comment_error(description: str) -> BadInputError:
    return BadInputError(f"The archive's comment is damaged: {description}.", hint=_DAMAGED_HINT)


# Front matter: the identity of a file, as YAML to which people and their editors may add lines.

ARCHIVE_FORMAT = 1

_FRONT_MATTER_BLOCK = re.compile(r"\A---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD_LINE = re.compile(r"^([A-Za-z_][\w-]*):[ \t]*(.*)$")
_LAMELLA_FIELDS = ("lamella", "conversation", "name", "title", "created")
_PLAIN_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_PLAIN_SCALAR = re.compile(r"[A-Za-z0-9][\w .()-]*(?<! )")
# Characters that YAML refuses or changes if they are not escaped.
_ESCAPED_CHARS = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# Parsing YAML takes a hundred times as long as parsing messages. In a longer text only plain ``name: value`` lines
# are read.
_MAX_YAML_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontMatter:
    """The fields of a file's front matter, all as text, and the lines of fields that are not Lamella's."""

    fields: Mapping[str, str] = field(default_factory=dict)
    other_lines: tuple[str, ...] = ()

    @property
    def is_lamella_archive(self) -> bool:
        """Return whether the file says that it is an archive of Lamella."""
        return "lamella" in self.fields


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Split a file into its front matter, which may be empty, and the rest."""
    block = _FRONT_MATTER_BLOCK.match(text)
    if block is None:
        return FrontMatter(), text
    lines = (block[1] or "").split("\n")
    front = FrontMatter(fields=_parse_fields(block[1] or "", lines), other_lines=tuple(_other_lines(lines)))
    return front, text[block.end() :]


def render_front_matter(
    *, conversation_key: str, title: str, created: str, name: str | None = None, other_lines: Sequence[str] = ()
) -> str:
    """Render front matter with Lamella's fields first.

    ``name`` is written only if it differs from the key. ``other_lines`` are lines that people have added.
    """
    ours = [
        f"lamella: {ARCHIVE_FORMAT}",
        f"conversation: {_render_scalar(conversation_key)}",
        *([f"name: {_render_scalar(name)}"] if name and name != conversation_key else []),
        f"title: {_render_scalar(title)}",
        f"created: {created if _PLAIN_TIME.fullmatch(created) else _render_scalar(created)}",
    ]
    return "\n".join(["---", *ours, *other_lines, "---", ""])


def check_format_version(front: FrontMatter) -> None:
    """Raise if the archive has a format version that this version of Lamella does not read."""
    if front.fields["lamella"] != str(ARCHIVE_FORMAT):
        raise BadInputError(
            f"The archive is in format {front.fields['lamella'][:40]!r}; this version reads format {ARCHIVE_FORMAT}.",
            hint="Use a newer version of Lamella.",
        )


def _parse_fields(block: str, lines: Sequence[str]) -> dict[str, str]:
    """Return all fields that have a single value, as text: an id such as ``0180`` must not become a number."""
    if len(block) > _MAX_YAML_CHARS:
        return _parse_simple_fields(lines)
    try:
        loaded = yaml.load(block, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        entries = _parse_simple_fields(lines)
        if "lamella" in entries:
            raise BadInputError(
                f"The front matter is not YAML: {' '.join(str(error).split())[:200]}.",
                hint="Mend it; a title with a colon or a quote needs quotes around it.",
            ) from error
        # Other programs sometimes write invalid YAML. Their plain lines are still readable.
        return entries
    if not isinstance(loaded, dict):
        return {}
    return {str(name): value for name, value in loaded.items() if isinstance(value, str)}


def _parse_simple_fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the fields that have a line of their own, without a YAML parser."""
    return {match[1]: _unquote(match[2].strip()) for line in lines if (match := _FIELD_LINE.match(line))}


def _unquote(written: str) -> str:
    try:
        value = json.loads(written) if written.startswith('"') else written
    except ValueError:
        value = written
    return value.strip("\"'") if value is written else str(value)


def _other_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of fields that are not Lamella's, including their continuation lines and comments."""
    kept: list[str] = []
    name = ""
    for line in lines:
        entry = _FIELD_LINE.match(line)
        name = entry[1] if entry else "" if line.startswith("#") else name
        if name not in _LAMELLA_FIELDS:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def _render_scalar(text: str) -> str:
    """Render a text as a YAML scalar, quoted unless the plain text is read back as the same text."""
    if _PLAIN_SCALAR.fullmatch(text) and text.isprintable() and yaml.safe_load(text) == text:
        return text
    # A JSON string is also a YAML string, except for a few characters that YAML wants escaped.
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED_CHARS.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


# Appended events.


@dataclass(slots=True, kw_only=True)
class EventAppender:
    """Appends events to a log. ``records`` has the events appended so far."""

    log: FoldedLog
    records: list[EventRecord] = field(default_factory=list)

    def append_question(self, event: QuestionEvent, *, at: str, edited_message: MessageNode | None = None) -> None:
        """Append a question. With ``edited_message``, it replaces that question on a new branch.

        If the question before it has no reply, it gets an empty one first.
        """
        if edited_message is None and self.log.head and self.log.nodes[self.log.head].role is MessageAuthor.USER:
            self.append_reply("", at=at)
        rewritten = self.log.history_rewrite if edited_message is None else HistoryChangeReason.HISTORY_EDITED
        asked = replace(
            event, parent=self.log.head if edited_message is None else edited_message.parent, rewritten=rewritten
        )
        name = derive_message_id(self.log.conversation, asked)
        self.append_event(
            with_position(
                asked,
                message_id=name,
                parent=asked.parent,
                edited_message=None if edited_message is None else edited_message.id,
            ),
            at=at,
        )

    def append_reply(self, text: str, *, at: str, rounds: Iterable[StoredRound] = ()) -> None:
        """Append a reply to the last question, after the tool rounds that led to it."""
        for event in copy_round_events(rounds, parent=self.log.head):
            self.append_event(event, at=at)
        answer = ReplyEvent(id="", parent=self.log.head, text=text)
        self.append_event(replace(answer, id=derive_message_id(self.log.conversation, answer)), at=at)

    def append_branch_switch(self, event: ForkEvent | SwitchEvent, *, at: str) -> None:
        """Append a fork or switch event, which makes another message the last one of the active branch."""
        self.append_event(event, at=at)

    def append_title(self, title: str, *, at: str) -> None:
        """Append an event that sets the title."""
        self.append_event(RenameEvent(title=title), at=at)

    def append_event(self, event: Event, *, at: str) -> None:
        """Append any event."""
        record = encode_event(event, timestamp=at, contents=referenced_content_hashes(event))
        self.log.extend([record])
        self.records.append(record)
