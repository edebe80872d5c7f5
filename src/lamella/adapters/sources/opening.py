"""Opening sources: what can be read, with a vault and without one."""

from dataclasses import replace
from pathlib import Path

from lamella.adapters.sources.pictures.reader import PictureReader
from lamella.adapters.sources.readers import DocumentReader, OpenConversions, PageReader
from lamella.adapters.sources.vault import Vault
from lamella.core.artifacts.kinds import Medium
from lamella.ports import Look, Sources


def open_sources(vault: Path | None, conversions: OpenConversions | None = None) -> Look:
    """Looks at all that can be read; an error if the vault is named and not there.

    Without ``conversions`` a file is read if it is its own text, and nothing is fetched.
    """
    if vault is None:
        return lambda: _with_conversions(_look_at_nothing(), None, conversions)
    folder = Vault(vault)
    return lambda: _with_conversions(folder.look(), folder, conversions)


def _look_at_nothing() -> Sources:
    """Without a vault only bytes that are given are read, and pages."""
    return Sources(readers={Medium.PICTURE: PictureReader()})


def _with_conversions(sources: Sources, vault: Vault | None, conversions: OpenConversions | None) -> Sources:
    if conversions is None:
        return sources
    told: list[str] = []
    pages = PageReader(conversions=conversions, tell=told.append)
    pictures = sources.readers[Medium.PICTURE]
    if isinstance(pictures, PictureReader):
        pictures = replace(pictures, fetch=lambda url: conversions().read_picture(url, tell=told.append))
    readers = {**sources.readers, Medium.PAGE: pages, Medium.VIDEO: pages, Medium.PICTURE: pictures}
    if vault is not None:
        documents = DocumentReader(conversions=conversions, locate=vault.locate, read_bytes=vault.read_bytes)
        readers |= {Medium.PDF: documents, Medium.OFFICE: documents}
    return replace(sources, readers=readers, told=told)
