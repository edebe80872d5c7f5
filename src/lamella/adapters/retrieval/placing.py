"""Placing: where the index of a vault is kept. Never in the vault: that is only read, and may be synced or shared."""

import re
from hashlib import sha256
from pathlib import Path

from lamella.adapters.files.naming import find_real
from lamella.errors import SettingError

_DIGITS = 16
_NAME_CHARS = 40
_OTHER = re.compile(r"[^A-Za-z0-9_.-]+")


def place_index(vault: Path, folder: str | None = None, *, what: str = "") -> Path:
    """The file of a folder's index, in the folder that is set or that the system keeps for what can be made again.

    ``what`` tells the index of its code from that of its notes.
    """
    return _place_folder(folder) / f"{name_vault(vault)}{f'-{what}' if what else ''}.db"


def name_vault(vault: Path) -> str:
    """What is kept of a vault is called so: its name, and a mark that no other has."""
    root = find_real(vault)
    name = _OTHER.sub("-", root.name).strip("-.")[:_NAME_CHARS] or "vault"
    # Two vaults of one name have two indexes, and a vault by two names has one.
    mark = sha256(str(root).encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
    return f"{name}-{mark}"


def _place_folder(folder: str | None) -> Path:
    if folder:
        return find_real(folder)
    from platformdirs import user_cache_path

    place = user_cache_path("lamella", appauthor=False) / "indexes"
    if not place.is_absolute():
        # Without a home it would be a folder of wherever somebody stands.
        raise SettingError("There is no home folder to keep an index in.", hint="Set `index_folder` to a folder.")
    return place
