"""A writer of notes: what would change is a value first, and is written only if the note is still what it was."""

import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path, PurePosixPath

from lamella.adapters.files.reading import read_plain
from lamella.adapters.files.writing import replace_file, write_new
from lamella.adapters.writing.backups import BackupFolder, BackupRecord
from lamella.adapters.writing.diffs import render_diff
from lamella.adapters.writing.edits import edit_text, replace_text
from lamella.adapters.writing.places import find_place
from lamella.core.text.content import encode_text, hash_bytes
from lamella.errors import BadInputError, SourceMissingError, SourceUnreadableError, WriteRefusedError
from lamella.holdings import NoteChange

# More than any note that somebody would look through before saying yes.
LONGEST = 1_000_000


class NoteWriter:
    """Writes the notes of one vault. Each change keeps a copy of what was there, and can be taken back."""

    def __init__(self, root: Path, *, backups: Callable[[], BackupFolder], now: Callable[[], datetime]) -> None:
        self._root = root
        self._open_backups = backups
        self._now = now
        self._read: dict[str, str] = {}

    def note_read(self, path: str) -> None:
        """Note that somebody was shown a note as it is now: what they write later is meant for that text."""
        path = _name(path)
        try:
            self._read[path] = hash_bytes(read_plain(self._root / path, limit=4 * LONGEST))
        except (OSError, BadInputError):
            self._read.pop(path, None)

    def plan_write(self, path: str, content: str) -> NoteChange:
        """What writing a note, new or whole, would change."""
        path = _name(path)
        before = self._find(path)
        return self._plan(path, before, replace_text(before, content))

    def plan_edit(self, path: str, old: str, new: str) -> NoteChange:
        """What replacing one passage of a note would change."""
        path = _name(path)
        before = self._find(path)
        if before is None:
            raise SourceMissingError(f"There is no note {path} in the vault.", hint="Write it as a whole to make it.")
        return self._plan(path, before, edit_text(before, old, new, path=path))

    def write(self, change: NoteChange) -> Path:
        """Make a change; where what was there is kept. One that changed since it was planned is left as it is."""
        place = find_place(self._root, change.path)
        data = encode_text(change.after)
        if self._load(place, change.path) != change.before:
            raise _changed(change.path)
        before = None if change.before is None else encode_text(change.before)
        record = BackupRecord(
            path=change.path,
            at=self._now().isoformat(),
            before=None if before is None else hash_bytes(before),
            after=hash_bytes(data),
        )
        kept = self._open_backups().keep(record, before)
        self._put(place, data, path=change.path, is_new=before is None)
        self._read[change.path] = record.after
        return kept

    def restore(self, path: str | None = None) -> tuple[str, bool]:
        """Take the last change back that was not taken back yet, of a note or of any: its path, and whether it is gone.

        A note that was new is taken away; its text stays in the folder of backups.
        """
        path = None if path is None else _name(path)
        backups = self._open_backups()
        found = ((place, one) for place, one in backups.list_newest() if not one.undone and path in (None, one.path))
        kept, record = next(found, (None, None))
        if kept is None or record is None:
            named = f" of {path}" if path else ""
            raise WriteRefusedError(f"There is no change{named} to take back.", hint="Nothing was written here by now.")
        place = find_place(self._root, record.path)
        now = self._load_bytes(place, record.path)
        if now is None or hash_bytes(now) != record.after:
            raise WriteRefusedError(
                f"{record.path} was changed since it was written, and is left as it is.",
                hint=f"What it was before lies in {kept}.",
            )
        if record.before is None:
            self._take_away(place, now, kept)
        else:
            self._put(place, read_plain(backups.find_copy(kept, record)), path=record.path, is_new=False)
        backups.mark_undone(kept, record)
        return record.path, record.before is None

    def _plan(self, path: str, before: str | None, after: str) -> NoteChange:
        if len(after) > LONGEST:
            raise WriteRefusedError(
                f"{path} would have {len(after):,} characters; at most {LONGEST:,} are written.", hint="Write less."
            )
        encode_text(after)
        seen = self._read.get(path)
        if seen is not None and before is not None and hash_bytes(encode_text(before)) != seen:
            raise _changed(path)
        return NoteChange(path=path, before=before, after=after, diff=render_diff(path, before, after))

    def _find(self, path: str) -> str | None:
        return self._load(find_place(self._root, path), path)

    def _load(self, place: Path, path: str) -> str | None:
        data = self._load_bytes(place, path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise SourceUnreadableError(f"{path} is not UTF-8.", hint="It is left as it is.") from error

    def _load_bytes(self, place: Path, path: str) -> bytes | None:
        try:
            return read_plain(place, limit=4 * LONGEST, name=path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SourceUnreadableError(
                f"{path} cannot be read: {error.strerror}.", hint="It is left as it is."
            ) from error

    def _put(self, place: Path, data: bytes, *, path: str, is_new: bool) -> None:
        try:
            if is_new:
                place.parent.mkdir(parents=True, exist_ok=True)
                # Whoever may read the folder may read the note: it is theirs, not Lamella's.
                write_new(place, data, mode=stat.S_IMODE(place.parent.stat().st_mode) & 0o666)
            else:
                replace_file(place, data)
        except FileExistsError as error:
            raise _changed(path) from error
        except OSError as error:
            raise WriteRefusedError(
                f"{path} cannot be written: {error.strerror}. It is as it was.", hint="Check permissions and the disk."
            ) from error

    def _take_away(self, place: Path, data: bytes, kept: Path) -> None:
        try:
            write_new(kept / place.name, data)
            place.unlink()
        except OSError as error:
            raise WriteRefusedError(
                f"{place.name} cannot be taken away: {error.strerror}.", hint="Remove it."
            ) from error


def _name(path: str) -> str:
    """A path as it is known here: ``./a.md`` means ``a.md``. Whether it may be written is said later."""
    return str(PurePosixPath(path)) if path.startswith(".") or "//" in path or "/./" in path else path


def _changed(path: str) -> WriteRefusedError:
    return WriteRefusedError(
        f"{path} was changed by somebody else since it was read, and is left as it is.",
        hint="Read it again, and begin from what it says now.",
    )
