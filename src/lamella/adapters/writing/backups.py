"""Backups: a note as it was before it was written over, in a private folder of its own for each change."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from secrets import token_hex

from msgspec import DecodeError, Struct, ValidationError, json

from lamella.adapters.files.privacy import make_own_folder
from lamella.adapters.files.reading import read_plain
from lamella.adapters.files.writing import replace_file, write_new
from lamella.errors import WriteRefusedError

_RECORD = "change.json"
_LARGEST = 10_000


class BackupRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change that was made: of which note, when, the hashes of its text before and after, and whether it was undone.

    A note that was new has nothing before.
    """

    lamella: int = 1
    path: str
    at: str
    before: str | None
    after: str
    undone: bool = False


class BackupFolder:
    """The changes made to one vault. Nothing in it is ever removed by us."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, record: BackupRecord, data: bytes | None) -> Path:
        """Keep a note as it is, before it is changed; where it is kept."""
        moment = datetime.fromisoformat(record.at).astimezone(UTC)
        place = self.folder / f"{moment:%Y%m%dT%H%M%S%f}Z-{token_hex(4)}"
        try:
            make_own_folder(self.folder.parent)
            make_own_folder(self.folder)
            make_own_folder(place)
            if data is not None:
                write_new(self.find_copy(place, record), data)
            write_new(place / _RECORD, json.format(json.encode(record)) + b"\n")
        except OSError as error:
            raise WriteRefusedError(
                f"No backup can be kept in {self.folder}: {error.strerror}. Nothing was written.",
                hint="Permit writing to it, or set note_backups to another folder.",
            ) from error
        return place

    def list_newest(self) -> Iterator[tuple[Path, BackupRecord]]:
        """Every change, the last one first; what cannot be read is none."""
        places = sorted(self.folder.iterdir(), reverse=True) if self.folder.is_dir() else []
        for place in places:
            try:
                yield place, json.decode(read_plain(place / _RECORD, limit=_LARGEST), type=BackupRecord)
            except (OSError, DecodeError, ValidationError):
                continue

    def mark_undone(self, place: Path, record: BackupRecord) -> None:
        """Note that a change was taken back."""
        undone = BackupRecord(path=record.path, at=record.at, before=record.before, after=record.after, undone=True)
        replace_file(place / _RECORD, json.format(json.encode(undone)) + b"\n")

    @staticmethod
    def find_copy(place: Path, record: BackupRecord) -> Path:
        """Where the note itself lies."""
        return place / PurePosixPath(record.path).name
