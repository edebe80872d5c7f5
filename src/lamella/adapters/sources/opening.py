"""Opening sources: what can be read, with a vault and without one."""

from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.readers import OpenConversions, PageReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import Medium
from lamella.ports import CodeReader, Look, Reader, Sources


def open_sources(
    vault: Path | None,
    conversions: OpenConversions | None = None,
    *,
    follows_embeds: bool = True,
    today: Callable[[], date] | None = None,
    code: CodeReader | None = None,
) -> Look:
    """Looks at all that can be read; an error if the vault is named and not there.

    Without ``conversions`` a file is read if it is its own text, and nothing is fetched. ``today`` tells the day to
    queries in it. Without one those that ask for the day are left as text. ``code`` chooses from codebases in it.
    """
    if vault is None:
        return partial(_look_at_nothing, conversions)
    return Vault(vault, conversions, follows_embeds=follows_embeds, today=today, code=code).look


def _look_at_nothing(conversions: OpenConversions | None) -> Sources:
    """Without a vault only bytes that are given are read, and pages."""
    readers: dict[Medium, Reader] = {Medium.PICTURE: PictureReader()}
    told: list[str] = []
    if conversions is not None:
        pages = PageReader(conversions=conversions, tell=told.append)
        pictures = PictureReader(fetch=lambda url: conversions().read_picture(url, tell=told.append))
        readers |= {Medium.PAGE: pages, Medium.VIDEO: pages, Medium.PICTURE: pictures}
    return Sources(readers=readers, told=told)
