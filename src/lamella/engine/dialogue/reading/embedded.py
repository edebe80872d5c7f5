"""Pictures that the active note embeds, read for its turn; each that cannot be sent is said, not skipped."""

from collections.abc import Iterator

from lamella.core.artifacts.embeds import embedded_images, is_address
from lamella.core.artifacts.kinds import KINDS, Embeds
from lamella.core.artifacts.model import Artifact, Image, Kind
from lamella.core.artifacts.wanted import Wanted
from lamella.core.text.addresses import is_page
from lamella.core.values import replace
from lamella.errors import BadInputError, SourceMissingError, SourceUnreachableError
from lamella.ports import NO_VAULT, Sources

# A note is somebody else's text: it does not decide how much of a disk is read for a turn.
MOST = 100
MOST_BYTES = 100_000_000
# Each may take as long as a page may, and somebody waits.
MOST_UNREACHED = 2
_TOLD = 10
_LONGEST = 200


def with_images(note: Artifact, sources: Sources) -> tuple[Artifact, tuple[str, ...]]:
    """The note with its pictures, if it is the active one, and what is to be said of those that are missing."""
    if KINDS[note.kind].embeds is not Embeds.SENT:
        return note, ()
    targets, failures = embedded_images(note.text), list[str]()
    images = tuple(_read_all(targets[:MOST], note=note, sources=sources, failures=failures))
    told = [f"An image of {note.id} is not sent: {why}" for why in dict.fromkeys(failures[:_TOLD])]
    left = max(0, len(failures) - _TOLD) + max(0, len(targets) - MOST)
    if left:
        told.append(f"{left:,} more images of {note.id} are not sent; at most {MOST} of a note are read.")
    return replace(note, images=images), tuple(told)


def _read_all(targets: tuple[str, ...], *, note: Artifact, sources: Sources, failures: list[str]) -> Iterator[Image]:
    read = unreached = 0
    for target in targets:
        try:
            if is_page(target) and unreached >= MOST_UNREACHED:
                raise SourceUnreachableError(f"{MOST_UNREACHED} others could not be reached.", hint="Try again later.")
            if read > MOST_BYTES:
                raise BadInputError(
                    f"its others have {read:,} bytes already, and {MOST_BYTES:,} are read for a note.",
                    hint="Embed fewer of them, or attach the ones that matter.",
                )
            for image in sources.read(Wanted(kind=Kind.IMAGE, name=_find(target, note, sources))).images:
                read += len(image.data)
                yield image
        except BadInputError as error:
            unreached += isinstance(error, SourceUnreachableError)
            failures.append(f"{_cut(target)} stays a link. {error.message}" if is_page(target) else error.message)


def _cut(target: str) -> str:
    return target if len(target) <= _LONGEST else f"{target[:_LONGEST]}…"


def _find(target: str, note: Artifact, sources: Sources) -> str:
    """What a picture is read by: its address, or its path in the vault."""
    if is_address(target):
        return target
    if sources.catalog is None:
        raise SourceMissingError(NO_VAULT, hint="Name a vault, or attach the picture.")
    return sources.catalog.find_file(target, beside=note.id)
