"""Small vaults to search."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from lamella.ports import NoteHit
from lamella.retrieval.index import VaultIndex
from lamella.sources.open_sources import make_source_opener

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def write(root: Path, notes: Mapping[str, str | bytes]) -> Path:
    """A folder with these files, all of them changed long ago."""
    for path, content in notes.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        date(file, datetime(2025, 6, 1, 12, tzinfo=UTC))
    return root


def date(file: Path, at: datetime) -> None:
    """Say that a file was changed at a time."""
    os.utime(file, (at.timestamp(), at.timestamp()))


@contextmanager
def indexed(root: Path, file: Path | None = None) -> Iterator[VaultIndex]:
    """The index of a vault, up to date."""
    index = VaultIndex(
        file or root.parent / f"{root.name}-index" / "index.db", vault=root, open_readers=make_source_opener(root)
    )
    try:
        index.refresh()
        yield index
    finally:
        index.close()


def find(index: VaultIndex, query: str, limit: int = 10) -> list[NoteHit]:
    return list(index.search(query, now=NOW, limit=limit))


def paths(index: VaultIndex, query: str, limit: int = 10) -> list[str]:
    """The notes that a question finds, in their order, each once."""
    return list(dict.fromkeys(hit.path for hit in find(index, query, limit)))
