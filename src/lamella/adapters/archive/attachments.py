"""Attachments as transcripts write them: which fields each kind takes, and the artifact they describe."""

from base64 import b64decode
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lamella.adapters.sources.pictures.content import parse_image
from lamella.core.artifacts.embeds import is_address
from lamella.core.artifacts.kinds import KINDS, BlockForm, KindSpec, Medium
from lamella.core.artifacts.make import make_artifact, make_left_out
from lamella.core.artifacts.model import Artifact, Image, Kind, Policy, Source
from lamella.core.artifacts.wanted import Wanted
from lamella.core.values import replace
from lamella.errors import ArtifactError, NotAvailableError

_ALWAYS = frozenset({"kind", "title", "policy", "outline", "anew"})
_Line = Annotated[int, Field(ge=1)]


class EmbeddedIn(BaseModel):
    """A picture that an active note had with it when it was sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    data: str
    media_type: str


class AttachmentIn(BaseModel):
    """One entry of a turn's ``attach``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Kind = Field(strict=False)
    path: str | None = None
    url: str | None = None
    tag: str | None = None
    query: str | None = None
    place: str | None = None
    lines: tuple[_Line, _Line] | None = Field(default=None, strict=False)
    text: str | None = None
    title: str = ""
    policy: Policy | None = Field(default=None, strict=False)
    data: str | None = None
    media_type: str | None = None
    images: tuple[EmbeddedIn, ...] = Field(default=(), strict=False)
    outline: bool = False
    anew: bool = False


def read_attachment(given: AttachmentIn) -> Artifact | Wanted:
    """The artifact an entry describes, or what must be read to make it."""
    spec = KINDS[given.kind]
    _check_fields(given, spec)
    if given.text is not None and spec.block is BlockForm.EXPANDS:
        return replace(make_left_out(given.kind, name=_name(given, spec), text=given.text), anew=given.anew)
    if given.text is not None:
        images = [_read_embedded(one) for one in given.images]
        made = make_artifact(
            given.kind, text=given.text, source=_source(given), title=given.title, policy=given.policy, images=images
        )
        return replace(made, outlined=given.outline, anew=given.anew) if given.outline or given.anew else made
    if given.outline or given.anew:
        raise ArtifactError(
            f"A {given.kind} attachment without text is sent as an outline, or anew.",
            hint="Give it its `text`; `outline` and `anew` tell how a text was sent.",
        )
    if given.images:
        raise ArtifactError(f"A {given.kind} attachment has images and no text.", hint="Give it its `text`, too.")
    if spec.medium is Medium.NONE:
        raise NotAvailableError(f"A {given.kind} attachment has no text.", hint="Give it its `text`.")
    data = _read_data(given)
    name = given.path or given.url or "" if data is not None else _name(given, spec)
    # A folder or tag has no title of its own: its notes have theirs.
    title = "" if spec.block is BlockForm.EXPANDS else given.title
    return Wanted(
        kind=given.kind,
        name=name,
        query=_query(given, spec),
        policy=given.policy,
        title=title,
        data=data,
        media_type=given.media_type,
    )


def _check_fields(given: AttachmentIn, spec: KindSpec) -> None:
    allowed = set(spec.fields)
    if not allowed:
        raise ArtifactError(
            f"A {given.kind} cannot be attached.",
            hint="Tool results go into a turn's `tools`, not into `attach`.",
        )
    surplus = sorted(given.model_fields_set - allowed - _ALWAYS)
    if surplus:
        raise ArtifactError(
            f"A {given.kind} attachment takes no {', '.join(surplus)}.",
            hint=f"It takes: {', '.join(sorted(allowed | {'title', 'policy'}))}.",
        )
    if given.lines is not None and given.lines[0] > given.lines[1]:
        raise ArtifactError(
            f"A selection starts at line {given.lines[0]} and ends at line {given.lines[1]}.",
            hint="Give `lines` as [first, last], counted from 1.",
        )


def _source(given: AttachmentIn) -> Source:
    return Source(path=given.path, url=given.url, query=given.query, lines=given.lines, place=given.place)


def _name(given: AttachmentIn, spec: KindSpec) -> str:
    """What a reader finds it by."""
    field = spec.fields[0]
    name = {"tag": given.tag, "url": given.url}.get(field, given.path) or (given.url if "url" in spec.fields else None)
    if not name:
        raise ArtifactError(f"A {given.kind} attachment has no {field}.", hint=f"Give it a `{field}`.")
    if spec.medium is Medium.PICTURE and given.url and not is_address(given.url):
        raise ArtifactError(
            "The url of an image is no address of one.", hint="One begins with https://, http:// or data:image/."
        )
    return name


def _query(given: AttachmentIn, spec: KindSpec) -> str | None:
    """What is asked, of a kind that is a query."""
    if spec.medium is Medium.QUERY and not given.query:
        raise ArtifactError(f"A {given.kind} attachment has no query.", hint="Give it a `query`.")
    return given.query


def _read_data(given: AttachmentIn) -> bytes | None:
    """The bytes of a picture that is given with them."""
    if given.data is None:
        if given.media_type is not None:
            raise ArtifactError("An image has a media_type and no data.", hint="A file's type is known by its bytes.")
        return None
    if not given.media_type:
        raise ArtifactError("An image with data has no media_type.", hint="Give it a `media_type`, as image/png.")
    return _decode(given.data)


def _read_embedded(given: EmbeddedIn) -> Image:
    return parse_image(_decode(given.data), media_type=given.media_type, name="A picture that the note embeds")


def _decode(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ArtifactError(
            f"An image's data is not base64: {error}.", hint="Write the file's bytes as base64."
        ) from error
