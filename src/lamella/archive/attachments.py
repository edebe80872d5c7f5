"""Parse the attachments of a transcript: check the fields of each kind and build the artifact they describe."""

from base64 import b64decode
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lamella.core.artifacts.embeds import is_url
from lamella.core.artifacts.kinds import KINDS, BlockFormat, KindSpec, SourceMedium, make_artifact, make_omission_list
from lamella.core.artifacts.model import (
    FOUND_BY_SEARCH,
    Artifact,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    ImageData,
    UnresolvedAttachment,
)
from lamella.core.values import replace
from lamella.errors import ArtifactError, NotAvailableError
from lamella.sources.images import parse_image

# Fields that every kind accepts, in addition to those of its ``KindSpec``.
_COMMON_FIELDS = frozenset({"kind", "title", "policy", "outline", "anew"})
_LineNumber = Annotated[int, Field(ge=1)]


class EmbeddedImageInput(BaseModel):
    """An image that was embedded in an active note when the note was sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: str
    media_type: str


class AttachmentInput(BaseModel):
    """One entry of a turn's ``attach`` list."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: ArtifactKind = Field(strict=False)
    path: str | None = None
    url: str | None = None
    tag: str | None = None
    query: str | None = None
    place: str | None = None
    turn_only: bool = False
    lines: tuple[_LineNumber, _LineNumber] | None = Field(default=None, strict=False)
    text: str | None = None
    title: str = ""
    policy: AttachmentPolicy | None = Field(default=None, strict=False)
    data: str | None = None
    media_type: str | None = None
    images: tuple[EmbeddedImageInput, ...] = Field(default=(), strict=False)
    outline: bool = False
    anew: bool = False


def parse_attachment(entry: AttachmentInput) -> Artifact | UnresolvedAttachment:
    """Return the artifact that an entry describes, or an unresolved attachment if a source must be read first.

    Raises:
        ArtifactError: The entry has fields that its kind does not take, or lacks one that its kind needs.
        NotAvailableError: The entry has no text, and its kind cannot be read from a source.
    """
    spec = KINDS[entry.kind]
    _check_fields(entry, spec)
    if entry.text is not None and spec.block_format is BlockFormat.EXPANDS:
        return replace(
            make_omission_list(entry.kind, name=_source_name(entry, spec), text=entry.text), is_fresh=entry.anew
        )
    if entry.text is not None:
        images = [_decode_embedded(one) for one in entry.images]
        made = make_artifact(
            entry.kind,
            text=entry.text,
            source=_build_source(entry),
            title=entry.title,
            policy=entry.policy,
            images=images,
        )
        return replace(made, is_outlined=entry.outline, is_fresh=entry.anew) if entry.outline or entry.anew else made
    if entry.outline or entry.anew:
        raise ArtifactError(
            f"A {entry.kind} attachment without text is sent as an outline, or anew.",
            hint="Give it its `text`; `outline` and `anew` tell how a text was sent.",
        )
    if entry.images:
        raise ArtifactError(f"A {entry.kind} attachment has images and no text.", hint="Give it its `text`, too.")
    if spec.medium is SourceMedium.NONE:
        raise NotAvailableError(f"A {entry.kind} attachment has no text.", hint="Give it its `text`.")
    data = _decode_data(entry)
    name = entry.path or entry.url or "" if data is not None else _source_name(entry, spec)
    # A folder or tag has no title of its own; each of its notes has one.
    title = "" if spec.block_format is BlockFormat.EXPANDS else entry.title
    return UnresolvedAttachment(
        kind=entry.kind,
        name=name,
        query=_get_query(entry, spec),
        policy=entry.policy,
        title=title,
        data=data,
        media_type=entry.media_type,
    )


def _check_fields(entry: AttachmentInput, spec: KindSpec) -> None:
    allowed = set(spec.fields)
    if not allowed:
        raise ArtifactError(
            f"A {entry.kind} cannot be attached.",
            hint="Tool results go into a turn's `tools`, not into `attach`.",
        )
    surplus = sorted(entry.model_fields_set - allowed - _COMMON_FIELDS)
    if surplus:
        raise ArtifactError(
            f"A {entry.kind} attachment takes no {', '.join(surplus)}.",
            hint=f"It takes: {', '.join(sorted(allowed | {'title', 'policy'}))}.",
        )
    if entry.lines is not None and entry.lines[0] > entry.lines[1]:
        raise ArtifactError(
            f"A selection starts at line {entry.lines[0]} and ends at line {entry.lines[1]}.",
            hint="Give `lines` as [first, last], counted from 1.",
        )


def _build_source(entry: AttachmentInput) -> ArtifactSource:
    return ArtifactSource(
        path=entry.path,
        url=entry.url,
        query=entry.query,
        lines=entry.lines,
        place=entry.place,
        via=FOUND_BY_SEARCH if entry.turn_only else None,
    )


def _source_name(entry: AttachmentInput, spec: KindSpec) -> str:
    """Return the name under which a source reader finds the attachment: a tag, a URL or a path."""
    field = spec.fields[0]
    name = {"tag": entry.tag, "url": entry.url}.get(field, entry.path) or (entry.url if "url" in spec.fields else None)
    if not name:
        raise ArtifactError(f"A {entry.kind} attachment has no {field}.", hint=f"Give it a `{field}`.")
    if spec.medium is SourceMedium.PICTURE and entry.url and not is_url(entry.url):
        raise ArtifactError(
            "The url of an image is no address of one.", hint="One begins with https://, http:// or data:image/."
        )
    return name


def _get_query(entry: AttachmentInput, spec: KindSpec) -> str | None:
    """Return the query of an entry; raise if its kind needs one and the entry has none."""
    if spec.medium is SourceMedium.QUERY and not entry.query:
        raise ArtifactError(f"A {entry.kind} attachment has no query.", hint="Give it a `query`.")
    return entry.query


def _decode_data(entry: AttachmentInput) -> bytes | None:
    """Return the decoded bytes of an image that is part of the entry, or None if there are none."""
    if entry.data is None:
        if entry.media_type is not None:
            raise ArtifactError("An image has a media_type and no data.", hint="A file's type is known by its bytes.")
        return None
    if not entry.media_type:
        raise ArtifactError("An image with data has no media_type.", hint="Give it a `media_type`, as image/png.")
    return _decode_base64(entry.data)


def _decode_embedded(embedded: EmbeddedImageInput) -> ImageData:
    return parse_image(
        _decode_base64(embedded.data), media_type=embedded.media_type, name="A picture that the note embeds"
    )


def _decode_base64(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ArtifactError(
            f"An image's data is not base64: {error}.", hint="Write the file's bytes as base64."
        ) from error
