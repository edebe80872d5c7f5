"""Artifacts as events store them, and the event of commands between two turns.

A ``StoredArtifact`` has all fields except the contents, which it refers to by hash. ``to_stored_artifact`` and
``read_artifact`` convert in both directions; ``read_artifact`` returns None for an artifact that was erased.
``PendingCommandsEvent`` records attach, detach, drop, pin and rule commands.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct

from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.model import (
    NOT_LOADED,
    Artifact,
    ArtifactId,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    ImageData,
    LazyArtifact,
    LazyTexts,
)
from lamella.core.text.content import Contents, hash_text
from lamella.core.values import replace

ContentsByHash = Mapping[str, bytes]
ArtifactT = TypeVar("ArtifactT", bound=Artifact)

# A module-level name, because looking up an enum member is slow: see docs/decisions/frozen-values.md.
_IMAGE = ArtifactKind.IMAGE


class StoredImage(Struct, frozen=True, kw_only=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A stored image without its bytes."""

    hash: str
    media_type: str
    width: int
    height: int


class StoredSource(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The stored origin of an artifact; unknown values are omitted."""

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
    """An artifact without its content; ``condensed`` is the hash of its summary or outline."""

    id: ArtifactId
    kind: ArtifactKind
    title: str
    hash: str
    source: StoredSource
    policy: AttachmentPolicy | None = None
    has_images: bool = False
    condensed: str | None = None
    images: tuple[StoredImage, ...] = ()
    outlined: bool = False
    anew: bool = False

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield every content hash that it refers to; an image artifact's own hash is that of its image data."""
        if self.kind is not _IMAGE:
            yield self.hash
        if self.condensed is not None:
            yield self.condensed
        for image in self.images:
            yield image.hash


def to_stored_artifact(artifact: Artifact) -> StoredArtifact:
    """Return an artifact in its stored form, without its content."""
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
            read=source.is_rereadable,
            found_at=source.current_path,
            embedded=source.embedded_notes,
            place=source.place,
        ),
        policy=artifact.policy,
        has_images=artifact.has_images,
        condensed=None if artifact.condensed is None else hash_text(artifact.condensed),
        images=tuple(
            StoredImage(hash=i.hash, media_type=i.media_type, width=i.width, height=i.height) for i in artifact.images
        ),
        outlined=artifact.is_outlined,
        anew=artifact.is_fresh,
    )


def read_artifact(stored: StoredArtifact, contents: ContentsByHash) -> Artifact | None:
    """Return the artifact without erased images, or None if its own content was erased.

    Hashes are not checked here; ``verify`` derives them again.
    """
    kind = stored.kind
    images = [_read_image(image, contents) for image in stored.images] if stored.images else []
    if None in images if kind is _IMAGE else stored.hash not in contents:
        return None
    text = "" if kind is _IMAGE else contents[stored.hash].decode()
    shown = tuple([image for image in images if image is not None])
    return _build_artifact(stored, contents, text=text, images=shown, factory=Artifact)


def to_lazy_artifact(stored: StoredArtifact, contents: ContentsByHash, unread: LazyTexts) -> LazyArtifact:
    """Return an artifact without images that loads its text on access."""
    return _build_artifact(stored, contents, text=NOT_LOADED, factory=partial(LazyArtifact, lazy_texts=unread))


def _build_artifact(
    stored: StoredArtifact,
    contents: ContentsByHash,
    *,
    text: str,
    images: tuple[ImageData, ...] = (),
    factory: Callable[..., ArtifactT],
) -> ArtifactT:
    spec, source = KINDS[stored.kind], stored.source
    return factory(
        id=stored.id,
        kind=stored.kind,
        title=stored.title,
        text=text,
        hash=stored.hash,
        source=ArtifactSource(
            path=source.path,
            url=source.url,
            query=source.query,
            lines=source.lines,
            tool=source.tool,
            arguments=source.arguments,
            via=source.via,
            is_rereadable=source.read,
            current_path=source.found_at,
            embedded_notes=source.embedded,
            place=source.place,
        ),
        recoverable=spec.recoverable,
        trust=spec.trust,
        policy=stored.policy,
        images=images,
        has_images=stored.has_images,
        condensed=read_stored_text(stored.condensed, contents),
        is_outlined=stored.outlined,
        is_fresh=stored.anew,
    )


def read_artifacts(
    stored: Iterable[StoredArtifact], contents: ContentsByHash
) -> tuple[tuple[Artifact, ...], list[str]]:
    """Return artifacts with their contents, and the names of what was erased from them."""
    found: list[Artifact] = []
    missing: list[str] = []
    for one in stored:
        artifact = read_artifact(one, contents)
        if artifact is None:
            missing.append(one.id)
        else:
            found.append(artifact)
            missing += [f"A picture of {artifact.id}"] * (len(one.images) - len(artifact.images))
    return tuple(found), missing


def contents_of_artifacts(artifacts: Iterable[Artifact]) -> Contents:
    """Return the contents of artifacts by hash: texts, summaries and images."""
    contents: dict[str, str | bytes] = {}
    for artifact in artifacts:
        if artifact.kind is not ArtifactKind.IMAGE:
            contents[artifact.hash] = artifact.text
        if artifact.condensed is not None:
            contents[hash_text(artifact.condensed)] = artifact.condensed
        contents.update((image.hash, image.data) for image in artifact.images)
    return Contents(contents)


def read_stored_text(content_hash: str | None, contents: ContentsByHash) -> str | None:
    """Return the text that is stored under a content hash, or None if there is none or it was erased."""
    data = contents.get(content_hash) if content_hash is not None else None
    return None if data is None else data.decode()


def _read_image(stored: StoredImage, contents: ContentsByHash) -> ImageData | None:
    data = contents.get(stored.hash)
    if data is None:
        return None
    return ImageData(
        media_type=stored.media_type, data=data, width=stored.width, height=stored.height, hash=stored.hash
    )


# Commands between two turns.


class PendingCommandsEvent(
    Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename={"cancelled": "back"}
):
    """Commands that take effect with the next question; names are ids of artifacts or messages.

    - ``cancelled``: ids whose pending command is taken back.
    - ``rules``, ``ended``: texts of rules to add and to remove.
    - ``warnings``: shown with the next question.
    """

    attached: tuple[StoredArtifact, ...] = ()
    detach: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    unpin: tuple[str, ...] = ()
    cancelled: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def iter_content_hashes(self) -> Iterator[str]:
        """Yield every content hash that the event refers to."""
        for ref in self.attached:
            yield from ref.iter_content_hashes()

    def without_erased(self, hashes: Collection[str]) -> "PendingCommandsEvent":
        """Return the event without attachments and images whose contents were erased."""
        left = tuple(
            replace(ref, images=tuple(image for image in ref.images if image.hash not in hashes))
            for ref in self.attached
            if ref.hash not in hashes
        )
        return replace(self, attached=left)
