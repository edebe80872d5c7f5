"""Read the files that an archive only names, and rewrite the conversation if they have changed.

``FileLookup`` finds a file by path, otherwise by a name that only one note has; an ambiguous name is never guessed.
``read_original_or_current_files`` reads the named files: unchanged, changed, or missing. ``rewrite_records`` rewrites the events with
the current texts. A message id covers the attachments of the message and the message before it, so other texts give
other ids from that message on, and every event that names a message must name it by its new id.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lamella.archive.markdown.payload import ArtifactRef, FileRef, replace_artifact_refs, replace_command_artifact_refs
from lamella.core.artifacts.model import Artifact, ArtifactKind, UnresolvedAttachment
from lamella.core.log.events.artifact import PendingCommandsEvent, StoredArtifact
from lamella.core.log.events.codec import decode_event, encode_event
from lamella.core.log.events.compaction import CompactionEvent, StageEvent
from lamella.core.log.events.kinds import (
    DeleteEvent,
    Event,
    EventKind,
    EventRecord,
    ForkEvent,
    SwitchEvent,
    referenced_content_hashes,
)
from lamella.core.log.events.message import EditEvent, QuestionEvent, ToolCallsEvent, ToolResultsEvent
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn import MessageAuthor, ReplyEvent, compute_message_id
from lamella.core.log.turn_records import TurnRecord, derive_message_id
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.errors import BadInputError, PathOutsideVaultError, SourceNotFoundError
from lamella.ports import SourceCatalog, SourceReaders

_MAX_LISTED_PATHS = 3
_NO_VAULT = "no vault was given to read it from"
_FILE_MISSING = "it is not there"
# A read of a missing file is slow, because the source searches for similar names. After this many misses only files
# whose names the catalog lists are read.
_MAX_MISSES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file as it is now, with its new path if it has moved. Without an ``artifact``, ``why`` has the reason."""

    artifact: Artifact | None = None
    moved_to: str | None = None
    why: str = ""


class FileLookup:
    """Reads files, each once."""

    def __init__(self, sources: SourceReaders | None) -> None:
        self.sources = sources or SourceReaders()
        self._found_files: dict[tuple[str, ArtifactKind, str | None], FoundFile] = {}
        self._paths_by_name: dict[str, list[str]] | None = None
        self._miss_count = 0

    def read_or_find_moved(self, path: str, kind: ArtifactKind, *, expected_hash: str | None = None) -> FoundFile:
        """Return the file at a path, or a note of the same name elsewhere.

        ``expected_hash`` is the hash of the text the file had. It decides between several notes of the same name.
        """
        key = (path, kind, expected_hash)
        if key not in self._found_files:
            self._found_files[key] = self._read_or_locate_file(path, kind, expected_hash)
        return self._found_files[key]

    def exists(self, path: str, kind: ArtifactKind) -> bool:
        """Return whether there is a file at exactly this path."""
        found = self.read_or_find_moved(path, kind)
        return found.artifact is not None and found.moved_to is None

    def _read_or_locate_file(self, path: str, kind: ArtifactKind, expected_hash: str | None) -> FoundFile:
        catalog = self.sources.catalog
        if catalog is None:
            return FoundFile(why=_NO_VAULT)
        if self._miss_count >= _MAX_MISSES and not self._find_notes_named(catalog, _get_wikilink_name(path)):
            return FoundFile(why=_FILE_MISSING)
        try:
            return FoundFile(artifact=self.sources.read(UnresolvedAttachment(kind=kind, name=path)))
        except (SourceNotFoundError, PathOutsideVaultError):
            self._miss_count += 1
            return (
                self._find_by_file_name(catalog, path, expected_hash)
                if kind is ArtifactKind.NOTE
                else FoundFile(why=_FILE_MISSING)
            )
        except BadInputError as error:
            return FoundFile(why=_get_error_reason(error))

    def _find_notes_named(self, catalog: SourceCatalog, name: str) -> list[str]:
        """Return the paths of all notes of a name.

        A link would prefer one of several notes by its position. A name alone has no such preference.
        """
        if self._paths_by_name is None:
            self._paths_by_name = {}
            for folder in catalog.list_notes(ArtifactKind.FOLDER, ".").paths:
                self._paths_by_name.setdefault(_get_wikilink_name(folder), []).append(folder)
        return self._paths_by_name.get(name, [])

    def _find_by_file_name(self, catalog: SourceCatalog, path: str, expected_hash: str | None) -> FoundFile:
        """Return the only note of a file's name, or the one of several that has the wanted hash."""
        paths = self._find_notes_named(catalog, _get_wikilink_name(path))
        notes: list[tuple[str, Artifact]] = []
        for candidate in paths:
            try:
                notes.append(
                    (candidate, self.sources.read(UnresolvedAttachment(kind=ArtifactKind.NOTE, name=candidate)))
                )
            except BadInputError as error:
                return FoundFile(why=_get_error_reason(error))
        for candidate, note in notes:
            if len(notes) == 1 or note.hash == expected_hash:
                return FoundFile(artifact=note, moved_to=candidate)
        if not notes:
            return FoundFile(why=_FILE_MISSING)
        shown = ", ".join(paths[:_MAX_LISTED_PATHS])
        return FoundFile(why=f"it is not there, and {len(paths)} notes have its name: {shown}")


def _get_wikilink_name(path: str) -> str:
    """Return a note's name as links write it: the last part of the path, in lower case, without ``.md``."""
    return path.rstrip("/").rsplit("/", 1)[-1].lower().removesuffix(".md")


def _get_error_reason(error: BadInputError) -> str:
    return error.message.rstrip(".")


# Recovery of named files.


@dataclass(slots=True, kw_only=True)
class RecoveredFiles:
    """The result of reading named files.

    - ``contents``: the texts that are unchanged, by hash.
    - ``changed_artifacts``: the current artifacts of files whose text has changed, by path and previous hash.
    - ``lost_hashes``: the hashes whose text was not found.
    """

    contents: dict[str, bytes] = field(default_factory=dict)
    changed_artifacts: dict[tuple[str, str], Artifact] = field(default_factory=dict)
    lost_hashes: set[str] = field(default_factory=set)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        """Return whether every file still has its previous text."""
        return not self.lost_hashes


def read_original_or_current_files(files: Iterable[FileRef], lookup: FileLookup) -> RecoveredFiles:
    """Read each file. If its text has changed, use the current text and add a warning."""
    recovery = RecoveredFiles()
    found = [(file, lookup.read_or_find_moved(file.path, file.kind, expected_hash=file.hash)) for file in files]
    for file, answer in found:
        if answer.artifact is not None and answer.artifact.hash == file.hash:
            _add_file(recovery, file, answer)
    for file, answer in found:
        # If two files had the same text, one that still has it provides it for both. This needs the loop above first.
        if file.hash not in recovery.contents:
            _add_changed_file(recovery, file, answer)
    return recovery


def _add_file(recovery: RecoveredFiles, file: FileRef, found: FoundFile) -> None:
    if found.artifact is not None:
        recovery.contents[file.hash] = encode_text(found.artifact.text)
    if found.moved_to is not None:
        recovery.warnings.append(f"{file.path} has moved to {found.moved_to}; its text is the same.")


def _add_changed_file(recovery: RecoveredFiles, file: FileRef, found: FoundFile) -> None:
    recovery.lost_hashes.add(file.hash)
    if found.artifact is None:
        recovery.warnings.append(f"{file.path} is left out: {found.why}.")
        return
    recovery.changed_artifacts[file.path, file.hash] = found.artifact
    if found.moved_to is None:
        recovery.warnings.append(f"{file.path} has changed since; its text of now is used.")
    else:
        recovery.warnings.append(f"{file.path} has moved to {found.moved_to} and changed; its text of now is used.")


# Rewritten events.


def rewrite_records(
    conversation_key: str, records: Iterable[EventRecord], recovery: RecoveredFiles
) -> tuple[EventRecord, ...]:
    """Return the events with the current texts of the files."""
    rewriter = _RecordRewriter(conversation_key, recovery)
    return tuple(rewriter.rewrite(record) for record in records)


class _RecordRewriter:
    """Builds the old log and the new one side by side. Their active branches match, message by message."""

    def __init__(self, conversation_key: str, recovery: RecoveredFiles) -> None:
        self._recovery = recovery
        self._old_log = FoldedLog(conversation_key)
        self._new_log = FoldedLog(conversation_key)
        self._new_ids: dict[str, str] = {}

    def rewrite(self, record: EventRecord) -> EventRecord:
        """Return one event with its new ids, and append it to the new log, on which the next event builds."""
        rewritten = self._rewrite_event(record)
        self._old_log.extend([record])
        self._new_log.extend([rewritten])
        if record.kind is EventKind.DELETE:
            # Deleting a message changes the ids of all messages after it.
            for old, new in zip(
                _message_ids(self._old_log.branch_records()), _message_ids(self._new_log.branch_records()), strict=True
            ):
                self._record_new_id(old, new)
        return rewritten

    def _rewrite_event(self, record: EventRecord) -> EventRecord:
        event = decode_event(record)
        if isinstance(event, QuestionEvent | PendingCommandsEvent):
            asked = self._rewrite_question(event) if isinstance(event, QuestionEvent) else self._rewrite_command(event)
            named = referenced_content_hashes(asked)
            kept = [name for name in record.contents if name in named]
            return encode_event(asked, timestamp=record.at, contents=tuple(dict.fromkeys((*kept, *named))))
        renamed = self._with_new_ids(event)
        return record if renamed is event else encode_event(renamed, timestamp=record.at, contents=record.contents)

    def _rewrite_question(self, event: QuestionEvent) -> QuestionEvent:
        """Return a question with its changed attachments and the id that follows from them."""
        asked = replace(replace_artifact_refs(event, self._change_ref), parent=self._new_message_id(event.parent))
        if isinstance(asked, EditEvent):
            asked = replace(asked, target=self._new_message_id(asked.target))
        asked = replace(asked, id=derive_message_id(self._new_log.conversation, asked))
        self._record_new_id(event.id, asked.id)
        return asked

    def _rewrite_command(self, event: PendingCommandsEvent) -> PendingCommandsEvent:
        """Return a pending attachment command with its changed artifacts, and with the new ids of pinned messages."""
        pin, unpin = (tuple(map(self._new_message_id, names)) for names in (event.pin, event.unpin))
        return replace(replace_command_artifact_refs(event, self._change_ref), pin=pin, unpin=unpin)

    def _with_new_ids(self, event: Event) -> Event:
        """Return any other event with the new id of every message that it names."""
        match event:
            case ReplyEvent():
                answer = replace(event, parent=self._new_message_id(event.parent))
                answer = replace(answer, id=derive_message_id(self._new_log.conversation, answer))
                self._record_new_id(event.id, answer.id)
                return answer
            case ToolCallsEvent() | ToolResultsEvent():
                return replace(event, parent=self._new_message_id(event.parent))
            case DeleteEvent():
                return replace(event, target=self._new_message_id(event.target))
            case ForkEvent() | SwitchEvent():
                return replace(event, head=self._new_message_id(event.head))
            case CompactionEvent():
                return self._rewrite_compaction(event)
            case StageEvent(after=str() as after) if after:
                return replace(event, after=self._new_message_id(after))
            case _:
                return event

    def _rewrite_compaction(self, event: CompactionEvent) -> CompactionEvent:
        steps = tuple(replace(step, removed=tuple(map(self._new_message_id, step.removed))) for step in event.steps)
        before = None if event.before is None else self._new_message_id(event.before)
        return replace(event, parent=self._new_message_id(event.parent), steps=steps, before=before)

    def _new_message_id(self, message: str) -> str:
        return self._new_ids.get(message, message)

    def _record_new_id(self, old: str, new: str) -> None:
        """Record the new id of a message.

        A question without a reply is followed by an implicit empty reply, and compactions name that by its id, too.
        """
        self._new_ids[old] = new
        self._new_ids[self._empty_reply_id(old)] = self._empty_reply_id(new)

    def _empty_reply_id(self, message: str) -> str:
        """Return the id of the empty reply to a message."""
        return compute_message_id(self._new_log.conversation, parent=message, role=MessageAuthor.REPLY, text="")

    def _change_ref(self, ref: ArtifactRef) -> StoredArtifact | None:
        """Return the stored artifact of a reference as it is now, or None to remove it.

        Instructions keep the text that they included, so a reference of theirs cannot name the current text.
        """
        if ref.hash not in self._recovery.lost_hashes:
            return ref.stored
        artifact = self._recovery.changed_artifacts.get((ref.path or "", ref.hash))
        if artifact is None or ref.inlined:
            return None
        return replace(ref.stored, hash=artifact.hash, has_images=artifact.has_images or bool(ref.stored.images))


def _message_ids(records: Iterable[TurnRecord]) -> list[str]:
    return [node.id for turn in records for node in (turn.message, turn.reply) if node is not None]
