"""Context lines of other programs: the notes they name, read as they are now."""

from collections.abc import Iterator, Sequence

from lamella.adapters.archive.markdown.page.context import parse_context
from lamella.adapters.archive.markdown.recovery.lookup import Lookup
from lamella.core.artifacts.kinds import KINDS, TEXT_KINDS, BlockForm, Medium, kind_of_file
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.errors import BadInputError, SourceMissingError

_EXPANDED = {spec.group: kind for kind, spec in KINDS.items() if spec.block is BlockForm.EXPANDS}
_FETCHED = {spec.group for spec in KINDS.values() if spec.medium in (Medium.PAGE, Medium.VIDEO)}
# How many names are looked up for one file, and how many artifacts are brought along: a short line may name a whole
# vault, and the next one again.
_MOST_NAMES, _MOST = 10_000, 20_000
# Such a line joins names by commas and says nothing about commas in a name: how many pieces one is tried from.
_PIECES = 5


class ContextReader:
    """What context lines name, message by message; whatever is not brought along is said."""

    def __init__(self, lookup: Lookup, warnings: list[str]) -> None:
        self._lookup = lookup
        self._warnings = warnings
        self._names, self._room = _MOST_NAMES, _MOST
        self._expanded: dict[tuple[Kind, str], tuple[Artifact, ...]] = {}

    def read(self, line: str, *, number: int) -> Iterator[Artifact]:
        """The artifacts a message's context line names, as long as there is room for them."""
        for artifact in self._read(line, number):
            if not self._room:
                self._say(number, f"more than {_MOST:,} attachments are named up to here; the others are left out.")
                return
            self._room -= 1
            yield artifact

    def _read(self, line: str, number: int) -> Iterator[Artifact]:
        for group, given in parse_context(line).items():
            names = given[: self._names]
            self._names -= len(names)
            if len(names) < len(given):
                left = f"{len(given) - len(names):,} names are left out"
                self._say(number, f"{left}; more than {_MOST_NAMES:,} are not looked up for one file.")
            if group == KINDS[Kind.NOTE].group:
                yield from self._read_notes(names, number)
            elif group in _EXPANDED:
                yield from self._expand(_EXPANDED[group], names, number)
            elif group in _FETCHED:
                self._say(number, f"the text of {', '.join(names)} is not in the file, and nothing is fetched.")
            else:
                self._say(number, f"its context {group or 'line'} is not known: {', '.join(names)}.")

    def _read_notes(self, names: Sequence[str], number: int) -> Iterator[Artifact]:
        at = 0
        while at < len(names):
            pieces = self._pieces(names[at : at + _PIECES])
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
        if self._lookup.sources.catalog is None:
            return 1
        for count in range(1, len(names) + 1):
            name = ", ".join(names[:count])
            if self._lookup.exists(name, _kind(name)):
                return count
        return 1

    def _expand(self, kind: Kind, names: Sequence[str], number: int) -> Iterator[Artifact]:
        for name in dict.fromkeys(names):
            try:
                yield from self._read_expanded(kind, name)
            except BadInputError as error:
                self._say(number, f"the {kind} {name} is left out: {error.message}")

    def _read_expanded(self, kind: Kind, name: str) -> tuple[Artifact, ...]:
        """The notes of a folder or tag, read once for all messages that name it."""
        sources = self._lookup.sources
        if sources.catalog is None:
            raise SourceMissingError("no vault was given to read it from.", hint="Name the vault.")
        if (kind, name) not in self._expanded:
            paths = sources.catalog.list_notes(kind, name).paths
            wanted = [Wanted(kind=Kind.NOTE, name=path, via=f"{kind}:{name}") for path in paths]
            self._expanded[kind, name] = tuple(map(sources.read, wanted))
        return self._expanded[kind, name]

    def _say(self, number: int, what: str) -> None:
        self._warnings.append(f"Message {number}: {what}")


def _kind(name: str) -> Kind:
    """Documents are known by their endings; every other text that such a program attaches it calls a note."""
    kind = kind_of_file(name)
    is_document = kind in TEXT_KINDS and kind is not Kind.CODE
    return kind if kind is not None and is_document else Kind.NOTE
