"""What is known and what stands where, as it is kept: contents by their hashes, and blocks by what they show."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import KINDS, LATER_KIND
from lamella.core.artifacts.model import Artifact
from lamella.core.artifacts.unread import UnreadArtifact, UnreadTexts
from lamella.core.log.events.artifact import Contents, StoredArtifact, leave_unread, read_artifact, store_artifact
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.library import LibraryEntry, Standing, make_standing
from lamella.core.text.content import hash_text
from lamella.core.values import replace

# An artifact by its index, and what the library says of it.
KeptEntry = tuple[int, int, Form | None, bool | None, bool]
# What stands for an artifact: its index, form and place, its pieces by their indices, its tokens, and whether it is
# listed.
KeptStanding = tuple[int, Form, str | None, tuple[int, ...], int, bool]
# A piece of text: itself, or the artifact whose block it is, and the hash of that.
KeptPiece = str | tuple[int, str]


class Shelves:
    """Artifacts and pieces of text by numbers, each once, while a state is packed."""

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []
        self.pieces: list[str] = []
        self.kept: list[KeptPiece] = []
        self.stored: list[StoredArtifact] = []
        self.blocks: dict[str, str] = {}
        self._artifacts: dict[StoredArtifact, int] = {}
        self._pieces: dict[str, int] = {}

    def name_artifact(self, artifact: Artifact) -> int:
        """The number of an artifact; a ``ValueError`` where it would not be the same when it is read again."""
        spec = KINDS[artifact.kind]
        if (artifact.recoverable, artifact.trust) != (spec.recoverable, spec.trust):
            raise ValueError(f"{artifact.id} is not what its kind makes of it")
        # By all that it is but its text, which its hash stands for and which may not have been read.
        stored = store_artifact(artifact)
        number = self._artifacts.setdefault(stored, len(self.stored))
        if number == len(self.stored):
            self.stored.append(stored)
            self.artifacts.append(artifact)
        return number

    def name_piece(self, piece: str) -> int:
        """The number of a piece of text."""
        return self._pieces[piece] if piece in self._pieces else self._add(piece, piece)

    def _add(self, piece: str, kept: KeptPiece) -> int:
        number = self._pieces[piece] = len(self.pieces)
        self.pieces.append(piece)
        self.kept.append(kept)
        return number

    def pack_standing(self, one: Standing) -> KeptStanding:
        """What stands for an artifact."""
        artifact = self.name_artifact(one.artifact)
        for piece in one.pieces:
            if piece not in self._pieces:
                self._add(piece, self._put_block(piece, artifact) if _is_block(piece, one) else piece)
        pieces = tuple([self._pieces[piece] for piece in one.pieces])
        return artifact, one.form, one.place, pieces, one.tokens, one.listed

    def _put_block(self, block: str, artifact: int) -> KeptPiece:
        """A block by its hash: it is long, stands there for many turns, and need not be written with each state."""
        name = hash_text(block)
        self.blocks[name] = block
        return artifact, name

    def pack_entry(self, entry: LibraryEntry) -> KeptEntry:
        """What the library says of an artifact."""
        return self.name_artifact(entry.artifact), entry.at, entry.form, entry.held, entry.listed


def _is_block(piece: str, one: Standing) -> bool:
    """Whether a piece shows a whole text."""
    if one.form is not Form.FULL:
        return False
    # One that was left unread stood whole when it was kept, and is not read to find that out. A piece beside its block,
    # such as a line before it, is kept as one then, and read again as it was.
    return isinstance(one.artifact, UnreadArtifact) or piece in _render_blocks(one.artifact)


def _render_blocks(artifact: Artifact) -> Iterator[str]:
    """The blocks that can show all of it."""
    for kind in dict.fromkeys((artifact.kind, LATER_KIND[artifact.kind])):
        yield render_block(artifact, kind=kind)


def find_waiting(
    stored: Sequence[StoredArtifact], kept: Iterable[KeptPiece], blocks: Collection[str] = ()
) -> frozenset[int]:
    """The artifacts, by their indices, whose texts can wait until they are asked for.

    None of them stands whole, or the block that shows it is there.
    """
    shown = {one[0] for one in kept if not isinstance(one, str) and one[1] not in blocks}
    return frozenset([at for at, one in enumerate(stored) if at not in shown and not one.images])


def list_needed(stored: StoredArtifact, *, waits: bool) -> tuple[str, ...]:
    """The contents of an artifact that are needed at once."""
    return tuple([name for name in stored.hashes() if not (waits and name == stored.hash)])


def unpack_artifacts(
    stored: Sequence[StoredArtifact], contents: Contents, *, waiting: Collection[int] = (), unread: UnreadTexts
) -> list[Artifact]:
    """Artifacts with their contents, but for texts that wait; a ``LookupError`` where something of them is gone."""
    artifacts: list[Artifact] = []
    for at, one in enumerate(stored):
        waits = at in waiting
        artifact = leave_unread(one, contents, unread) if waits else read_artifact(one, contents)
        if artifact is None or not contents.keys() >= set(list_needed(one, waits=waits)):
            raise LookupError(one.id)
        artifacts.append(artifact)
    return artifacts


def unpack_pieces(kept: Iterable[KeptPiece], artifacts: Sequence[Artifact], blocks: Mapping[str, str]) -> list[str]:
    """Pieces of text; a ``LookupError`` where a block cannot be made again."""
    return [one if isinstance(one, str) else blocks.get(one[1]) or _find_block(artifacts, *one) for one in kept]


def _find_block(artifacts: Sequence[Artifact], number: int, name: str) -> str:
    """The block of this hash, made anew from its artifact."""
    found = next((block for block in _render_blocks(artifacts[number]) if hash_text(block) == name), None)
    if found is None:
        raise LookupError(name)
    return found


def unpack_library(kept: Mapping[str, KeptEntry], artifacts: Sequence[Artifact]) -> dict[str, LibraryEntry]:
    """The library."""
    return {
        name: LibraryEntry(artifact=artifacts[artifact], at=at, form=form, held=held, listed=listed)
        for name, (artifact, at, form, held, listed) in kept.items()
    }


def unpack_standing(kept: KeptStanding, artifacts: Sequence[Artifact], pieces: Sequence[str]) -> Standing:
    """What stands for an artifact."""
    artifact, form, place, named, tokens, listed = kept
    texts = tuple([pieces[one] for one in named])
    one = make_standing(artifacts[artifact], form=form, place=place, pieces=texts, tokens=tokens)
    return replace(one, listed=True) if listed else one
