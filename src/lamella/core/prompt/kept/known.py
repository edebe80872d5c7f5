"""What is known and what stands where, as it is kept: contents by their hashes, and blocks by what they show."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from lamella.core.artifacts.blocks import render_block
from lamella.core.artifacts.kinds import KINDS, LATER_KIND
from lamella.core.artifacts.model import Artifact, Kind
from lamella.core.artifacts.unread import UnreadTexts
from lamella.core.log.events.artifact import Contents, StoredArtifact, leave_unread, read_artifact, store_artifact
from lamella.core.log.placement import Form
from lamella.core.prompt.layers.library import LibraryEntry, Standing, make_standing
from lamella.core.values import replace

# An artifact by its index, and what the library says of it.
KeptEntry = tuple[int, int, Form | None, bool | None, bool]
# What stands for an artifact: its index, form and place, its pieces by their indices, its tokens, and whether it is
# listed.
KeptStanding = tuple[int, Form, str | None, tuple[int, ...], int, bool]
# A piece of text: itself, or the artifact whose block it is, with the kind that it is shown as.
KeptPiece = str | tuple[int, Kind]


class Shelves:
    """Artifacts and pieces of text by numbers, each once, while a state is packed."""

    def __init__(self) -> None:
        self.artifacts: list[Artifact] = []
        self.pieces: list[str] = []
        self.kept: list[KeptPiece] = []
        self.stored: list[StoredArtifact] = []
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
                self._add(piece, _find_block(piece, one, artifact))
        pieces = tuple([self._pieces[piece] for piece in one.pieces])
        return artifact, one.form, one.place, pieces, one.tokens, one.listed

    def pack_entry(self, entry: LibraryEntry) -> KeptEntry:
        """What the library says of an artifact."""
        return self.name_artifact(entry.artifact), entry.at, entry.form, entry.held, entry.listed


def _find_block(piece: str, one: Standing, number: int) -> KeptPiece:
    """A piece as what it shows, where that is a whole text: it is not written a second time."""
    artifact = one.artifact
    if one.form is Form.FULL and len(piece) > len(artifact.text):
        for kind in dict.fromkeys((artifact.kind, LATER_KIND[artifact.kind])):
            if render_block(artifact, kind=kind) == piece:
                return number, kind
    return piece


def find_waiting(stored: Sequence[StoredArtifact], kept: Iterable[KeptPiece]) -> frozenset[int]:
    """The artifacts, by their indices, whose texts can wait until they are asked for: none of them stands whole."""
    shown = {one[0] for one in kept if not isinstance(one, str)}
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
        if artifact is None or any(name not in contents for name in list_needed(one, waits=waits)):
            raise LookupError(one.id)
        artifacts.append(artifact)
    return artifacts


def unpack_pieces(kept: Iterable[KeptPiece], artifacts: Sequence[Artifact]) -> list[str]:
    """Pieces of text."""
    return [one if isinstance(one, str) else render_block(artifacts[one[0]], kind=one[1]) for one in kept]


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
