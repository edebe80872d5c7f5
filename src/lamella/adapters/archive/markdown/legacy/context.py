"""Context lines of other programs: the notes they name, read as they are now."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from lamella.adapters.archive.markdown.context import parse_context
from lamella.adapters.archive.markdown.lookup import Lookup
from lamella.core.artifacts.model import Artifact, Kind
from lamella.errors import BadInputError
from lamella.ports import SourceReader

_KINDS = {
    ".canvas": Kind.CANVAS,
    ".pdf": Kind.PDF,
    ".docx": Kind.OFFICE,
    ".xlsx": Kind.OFFICE,
    ".pptx": Kind.OFFICE,
}
# Such a line joins names by commas and says nothing about commas in a name: how many pieces one is tried from.
_PIECES = 5


class Recall:
    """What context lines name, message by message; whatever is not brought along is said."""

    def __init__(self, lookup: Lookup, warnings: list[str]) -> None:
        self._lookup = lookup
        self._warnings = warnings

    def read(self, line: str, *, number: int) -> Iterator[Artifact]:
        """The artifacts a message's context line names."""
        for group, names in parse_context(line).items():
            match group:
                case "Notes":
                    yield from self._read_notes(names, number)
                case "Folders":
                    yield from self._expand(Kind.FOLDER, names, number)
                case "Tags":
                    yield from self._expand(Kind.TAG, names, number)
                case "URLs" | "Web Tabs":
                    self._say(number, f"the text of {', '.join(names)} is not in the file, and nothing is fetched.")
                case _:
                    self._say(number, f"its context {group or 'line'} is not known: {', '.join(names)}.")

    def _read_notes(self, names: Sequence[str], number: int) -> Iterator[Artifact]:
        at = 0
        while at < len(names):
            pieces = self._pieces(names[at:])
            name = ", ".join(names[at : at + pieces])
            at += pieces
            found = self._lookup.find(name, _kind(name))
            if found.artifact is None:
                self._say(number, f"{name} is left out: {found.why}.")
                continue
            if found.moved_to is not None:
                self._say(number, f"{name} was found as {found.moved_to}.")
            yield found.artifact

    def _pieces(self, names: Sequence[str]) -> int:
        """Of how many pieces the first name is made: of more than one only if there is a file of exactly that name."""
        for count in range(1, min(_PIECES, len(names)) + 1):
            name = ", ".join(names[:count])
            if self._lookup.exists(name, _kind(name)):
                return count
        return 1

    def _expand(self, kind: Kind, names: Sequence[str], number: int) -> Iterator[Artifact]:
        for name in names:
            sources = self._lookup.sources
            if sources is None:
                self._say(number, f"the {kind} {name} is left out: no vault was given to read it from.")
                continue
            try:
                yield from _read_all(sources, kind, name)
            except BadInputError as error:
                self._say(number, f"the {kind} {name} is left out: {error.message}")

    def _say(self, number: int, what: str) -> None:
        self._warnings.append(f"Message {number}: {what}")


def _read_all(sources: SourceReader, kind: Kind, name: str) -> list[Artifact]:
    listing: Callable[[str], Sequence[str]] = sources.list_folder if kind is Kind.FOLDER else sources.list_tag
    return [sources.read_file(path, Kind.NOTE, via=f"{kind}:{name}") for path in listing(name)]


def _kind(name: str) -> Kind:
    return _KINDS.get(PurePosixPath(name).suffix.lower(), Kind.NOTE)
