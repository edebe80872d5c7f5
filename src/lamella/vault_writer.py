"""Write notes of a vault: plan a change, show it, write it, keep a backup, undo it.

``NoteWriter`` plans a change as a value first and writes it only if the note has not changed since. ``render_diff``
shows every line that would change. ``resolve_writable_path`` allows no path outside the vault and none through a
symbolic link. ``edit_text`` keeps the line ends and the byte order mark of the old text. ``BackupFolder`` keeps the
text before each change in a private folder.
"""

import stat
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from secrets import token_hex

from msgspec import DecodeError, Struct, ValidationError, json

from lamella.core.text.content import encode_text, hash_bytes, normalize_line_ends
from lamella.core.text.diff import ChangeSpan, diff_lines
from lamella.errors import (
    BadInputError,
    PathOutsideVaultError,
    SourceNotFoundError,
    SourceUnreadableError,
    WriteDeniedError,
)
from lamella.files import make_private_folder, read_regular_file, replace_file, write_new_file
from lamella.ports import FileChange
from lamella.sources.obsidian import IGNORE_FILE, read_ignore_rules

_RECORD_FILE = "change.json"
_MAX_RECORD_BYTES = 10_000


class NoteChangeRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change that was made to a note: the time, the hashes of the text before and after, and whether it was undone.

    ``before`` is None for a new note.
    """

    lamella: int = 1
    path: str
    at: str
    before: str | None
    after: str
    undone: bool = False


class BackupFolder:
    """The changes made to one vault. Lamella never removes a backup."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save_backup(self, record: NoteChangeRecord, data: bytes | None) -> Path:
        """Save the record of a change and the current bytes of the note, and return the folder of this backup.

        This must happen before the note is changed. ``data`` is None for a new note.
        """
        moment = datetime.fromisoformat(record.at).astimezone(UTC)
        # Folder names sort by time; ``iter_change_folders_newest_first`` relies on it. The random part keeps
        # simultaneous changes separate.
        path = self.folder / f"{moment:%Y%m%dT%H%M%S%f}Z-{token_hex(4)}"
        try:
            make_private_folder(self.folder.parent)
            make_private_folder(self.folder)
            make_private_folder(path)
            if data is not None:
                write_new_file(self.backup_path(path, record), data)
            write_new_file(path / _RECORD_FILE, json.format(json.encode(record)) + b"\n")
        except OSError as error:
            raise WriteDeniedError(
                f"No backup can be kept in {self.folder}: {error.strerror}. Nothing was written.",
                hint="Permit writing to it, or set note_backups to another folder.",
            ) from error
        return path

    def iter_change_folders_newest_first(self) -> Iterator[tuple[Path, NoteChangeRecord]]:
        """Yield every change with its folder, the latest first. Records that cannot be read are skipped."""
        paths = sorted(self.folder.iterdir(), reverse=True) if self.folder.is_dir() else []
        for path in paths:
            try:
                yield (
                    path,
                    json.decode(read_regular_file(path / _RECORD_FILE, limit=_MAX_RECORD_BYTES), type=NoteChangeRecord),
                )
            except (OSError, DecodeError, ValidationError):
                continue

    def mark_undone(self, path: Path, record: NoteChangeRecord) -> None:
        """Record that a change was undone."""
        undone = NoteChangeRecord(path=record.path, at=record.at, before=record.before, after=record.after, undone=True)
        replace_file(path / _RECORD_FILE, json.format(json.encode(undone)) + b"\n")

    @staticmethod
    def backup_path(path: Path, record: NoteChangeRecord) -> Path:
        """Return the path of the copy of the note inside the folder of a backup."""
        return path / PurePosixPath(record.path).name


# Diffs, as the user sees a change before agreeing.

_DIFF_CONTEXT_LINES = 3
_NO_NEWLINE_NOTE = "\\ No newline at end of file"


def render_diff(path: str, before: str | None, after: str) -> str:
    """Render a unified diff. A new note, with ``before`` None, is compared with ``/dev/null``."""
    old, new = _split_diff_lines(normalize_line_ends(before or "")), _split_diff_lines(normalize_line_ends(after))
    head = [f"--- {'/dev/null' if before is None else path}", f"+++ {path}"]
    hunks = (line for hunk in _group_hunks(list(diff_lines(old, new))) for line in _render_hunk(hunk, old, new))
    return "\n".join((*head, *hunks)) + "\n"


# Writable paths.


def _split_diff_lines(text: str) -> list[str]:
    """Split a text into lines. A last line without a newline carries the note that diffs show for it."""
    lines = text.split("\n")
    if lines[-1] == "":
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_NEWLINE_NOTE}"]


def _group_hunks(changes: Sequence[ChangeSpan]) -> Iterator[list[ChangeSpan]]:
    """Group changes whose context lines touch or overlap into hunks."""
    group: list[ChangeSpan] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * _DIFF_CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _render_hunk(hunk: Sequence[ChangeSpan], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    at, to = max(0, hunk[0][0] - _DIFF_CONTEXT_LINES), min(len(old), hunk[-1][1] + _DIFF_CONTEXT_LINES)
    at_new, to_new = hunk[0][2] - (hunk[0][0] - at), hunk[-1][3] + (to - hunk[-1][1])
    yield f"@@ -{_format_hunk_range(at, to)} +{_format_hunk_range(at_new, to_new)} @@"
    for i, i_end, j, j_end in hunk:
        yield from (f" {line}" for line in old[at:i])
        yield from (f"-{line}" for line in old[i:i_end])
        yield from (f"+{line}" for line in new[j:j_end])
        at = i_end
    yield from (f" {line}" for line in old[at:to])


def _format_hunk_range(start: int, stop: int) -> str:
    """Format a line range for a hunk header. As in other diffs, an empty range names the line before it."""
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + 1 if length else start},{length}"


# The new text of a note, with the line ends and byte order mark of the old one.

_BYTE_ORDER_MARK = "\ufeff"


def match_line_ends(before: str | None, content: str) -> str:
    """Return a complete new text in the style of the old one."""
    return _match_line_ends_and_bom(normalize_line_ends(content), before)


def edit_text(before: str, old: str, new: str, *, path: str) -> str:
    """Return the text with one passage replaced, or with ``new`` appended if ``old`` is empty.

    Raises ``WriteDeniedError`` unless the passage occurs exactly once.
    """
    text, old_text = normalize_line_ends(before), normalize_line_ends(old)
    if not old_text:
        joined = text if text.endswith("\n") or not text else f"{text}\n"
        return _match_line_ends_and_bom(joined + normalize_line_ends(new), before)
    found = text.count(old_text)
    if found != 1:
        problem = "does not hold that passage" if not found else f"holds that passage {found} times"
        raise WriteDeniedError(
            f"{path} {problem}.",
            hint="Read the note, and give a passage that stands in it exactly once, word for word.",
        )
    return _match_line_ends_and_bom(text.replace(old_text, normalize_line_ends(new)), before)


def _match_line_ends_and_bom(text: str, before: str | None) -> str:
    """Apply the line ends and the byte order mark of the old text."""
    if before is None:
        return text
    # If a note mixes line ends, there is no way to know which one a line should have, so all become newlines.
    if "\r\n" in before and before.count("\n") == before.count("\r\n"):
        text = text.replace("\n", "\r\n")
    return _BYTE_ORDER_MARK + text if before.startswith(_BYTE_ORDER_MARK) else text


# Extensions of files that are text and are read as notes. A model must not create other files.
WRITABLE_EXTENSIONS = (".md", ".canvas")
_MAX_NAME_BYTES = 200
_MAX_PATH_CHARS = 1_000
_FORBIDDEN_CHARS = frozenset('\\:*?"<>|')


def resolve_writable_path(root: Path, path: str) -> Path:
    """Return the file path of a note, whether it exists or not; raise with the reason if it may not be written."""
    parts = _split_path(path)
    target = root
    for number, part in enumerate(parts, start=1):
        target /= part
        _check_path_part(target, path, is_last=number == len(parts))
    if read_ignore_rules(root).is_hidden(path):
        raise WriteDeniedError(f"{path} is left out of this vault by {IGNORE_FILE}.", hint="Choose another place.")
    return target


def _split_path(path: str) -> tuple[str, ...]:
    """Split a path into names. Refuse every path that could leave the vault, before any file system access."""
    plain = PurePosixPath(path)
    if plain.is_absolute() or ".." in plain.parts or path.startswith("~"):
        raise PathOutsideVaultError(
            f"{_display_path(path)} is outside the vault.",
            hint="Use a path relative to the vault that does not leave it.",
        )
    parts = plain.parts
    if not parts or len(path) > _MAX_PATH_CHARS or not all(_is_valid_name(part) for part in parts):
        raise WriteDeniedError(
            f"{_display_path(path)} is no path of a note.",
            hint="Use plain names, such as garden/beans.md; none is hidden.",
        )
    if plain.suffix.lower() not in WRITABLE_EXTENSIONS:
        raise WriteDeniedError(
            f"{_display_path(path)} is no note.",
            hint=f"What is written ends in one of: {', '.join(WRITABLE_EXTENSIONS)}.",
        )
    return parts


def _is_valid_name(name: str) -> bool:
    return (
        not name.startswith(".")
        and name == name.strip()
        and len(name.encode(errors="replace")) <= _MAX_NAME_BYTES
        and name.isprintable()
        and not _FORBIDDEN_CHARS & set(name)
    )


def _check_path_part(file_path: Path, path: str, *, is_last: bool) -> None:
    """Raise if a part of the path is a symbolic link, or not a folder (or a file, for the last part)."""
    try:
        mode = file_path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WriteDeniedError(
            f"{_display_path(path)} cannot be looked at: {error.strerror}.", hint="Check permissions."
        ) from error
    if stat.S_ISLNK(mode):
        raise WriteDeniedError(
            f"{_display_path(path)} leads through a link.", hint="Write to where it leads, by its own path."
        )
    if not (stat.S_ISREG(mode) if is_last else stat.S_ISDIR(mode)):
        raise WriteDeniedError(f"{_display_path(path)} is in the way of something else.", hint="Choose another place.")


def _display_path(path: str) -> str:
    return repr(path[:80])


# Planning and writing.

# Most characters of a note that is written. It is more than a user would read through before agreeing.
MAX_NOTE_CHARS = 1_000_000


class NoteWriter:
    """Writes the notes of one vault. Each change keeps a copy of the old text and can be undone."""

    def __init__(self, root: Path, *, open_backups: Callable[[], BackupFolder], now: Callable[[], datetime]) -> None:
        self._root = root
        self._open_backups = open_backups
        self._now = now
        # Hash of each note as the model last saw it, by path.
        self._read_hashes: dict[str, str] = {}

    def remember_shown_text(self, path: str) -> None:
        """Remember the current text of a note as the one that was shown. Later changes must be based on this text."""
        path = _normalized_path(path)
        try:
            self._read_hashes[path] = hash_bytes(read_regular_file(self._root / path, limit=4 * MAX_NOTE_CHARS))
        except (OSError, BadInputError):
            self._read_hashes.pop(path, None)

    def plan_write(self, path: str, content: str) -> FileChange:
        """Return the change that writing a whole note, new or existing, would make."""
        path = _normalized_path(path)
        before = self._read_current(path)
        return self._build_change(path, before, match_line_ends(before, content))

    def plan_edit(self, path: str, old: str, new: str) -> FileChange:
        """Return the change that replacing one passage of a note would make."""
        path = _normalized_path(path)
        before = self._read_current(path)
        if before is None:
            raise SourceNotFoundError(f"There is no note {path} in the vault.", hint="Write it as a whole to make it.")
        return self._build_change(path, before, edit_text(before, old, new, path=path))

    def write(self, change: FileChange) -> Path:
        """Write a planned change and return the folder of its backup.

        Raises ``WriteDeniedError`` if the note has changed since the change was planned; the note then stays as it
        is.
        """
        path = resolve_writable_path(self._root, change.path)
        data = encode_text(change.after)
        if self._load_text(path, change.path) != change.before:
            raise _changed_note_error(change.path)
        before = None if change.before is None else encode_text(change.before)
        record = NoteChangeRecord(
            path=change.path,
            at=self._now().isoformat(),
            before=None if before is None else hash_bytes(before),
            after=hash_bytes(data),
        )
        # The backup comes first: if it cannot be written, the note is not changed.
        kept = self._open_backups().save_backup(record, before)
        self._write_file(path, data, path=change.path, is_new=before is None)
        self._read_hashes[change.path] = record.after
        return kept

    def last_change(self, path: str | None = None) -> NoteChangeRecord | None:
        """Return the newest change that was not undone yet, of one note or of any; None if there is none."""
        path = None if path is None else _normalized_path(path)
        found = (
            one
            for _, one in self._open_backups().iter_change_folders_newest_first()
            if not one.undone and path in (None, one.path)
        )
        return next(found, None)

    def restore(self, path: str | None = None) -> tuple[str, bool]:
        """Undo the last change that was not undone yet, of one note or of any.

        Return the path of the note, and whether the note is gone. A note that was new is deleted from the vault; its
        text stays in the backup folder. Raises ``WriteDeniedError`` if the note has changed since.
        """
        path = None if path is None else _normalized_path(path)
        backups = self._open_backups()
        found = (
            (backup_path, one)
            for backup_path, one in backups.iter_change_folders_newest_first()
            if not one.undone and path in (None, one.path)
        )
        kept, record = next(found, (None, None))
        if kept is None or record is None:
            named = f" of {path}" if path else ""
            raise WriteDeniedError(f"There is no change{named} to undo.", hint="Lamella changed no note here.")
        backup_path = resolve_writable_path(self._root, record.path)
        now = self._load_bytes(backup_path, record.path)
        if now is None or hash_bytes(now) != record.after:
            raise WriteDeniedError(
                f"{record.path} was changed since it was written, and is left as it is.",
                hint=f"What it was before lies in {kept}.",
            )
        if record.before is None:
            self._delete_file(backup_path, now, kept)
        else:
            self._write_file(
                backup_path, read_regular_file(backups.backup_path(kept, record)), path=record.path, is_new=False
            )
        backups.mark_undone(kept, record)
        return record.path, record.before is None

    def _build_change(self, path: str, before: str | None, after: str) -> FileChange:
        """Build the change from ``before`` to ``after``.

        Raises ``WriteDeniedError`` if the new text is too long, or if the note is not the one that was shown.
        """
        if len(after) > MAX_NOTE_CHARS:
            raise WriteDeniedError(
                f"{path} would have {len(after):,} characters; at most {MAX_NOTE_CHARS:,} are written.",
                hint="Write less.",
            )
        # The bytes are not needed here. This raises early if the text is not valid Unicode.
        encode_text(after)
        seen = self._read_hashes.get(path)
        if seen is not None and before is not None and hash_bytes(encode_text(before)) != seen:
            raise _changed_note_error(path)
        return FileChange(path=path, before=before, after=after, diff=render_diff(path, before, after))

    def _read_current(self, path: str) -> str | None:
        return self._load_text(resolve_writable_path(self._root, path), path)

    def _load_text(self, file_path: Path, path: str) -> str | None:
        data = self._load_bytes(file_path, path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(f"{path} is not UTF-8.", hint="It is left as it is.") from error

    def _load_bytes(self, file_path: Path, path: str) -> bytes | None:
        try:
            return read_regular_file(file_path, limit=4 * MAX_NOTE_CHARS, name=path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnreadableError(
                f"{path} cannot be read: {error.strerror}.", hint="It is left as it is."
            ) from error

    def _write_file(self, file_path: Path, data: bytes, *, path: str, is_new: bool) -> None:
        try:
            if is_new:
                file_path.parent.mkdir(parents=True, exist_ok=True)
                # The note gets the read and write permissions of its folder, not Lamella's private file mode, because
                # it belongs to the user.
                write_new_file(file_path, data, mode=stat.S_IMODE(file_path.parent.stat().st_mode) & 0o666)
            else:
                replace_file(file_path, data)
        except FileExistsError as error:
            raise _changed_note_error(path) from error
        except OSError as error:
            raise WriteDeniedError(
                f"{path} cannot be written: {error.strerror}. It is as it was.", hint="Check permissions and the disk."
            ) from error

    def _delete_file(self, path: Path, data: bytes, backup_folder: Path) -> None:
        """Move a note out of the vault into the folder of its backup."""
        try:
            write_new_file(backup_folder / path.name, data)
            path.unlink()
        except OSError as error:
            raise WriteDeniedError(f"{path.name} cannot be taken away: {error.strerror}.", hint="Remove it.") from error


def _normalized_path(path: str) -> str:
    """Normalise a path, so that ``./a.md`` becomes ``a.md``. Whether it may be written is checked later."""
    return str(PurePosixPath(path)) if path.startswith(".") or "//" in path or "/./" in path else path


def _changed_note_error(path: str) -> WriteDeniedError:
    return WriteDeniedError(
        f"{path} was changed by somebody else since it was read, and is left as it is.",
        hint="Read it again, and begin from what it says now.",
    )
