"""Artifacts as events name them: everything but their contents, which hashes stand for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.model import Artifact, ArtifactId, Image, Kind, Policy, Source
from lamella.core.artifacts.unread import NOT_READ, UnreadArtifact, UnreadTexts
from lamella.core.text.content import encode_text, hash_text

Contents = Mapping[str, bytes]
Made = TypeVar("Made", bound=Artifact)

_IMAGE = Kind.IMAGE


class StoredImage(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A picture without its bytes."""

    hash: str
    media_type: str
    width: int
    height: int


class StoredSource(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Where an artifact came from; what is not known is left out."""

    path: str | None = None
    url: str | None = None
    query: str | None = None
    lines: tuple[int, int] | None = None
    tool: str | None = None
    arguments: str | None = None
    via: str | None = None
    read: bool = False
    found_at: str | None = None
    embedded: tuple[str, ...] = ()
    place: str | None = None


class StoredArtifact(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """An artifact without its content; ``condensed`` is the hash of a summary that stands for it."""

    id: ArtifactId
    kind: Kind
    title: str
    hash: str
    source: StoredSource
    policy: Policy | None = None
    has_images: bool = False
    condensed: str | None = None
    images: tuple[StoredImage, ...] = ()
    outlined: bool = False
    anew: bool = False

    def hashes(self) -> Iterator[str]:
        """Every content that it names; a picture's own hash is that of its image."""
        if self.kind is not _IMAGE:
            yield self.hash
        if self.condensed is not None:
            yield self.condensed
        for image in self.images:
            yield image.hash


def store_artifact(artifact: Artifact) -> StoredArtifact:
    """An artifact without its content, which its hash names."""
    source = artifact.source
    return StoredArtifact(
        id=artifact.id,
        kind=artifact.kind,
        title=artifact.title,
        hash=artifact.hash,
        source=StoredSource(
            path=source.path,
            url=source.url,
            query=source.query,
            lines=source.lines,
            tool=source.tool,
            arguments=source.arguments,
            via=source.via,
            read=source.read,
            found_at=source.found_at,
            embedded=source.embedded,
            place=source.place,
        ),
        policy=artifact.policy,
        has_images=artifact.has_images,
        condensed=None if artifact.condensed is None else hash_text(artifact.condensed),
        images=tuple(
            StoredImage(hash=i.hash, media_type=i.media_type, width=i.width, height=i.height) for i in artifact.images
        ),
        outlined=artifact.outlined,
        anew=artifact.anew,
    )


def read_artifact(stored: StoredArtifact, contents: Contents) -> Artifact | None:
    """The artifact without its erased pictures, or none if its own content was erased.

    Hashes are taken as written; ``verify`` derives them again.
    """
    kind = stored.kind
    images = [_read_image(image, contents) for image in stored.images] if stored.images else []
    if None in images if kind is _IMAGE else stored.hash not in contents:
        return None
    text = "" if kind is _IMAGE else contents[stored.hash].decode()
    shown = tuple([image for image in images if image is not None])
    return _read(stored, contents, text=text, images=shown, make=Artifact)


def leave_unread(stored: StoredArtifact, contents: Contents, unread: UnreadTexts) -> UnreadArtifact:
    """An artifact without pictures, whose text is read when it is asked for."""
    return _read(stored, contents, text=NOT_READ, make=partial(UnreadArtifact, unread=unread))


def _read(
    stored: StoredArtifact,
    contents: Contents,
    *,
    text: str,
    images: tuple[Image, ...] = (),
    make: Callable[..., Made],
) -> Made:
    spec, source = KINDS[stored.kind], stored.source
    return make(
        id=stored.id,
        kind=stored.kind,
        title=stored.title,
        text=text,
        hash=stored.hash,
        source=Source(
            path=source.path,
            url=source.url,
            query=source.query,
            lines=source.lines,
            tool=source.tool,
            arguments=source.arguments,
            via=source.via,
            read=source.read,
            found_at=source.found_at,
            embedded=source.embedded,
            place=source.place,
        ),
        recoverable=spec.recoverable,
        trust=spec.trust,
        policy=stored.policy,
        images=images,
        has_images=stored.has_images,
        condensed=read_kept(stored.condensed, contents),
        outlined=stored.outlined,
        anew=stored.anew,
    )


def read_artifacts(stored: Iterable[StoredArtifact], contents: Contents) -> tuple[tuple[Artifact, ...], list[str]]:
    """Artifacts with their contents, and words on what of them was erased."""
    found: list[Artifact] = []
    gone: list[str] = []
    for one in stored:
        artifact = read_artifact(one, contents)
        if artifact is None:
            gone.append(one.id)
        else:
            found.append(artifact)
            gone += [f"A picture of {artifact.id}"] * (len(one.images) - len(artifact.images))
    return tuple(found), gone


def gather_contents(artifacts: Iterable[Artifact]) -> dict[str, bytes]:
    """The bytes behind artifacts, by hash: their texts and pictures."""
    contents: dict[str, bytes] = {}
    for artifact in artifacts:
        if artifact.kind is not Kind.IMAGE:
            contents[artifact.hash] = encode_text(artifact.text)
        if artifact.condensed is not None:
            contents[hash_text(artifact.condensed)] = encode_text(artifact.condensed)
        contents.update((image.hash, image.data) for image in artifact.images)
    return contents


def read_kept(name: str | None, contents: Contents) -> str | None:
    """A text that is kept as a content, if it was and still is."""
    data = contents.get(name) if name is not None else None
    return None if data is None else data.decode()


def _read_image(stored: StoredImage, contents: Contents) -> Image | None:
    data = contents.get(stored.hash)
    if data is None:
        return None
    return Image(media_type=stored.media_type, data=data, width=stored.width, height=stored.height, hash=stored.hash)
