"""Origins: where the rows of a query come from, by tags, folders, files and links."""

from dataclasses import dataclass
from typing import Protocol

from lamella.adapters.sources.dataview.language.parsing import TokenReader, split_link
from lamella.adapters.sources.dataview.language.tokens import TokenKind


class NoteSets(Protocol):
    """What an origin may ask for: paths of notes."""

    def every(self) -> frozenset[str]: ...

    def tagged(self, tag: str) -> frozenset[str]:
        """Those that carry a tag or one below it."""
        ...

    def below(self, name: str) -> frozenset[str]:
        """Those in a folder and below it, or the one note of that path."""
        ...

    def linking_to(self, target: str) -> frozenset[str]: ...

    def linked_from(self, target: str) -> frozenset[str]: ...


class NoteOrigin(Protocol):
    """Notes that rows are made of."""

    def select(self, notes: NoteSets) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class Everywhere:
    """All notes: what a query without FROM asks."""

    def select(self, notes: NoteSets) -> frozenset[str]:
        return notes.every()


@dataclass(frozen=True, slots=True)
class TagOrigin:
    """Notes that carry a tag."""

    tag: str

    def select(self, notes: NoteSets) -> frozenset[str]:
        return notes.tagged(self.tag)


@dataclass(frozen=True, slots=True)
class FolderOrigin:
    """Notes of a folder, or one note."""

    name: str

    def select(self, notes: NoteSets) -> frozenset[str]:
        return notes.below(self.name)


@dataclass(frozen=True, slots=True)
class LinkOrigin:
    """Notes that link to a note, or that it links to."""

    target: str
    is_outgoing: bool

    def select(self, notes: NoteSets) -> frozenset[str]:
        return notes.linked_from(self.target) if self.is_outgoing else notes.linking_to(self.target)


@dataclass(frozen=True, slots=True)
class OtherNotes:
    """All notes but some."""

    of: NoteOrigin

    def select(self, notes: NoteSets) -> frozenset[str]:
        return notes.every() - self.of.select(notes)


@dataclass(frozen=True, slots=True)
class OriginChain:
    """Notes of one origin, and of others, or only those that are in others too; taken from the left."""

    first: NoteOrigin
    rest: tuple[tuple[str, NoteOrigin], ...]

    def select(self, notes: NoteSets) -> frozenset[str]:
        found = self.first.select(notes)
        for word, other in self.rest:
            found = found & other.select(notes) if word == "and" else found | other.select(notes)
        return found


def parse_origin(reader: TokenReader) -> NoteOrigin:
    """What stands behind FROM."""
    return reader.nested(lambda: _chain(reader))


def _chain(reader: TokenReader) -> NoteOrigin:
    first = _signed(reader)
    rest: list[tuple[str, NoteOrigin]] = []
    while True:
        if reader.take_word("and") or reader.take_sign("&"):
            rest.append(("and", _signed(reader)))
        elif reader.take_word("or") or reader.take_sign("|"):
            rest.append(("or", _signed(reader)))
        else:
            return OriginChain(first, tuple(rest)) if rest else first


def _signed(reader: TokenReader) -> NoteOrigin:
    if reader.take_sign("-", "!") or reader.take_word("not"):
        return OtherNotes(reader.nested(lambda: _signed(reader)))
    return _atom(reader)


def _atom(reader: TokenReader) -> NoteOrigin:
    token = reader.take()
    if token.is_sign("("):
        found = parse_origin(reader)
        reader.need_sign(")")
        return found
    if token.is_word("outgoing") and reader.take_sign("("):
        inside = reader.take()
        if inside.kind is not TokenKind.LINK:
            raise reader.refuse("outgoing takes a link, as in outgoing([[Note]])", inside)
        reader.need_sign(")")
        return LinkOrigin(split_link(inside.text)[0], is_outgoing=True)
    match token.kind:
        case TokenKind.TAG:
            return TagOrigin(token.text)
        case TokenKind.TEXT:
            return FolderOrigin(token.text)
        case TokenKind.LINK:
            return LinkOrigin(split_link(token.text)[0], is_outgoing=False)
        case _:
            raise reader.refuse('FROM takes #tags, "folders", [[links]] and outgoing([[links]])', token)
