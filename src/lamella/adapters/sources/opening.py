"""Opening sources: what can be read, with a vault and without one."""

from pathlib import Path

from lamella.adapters.sources.pictures import PictureReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import Medium
from lamella.ports import Look, Sources


def open_sources(vault: Path | None, *, follows_embeds: bool = True) -> Look:
    """Looks at all that can be read; an error if the vault is named and not there."""
    return Vault(vault, follows_embeds=follows_embeds).look if vault is not None else _look_at_nothing


def _look_at_nothing() -> Sources:
    """Without a vault only bytes that are given are read."""
    return Sources(readers={Medium.PICTURE: PictureReader()})
