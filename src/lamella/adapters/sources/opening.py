"""Opening sources: which reader reads what, with a vault and without one."""

from collections.abc import Sequence
from pathlib import Path

from lamella.adapters.sources.files import FileReader
from lamella.adapters.sources.pictures import PictureReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import Medium
from lamella.core.artifacts.model import Kind
from lamella.ports import Look, Reader, Sources


def open_sources(vault: Path | None) -> Look:
    """Looks at all that can be read; an error if the vault is named and not there."""
    folder = Vault(vault) if vault is not None else None

    def look() -> Sources:
        if folder is None:
            return Sources(readers={Medium.PICTURE: PictureReader()})
        glance = folder.glance()
        readers: dict[Medium, Reader] = {Medium.FILE: FileReader(glance), Medium.PICTURE: PictureReader(glance)}
        return Sources(readers=readers, catalog=glance)

    return look


def list_notes(vault: Path) -> Sequence[str]:
    """The paths of all notes in a vault, sorted."""
    return Vault(vault).list_notes(Kind.FOLDER, ".").paths
