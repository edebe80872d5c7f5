"""Finding files again: by path, else by a name that only one note has. An ambiguous name is never guessed."""

from dataclasses import dataclass

from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import BadInputError, SourceMissingError, SourceOutsideError
from lamella.ports import Catalog, Sources

_SHOWN = 3
_NO_VAULT = "no vault was given to read it from"
_NOT_THERE = "it is not there"
# A file that is not there takes long, as similar names are looked for. After so many only what is listed is read.
_MISSED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A file as it is now, with its new place if it has moved; or why there is none."""

    artifact: Artifact | None = None
    moved_to: str | None = None
    why: str = ""


class Lookup:
    """Reads files, each once."""

    def __init__(self, sources: Sources | None) -> None:
        self.sources = sources or Sources()
        self._found: dict[tuple[str, Kind, str | None], FoundFile] = {}
        self._places: dict[str, list[str]] | None = None
        self._missed = 0

    def find(self, path: str, kind: Kind, *, wanted: str | None = None) -> FoundFile:
        """The file at a path, or the one of its name elsewhere. ``wanted`` is the hash its text had."""
        key = (path, kind, wanted)
        if key not in self._found:
            self._found[key] = self._find(path, kind, wanted)
        return self._found[key]

    def exists(self, path: str, kind: Kind) -> bool:
        """Whether there is a file at exactly this path."""
        found = self.find(path, kind)
        return found.artifact is not None and found.moved_to is None

    def _find(self, path: str, kind: Kind, wanted: str | None) -> FoundFile:
        catalog = self.sources.catalog
        if catalog is None:
            return FoundFile(why=_NO_VAULT)
        if self._missed >= _MISSED and not self._named(catalog, _name(path)):
            return FoundFile(why=_NOT_THERE)
        try:
            return FoundFile(artifact=self.sources.read(Wanted(kind=kind, name=path)))
        except (SourceMissingError, SourceOutsideError):
            self._missed += 1
            return self._find_moved(catalog, path, wanted) if kind is Kind.NOTE else FoundFile(why=_NOT_THERE)
        except BadInputError as error:
            return FoundFile(why=_reason(error))

    def _named(self, catalog: Catalog, name: str) -> list[str]:
        """Every note of a name. A link to it could mean one before the others; a name by itself could not."""
        if self._places is None:
            self._places = {}
            for place in catalog.list_notes(Kind.FOLDER, ".").paths:
                self._places.setdefault(_name(place), []).append(place)
        return self._places.get(name, [])

    def _find_moved(self, catalog: Catalog, path: str, wanted: str | None) -> FoundFile:
        places = self._named(catalog, _name(path))
        notes: list[tuple[str, Artifact]] = []
        for place in places:
            try:
                notes.append((place, self.sources.read(Wanted(kind=Kind.NOTE, name=place))))
            except BadInputError as error:
                return FoundFile(why=_reason(error))
        for place, note in notes:
            if len(notes) == 1 or note.hash == wanted:
                return FoundFile(artifact=note, moved_to=place)
        if not notes:
            return FoundFile(why=_NOT_THERE)
        shown = ", ".join(places[:_SHOWN])
        return FoundFile(why=f"it is not there, and {len(places)} notes have its name: {shown}")


def _name(path: str) -> str:
    """A note's name as links take it: the end of its path without ``.md``, whatever its case."""
    return path.rstrip("/").rsplit("/", 1)[-1].lower().removesuffix(".md")


def _reason(error: BadInputError) -> str:
    return error.message.rstrip(".")
