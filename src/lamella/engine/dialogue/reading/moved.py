"""Moved files: what is known under one path and stands at another now keeps its name, and is not sent again."""

from collections.abc import Iterable

from lamella.core.artifacts.ids import path_id
from lamella.core.artifacts.kinds import LATER_KIND
from lamella.core.artifacts.model import Artifact, Source
from lamella.core.values import replace
from lamella.errors import BadInputError
from lamella.ports import Catalog

_MOVED = "{name} was moved to {place}. It keeps its name here, and its text is not sent again."


class MovedFiles:
    """Files that earlier turns read, found again by their text where they are gone from their place."""

    def __init__(self, known: Iterable[Artifact], catalog: Catalog | None) -> None:
        self._catalog = catalog
        self._known = {one.id: one for one in known if one.source.read and one.source.path} if catalog else {}
        self._hashes = {one.hash: one for one in reversed(self._known.values())}
        self._places = {find_place(one.source): one for one in self._known.values()}
        self.told: list[str] = []

    def find(self, name: str) -> tuple[Artifact, str] | None:
        """What is known by a name that names no file now, and where that is; none where nobody can be sure."""
        known = self._known.get(path_id(Source(path=name), ""))
        if known is None or self._catalog is None:
            return None
        if known.source.found_at and self._catalog.has_file(known.source.found_at):
            return known, known.source.found_at
        try:
            places = [place for place in self._catalog.find_copies(known) if place not in self._places]
        except BadInputError:
            return None
        # Of two that have the text nobody can say which one it became.
        return (known, places[0]) if len(places) == 1 else None

    def rename(self, now: Artifact, known: Artifact) -> Artifact:
        """What was read at another place, under the name it is known by; that it was moved is told when it is new."""
        path = now.source.path
        source = replace(now.source, path=known.source.path, found_at=None if path == known.source.path else path)
        if source.found_at not in (None, known.source.found_at):
            self.told.append(_MOVED.format(name=known.id, place=path))
        return replace(now, id=known.id, title=known.title, source=source)

    def recognise(self, artifact: Artifact) -> Artifact:
        """What was read, under the name of what it was before it was moved, if it was."""
        path = artifact.source.path
        if not artifact.source.read or path is None or artifact.id in self._known:
            return artifact
        known = self._places.get(path) or self._find_left(artifact)
        if known is None or LATER_KIND[known.kind] is not LATER_KIND[artifact.kind]:
            return artifact
        return self.rename(artifact, known)

    def _find_left(self, artifact: Artifact) -> Artifact | None:
        """What has the same text and is gone from its place."""
        known = self._hashes.get(artifact.hash)
        if known is None or self._catalog is None or self._catalog.has_file(find_place(known.source)):
            return None
        return known


def find_place(source: Source) -> str:
    """Where the file of something that was read stands, as far as is known."""
    return source.found_at or source.path or ""
