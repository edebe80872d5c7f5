"""Opening sources: what can be read, with a vault and without one."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from lamella.adapters.sources.pictures import PictureReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import Medium
from lamella.ports import Look, Sources


def open_sources(vault: Path | None, *, follows_embeds: bool = True, today: Callable[[], date] | None = None) -> Look:
    """Looks at all that can be read; an error if the vault is named and not there.

    ``today`` tells the day to queries in it. Without one those that ask for the day are left as text.
    """
    return Vault(vault, follows_embeds=follows_embeds, today=today).look if vault is not None else _look_at_nothing


def _look_at_nothing() -> Sources:
    """Without a vault only bytes that are given are read."""
    return Sources(readers={Medium.PICTURE: PictureReader()})
