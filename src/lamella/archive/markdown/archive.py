"""Markdown archives: render a conversation as text, parse it back unchanged, and save and load files.

``render_archive`` and ``parse_archive`` convert between a conversation export and text. ``save_archive`` writes a
file; the conversation's id decides which one. It never overwrites a file with events or edits that the conversation
does not have. ``archive_file_name`` turns a title into a name that every operating system accepts.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from lamella.archive.markdown.legacy import parse_legacy
from lamella.archive.markdown.page import build_edit_events, list_visible_messages, parse_page, render_page
from lamella.archive.markdown.payload import (
    EventAppender,
    FileRef,
    FrontMatter,
    check_format_version,
    parse_comment,
    render_comment,
    render_front_matter,
    split_comment,
    split_front_matter,
    split_included_and_named_contents,
)
from lamella.archive.markdown.recovery import FileLookup, read_original_or_current_files, rewrite_records
from lamella.core.log.branch import iter_invalid_receipts, validate_message_node
from lamella.core.log.events.kinds import EventRecord
from lamella.core.log.log import FoldedLog
from lamella.core.log.turn_records import derive_message_id
from lamella.core.text.content import encode_text
from lamella.core.values import replace
from lamella.errors import (
    BadInputError,
    HistoryConflictError,
    SourceNotFoundError,
    SourceUnreadableError,
    StoreCorruptedError,
    StoreUnavailableError,
)
from lamella.files import make_data_folder, open_regular_file, read_regular_file, replace_file, write_new_file
from lamella.ports import ConversationExport, SourceReaders

# Returns those contents of a conversation, by hash, that a store already has.
ReadContents = Callable[[str, Sequence[str]], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextAddedByUser:
    """Text that people added to a file and that is not part of the conversation."""

    front_lines: tuple[str, ...] = ()
    preface: str = ""


_NO_ADDITIONS = TextAddedByUser()
_DAMAGED_COMMENT_HINT = (
    "Only the visible text is for editing. Undo what was changed in the comment, or export the conversation again."
)


def render_archive(
    export: ConversationExport, *, sources: SourceReaders | None = None, additions: TextAddedByUser = _NO_ADDITIONS
) -> str:
    """Render a conversation as Markdown.

    With ``sources``, the archive includes every file whose text they do not return unchanged.
    """
    front = render_front_matter(
        conversation_key=export.conversation_key,
        name=export.name,
        title=export.title,
        created=export.created,
        other_lines=additions.front_lines,
    )
    log = build_log(export.conversation_key, export.records)
    page = (f"{additions.preface}\n\n" if additions.preface else "") + render_page(list_visible_messages(log))
    return f"{front}\n{page}{render_comment(export, split_included_and_named_contents(export, sources))}"


def parse_archive(
    text: str,
    *,
    sources: SourceReaders | None,
    read_contents: ReadContents | None = None,
    is_erased: Callable[[str], bool] | None = None,
) -> ConversationExport:
    """Parse the conversation in a Markdown text. Its warnings list everything that could not be imported.

    ``read_contents`` returns those contents of the conversation that a store already has. For them no file is read.
    ``is_erased`` says whether the store had a conversation with an id and erased it.
    """
    front, body = split_front_matter(normalize_line_ends(text))
    if not front.is_lamella_archive:
        return parse_legacy(front, body, sources, is_erased=is_erased)
    export, files = parse_lamella_archive(front, body)
    known = read_contents(export.conversation_key, [file.hash for file in files]) if read_contents else {}
    recovery = read_original_or_current_files([file for file in files if file.hash not in known], FileLookup(sources))
    newer = {artifact.hash: encode_text(artifact.text) for artifact in recovery.changed_artifacts.values()}
    return replace(
        export,
        records=export.records
        if recovery.is_exact
        else rewrite_records(export.conversation_key, export.records, recovery),
        contents={**export.contents, **known, **recovery.contents, **newer},
        warnings=(*export.warnings, *recovery.warnings),
    )


def parse_lamella_archive(front: FrontMatter, body: str) -> tuple[ConversationExport, tuple[FileRef, ...]]:
    """Parse an archive of Lamella: return the conversation with edits by hand, and the files that it only names."""
    visible, export, files = parse_archive_with_visible_text(front, body)
    return apply_edits(front, export, visible), files


def parse_archive_with_visible_text(
    front: FrontMatter, body: str
) -> tuple[str, ConversationExport, tuple[FileRef, ...]]:
    """Parse an archive: return its visible text, the conversation as it was written, and the files it only names."""
    check_format_version(front)
    visible, comment = split_comment(body)
    export, files = parse_comment(comment)
    named = front.fields.get("conversation")
    if named != export.conversation_key:
        raise BadInputError(
            f"The front matter names the conversation {named!r}; the comment holds {export.conversation_key!r}.",
            hint="Put the id back into the front matter. To have a copy, import the archive and fork it.",
        )
    return visible, replace(export, name=front.fields.get("name") or None), files


def parse_text_added_by_user(text: str) -> TextAddedByUser:
    """Return the text that people added to an archive of Lamella."""
    front, body = split_front_matter(normalize_line_ends(text))
    visible, _ = split_comment(body)
    return TextAddedByUser(front_lines=front.other_lines, preface=parse_page(visible).preface)


def normalize_line_ends(text: str) -> str:
    """Remove a byte order mark and convert all line ends to newlines."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def build_log(conversation_key: str, records: Iterable[EventRecord]) -> FoldedLog:
    """Build a log from the events of a conversation."""
    log = FoldedLog(conversation=conversation_key)
    log.extend(records)
    return log


def apply_edits(front: FrontMatter, export: ConversationExport, visible: str) -> ConversationExport:
    """Return the conversation with the edits that were made by hand in its file since it was written."""
    title = front.fields.get("title") or export.title
    log = _build_checked_log(export)
    records, warnings = build_edit_events(log, parse_page(visible))
    if title != export.title:
        scribe = EventAppender(log=log)
        scribe.append_title(title, at=(export.records or records)[-1].at if log.version else export.created)
        records = (*records, *scribe.records)
        warnings = (*warnings, "The title was changed by hand; the conversation is renamed.")
    return replace(export, title=title, records=(*export.records, *records), warnings=warnings)


def _build_checked_log(export: ConversationExport) -> FoldedLog:
    """Build the log of a comment; raise if its events do not fit together, or if an id or a receipt is wrong."""
    try:
        log = build_log(export.conversation_key, export.records)
        for node in log.nodes.values():
            validate_message_node(node)
    except StoreCorruptedError as error:
        raise BadInputError(f"The archive's comment is damaged: {error.message}", hint=_DAMAGED_COMMENT_HINT) from error
    for node in log.nodes.values():
        # A message id is a hash of its content, so a text that was edited inside the comment is detected.
        if derive_message_id(export.conversation_key, node.event) != node.id:
            raise BadInputError(
                f"The archive's comment is damaged: the message {node.id} has another text than it was written with.",
                hint=_DAMAGED_COMMENT_HINT,
            )
    for number, fault in iter_invalid_receipts(
        export.records, message_ids=log.all_message_ids(), contents=export.contents
    ):
        raise BadInputError(
            f"The archive's comment is damaged: event {number}, a compaction, {fault}.", hint=_DAMAGED_COMMENT_HINT
        )
    return log


# File names, in at most 100 bytes.

MAX_FILE_NAME_BYTES = 100
UNTITLED_NAME = "Untitled chat"


_EXTENSION = ".md"
# Characters that Windows refuses, or that wiki links or shells interpret.
_RESERVED_CHARS = re.compile(r'[<>:"/\\|?*#^\[\]]')
# Control characters for text direction would let a name look different from what it is.
_BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DROPPED_CATEGORIES = ("Cc", "Cn", "Co", "Cs", "Zl", "Zp")
# Device names that Windows reserves, with any extension.
_WINDOWS_DEVICE_NAMES = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])\s*(?:\.|$)", re.IGNORECASE
)
# Invisible characters that join the next one to the one before. A name that is cut must not end with one.
_JOINING_CHARS = "\u200d\ufe0f"


def archive_file_name(title: str, number: int = 1) -> str:
    """Return the file name for a title. ``number`` distinguishes conversations that have the same title."""
    suffix = (f" {number}" if number > 1 else "") + _EXTENSION
    stem = _clean_title(title)
    if _WINDOWS_DEVICE_NAMES.match(stem):
        stem = f"Chat {stem}"
    return (_truncate_stem(stem, MAX_FILE_NAME_BYTES - len(suffix)) or UNTITLED_NAME) + suffix


def file_conflict_error(path: Path) -> BadInputError:
    """Build the error for a target file that has something the conversation does not have."""
    return BadInputError(f"{path} is there and holds something else.", hint="Name another file, or move this one away.")


def file_name_comparison_key(name: str) -> str:
    """Return a name in the form in which file systems compare it that ignore case and Unicode composition."""
    # Case folding can produce decomposed characters, so the name is composed again afterwards.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _clean_title(title: str) -> str:
    composed = unicodedata.normalize("NFC", title)
    kept = "".join(" " if _is_dropped_character(character) else character for character in composed)
    return _strip_dots_and_spaces(" ".join(_RESERVED_CHARS.sub(" ", kept).split()))


def _is_dropped_character(character: str) -> bool:
    return character in _BIDI_CONTROLS or unicodedata.category(character) in _DROPPED_CATEGORIES


def _truncate_stem(stem: str, size: int) -> str:
    encoded = stem.encode()
    if len(encoded) <= size:
        return stem
    return _strip_dots_and_spaces(encoded[:size].decode(errors="ignore").rstrip(_JOINING_CHARS))


def _strip_dots_and_spaces(stem: str) -> str:
    """Remove dots and spaces at both ends. Windows drops them at the end, and a dot at the start hides the file."""
    return stem.strip(". ")


# Bytes that are read to find the front matter: first a usual amount, then a limit for a very long one.
_USUAL_FRONT_BYTES = 4_096
_MAX_FRONT_BYTES = 1_000_000


def load_archive(
    path: Path,
    sources: SourceReaders | None,
    *,
    read_contents: ReadContents | None = None,
    is_erased: Callable[[str], bool] | None = None,
) -> ConversationExport:
    """Load the conversation in a file.

    ``read_contents`` has the signature of ``Store.read_contents``. Contents that it returns are not read from the
    vault. ``is_erased`` says whether the store erased a conversation with an id.
    """
    text = _read_text(path)
    try:
        return parse_archive(text, sources=sources, read_contents=read_contents, is_erased=is_erased)
    except BadInputError as error:
        raise type(error)(f"{path.name}: {error.message}", hint=error.raw_hint) from error


def save_archive(
    export: ConversationExport, folder: Path, *, file: str | None = None, sources: SourceReaders | None = None
) -> Path:
    """Write a conversation into a folder and return the path of the file.

    The target is the file that has the conversation's id, under any name, otherwise a new file. With
    ``file``, the target is the file of that name. With ``sources``, the archive includes every file whose text they do
    not return unchanged.

    Raises:
        BadInputError: The file has something that the conversation does not have. The file stays as it is, and the hint
            says what to do.
    """
    with _convert_disk_errors(f"The archive cannot be written to {folder}"):
        make_data_folder(folder)
        found = (
            _files_of_conversation(folder, export) if file is None else _list_file_if_it_exists(folder / file, export)
        )
        if not found:
            text = encode_text(render_archive(export, sources=sources))
            if file is None:
                return _write_to_first_unused_name(folder, export.title, text)
            write_new_file(folder / file, text)
            return folder / file
    path, before = _choose_file_to_overwrite(found, export)
    text = encode_text(render_archive(export, sources=sources, additions=parse_text_added_by_user(before)))
    # An unchanged file is not written again, so that its modification time stays.
    if text != encode_text(before):
        with _convert_disk_errors(f"{path} cannot be written"):
            replace_file(path, text)
    return path


def _files_of_conversation(folder: Path, export: ConversationExport) -> list[Path]:
    """Return the files that have the conversation's id. The file that is named after the title comes first."""
    named = archive_file_name(export.title)
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == _EXTENSION and path.is_file())
    found = [path for path in files if is_same_conversation(_read_id(path), export)]
    return sorted(found, key=lambda path: path.name != named)


def _list_file_if_it_exists(path: Path, export: ConversationExport) -> list[Path]:
    """Return the file of a given name as a list, empty if it does not exist; raise if it has something else."""
    if not path.exists():
        return []
    if not is_same_conversation(_read_id(path), export):
        raise file_conflict_error(path)
    return [path]


def is_same_conversation(archived_id: str | None, export: ConversationExport) -> bool:
    """Return whether the id in an archive is that of the conversation."""
    return archived_id == export.conversation_key


def _read_id(path: Path) -> str | None:
    """Return the id of the conversation in a file, or None if the file is not an archive or cannot be read."""
    try:
        # ``open_regular_file`` refuses a named pipe, which may have replaced the file since it was listed and would
        # block.
        with open_regular_file(path) as file:
            head = file.read(_USUAL_FRONT_BYTES)
            if not head.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
                return None
            front, _ = split_front_matter(normalize_line_ends(head.decode(errors="replace")))
            if not front.fields:
                head += file.read(_MAX_FRONT_BYTES)
                front, _ = split_front_matter(normalize_line_ends(head.decode(errors="replace")))
    except (OSError, BadInputError):
        return None
    return front.fields.get("conversation") if front.is_lamella_archive else None


def _choose_file_to_overwrite(files: Sequence[Path], export: ConversationExport) -> tuple[Path, str]:
    """Return the first file that may be overwritten, with its text.

    If no file may be overwritten, raise the error of the first one.
    """
    refused: BadInputError | None = None
    for path in files:
        text = _read_text(path)
        try:
            _check_file_has_nothing_unknown(path, text, export)
        except BadInputError as error:
            refused = refused or error
        else:
            return path, text
    assert refused is not None
    raise refused


def _check_file_has_nothing_unknown(path: Path, text: str, export: ConversationExport) -> None:
    """Raise if a file has events or edits by hand that the conversation does not have."""
    front, body = split_front_matter(normalize_line_ends(text))
    try:
        visible, written, _ = parse_archive_with_visible_text(front, body)
        edited = apply_edits(front, written, visible)
    except BadInputError as error:
        raise BadInputError(
            f"{path.name} has the conversation's id and cannot be read: {error.message}",
            hint="Move the file away, then export again.",
        ) from error
    _check_file_has_no_unknown_events(path, written.records, export)
    if edited.warnings and not _has_edits(export, edited):
        raise BadInputError(
            f"{path.name} was edited by hand since it was written.",
            hint="Import it first, so that the edits become part of the conversation; or move it away.",
        )


def _check_file_has_no_unknown_events(
    path: Path, file_records: Sequence[EventRecord], export: ConversationExport
) -> None:
    """Raise ``HistoryConflictError`` unless the events of a file are a prefix of the conversation's events."""
    ours, called = export.records, export.name or export.conversation_key
    shared = next((at for at, (one, other) in enumerate(zip(file_records, ours, strict=False)) if one != other), None)
    if shared == 0:
        raise HistoryConflictError(
            f"{path.name} holds another conversation that is called {called}, too.",
            hint="Export into another folder to have both, or move the file away.",
        )
    if shared is not None:
        raise HistoryConflictError(
            f"{path.name} has {called} with another history from event {shared + 1:,} on.",
            hint="Neither has all of the other. Export into another folder to have both, or import the file into a "
            "store of its own.",
        )
    if len(file_records) > len(ours):
        raise HistoryConflictError(
            f"{path.name} has {len(file_records):,} events of {called}; the store knows {len(ours):,}.",
            hint="Import the file first: that adds the others to the store. Then export again.",
        )


def _has_edits(export: ConversationExport, edited_export: ConversationExport) -> bool:
    """Return whether the conversation has the edits of a file, either as events or as the messages it shows."""
    if export.records[: len(edited_export.records)] == edited_export.records:
        return True
    shown, expected = (
        [(m.role, m.text) for m in list_visible_messages(build_log(one.conversation_key, one.records))]
        for one in (export, edited_export)
    )
    return shown[: len(expected)] == expected


def _write_to_first_unused_name(folder: Path, title: str, data: bytes) -> Path:
    """Write a new file under the first free name for a title."""
    used_names = {file_name_comparison_key(path.name) for path in folder.iterdir()}
    for number in count(1):
        path = folder / archive_file_name(title, number)
        if file_name_comparison_key(path.name) in used_names:
            continue
        try:
            write_new_file(path, data)
        except FileExistsError:
            # Another process took the name since the folder was listed.
            continue
        return path
    raise AssertionError("count never ends")


def _read_text(path: Path) -> str:
    try:
        data = read_regular_file(path)
    except FileNotFoundError as error:
        raise SourceNotFoundError(f"There is no archive {path}.", hint="Check the path.") from error
    except OSError as error:
        raise SourceUnreadableError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Check the file and its permissions."
        ) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SourceUnreadableError(
            f"{path} is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Save the file as UTF-8.",
        ) from error


@contextmanager
def _convert_disk_errors(description: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailableError(
            f"{description}: {error.strerror or error}.",
            hint="Check that the folder can be written to and that the disk has room, then export again.",
        ) from error
