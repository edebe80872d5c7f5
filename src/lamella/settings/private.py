"""Private files: what settings keep of their own, as JSON, read whole and written whole, by nobody but their owner."""

from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct, ValidationError, json

from lamella.adapters.files.privacy import close_file, make_own_folder
from lamella.adapters.files.reading import MAX_SETTINGS_BYTES, read_plain
from lamella.adapters.files.writing import replace_file, write_new
from lamella.errors import SettingError

_Kept = TypeVar("_Kept", bound=Struct)


def read_private(path: Path, kind: type[_Kept]) -> _Kept:
    """What a file holds; where there is none, what holds nothing."""
    try:
        return json.decode(read_plain(path, limit=MAX_SETTINGS_BYTES), type=kind)
    except FileNotFoundError:
        return kind()
    except (OSError, DecodeError, ValidationError, RecursionError) as error:
        told = (error.strerror if isinstance(error, OSError) else None) or error
        raise SettingError(f"{path} cannot be read: {told}.", hint="Mend it, or remove it.") from error


def write_private(path: Path, kept: Struct) -> None:
    """Write all of it, or nothing; the file and its folder are closed to others, also where they were there."""
    data = json.format(json.encode(kept)) + b"\n"
    try:
        make_own_folder(path.parent)
        close_file(path)
        (replace_file if path.exists() else write_new)(path, data)
    except OSError as error:
        raise SettingError(
            f"{path} cannot be written: {error.strerror}.", hint="Permit writing to it and to its folder."
        ) from error
