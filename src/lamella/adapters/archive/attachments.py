"""Attachments as transcripts write them: which fields each kind takes, and the artifact they describe."""

from base64 import b64decode
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lamella.adapters.sources.vault import parse_image
from lamella.core.artifacts.make import make_artifact, make_image
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source
from lamella.engine.ask import Wanted
from lamella.errors import ArtifactError, NotAvailableError

_PATH = frozenset({"path", "text"})
_URL = frozenset({"url", "text"})
_SELECTION = frozenset({"path", "url", "lines", "text"})

FIELDS: dict[Kind, frozenset[str]] = {
    Kind.NOTE: _PATH,
    Kind.ACTIVE_NOTE: _PATH,
    Kind.URL: _URL,
    Kind.WEB_TAB: _URL,
    Kind.YOUTUBE: _URL,
    Kind.PDF: _PATH,
    Kind.OFFICE: _PATH,
    Kind.CANVAS: _PATH,
    Kind.CODE: _PATH,
    Kind.FOLDER: frozenset({"path"}),
    Kind.TAG: frozenset({"tag"}),
    Kind.DATAVIEW: frozenset({"path", "query", "text"}),
    Kind.SELECTED_TEXT: _SELECTION,
    Kind.WEB_SELECTION: _SELECTION,
    Kind.IMAGE: frozenset({"path", "data", "media_type"}),
    Kind.UNKNOWN: frozenset({"text"}),
}
_ALWAYS = frozenset({"kind", "title", "policy"})
_READ_FROM_VAULT = (Kind.NOTE, Kind.ACTIVE_NOTE, Kind.PDF, Kind.OFFICE, Kind.CANVAS, Kind.CODE)
_Line = Annotated[int, Field(ge=1)]


class AttachmentIn(BaseModel):
    """One entry of a turn's ``attach``."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Kind = Field(strict=False)
    path: str | None = None
    url: str | None = None
    tag: str | None = None
    query: str | None = None
    lines: tuple[_Line, _Line] | None = Field(default=None, strict=False)
    text: str | None = None
    title: str = ""
    policy: Policy | None = Field(default=None, strict=False)
    data: str | None = None
    media_type: str | None = None


def read_attachment(given: AttachmentIn) -> Artifact | Wanted:
    """The artifact an entry describes, or what must be read to make it."""
    _check_fields(given)
    if given.kind is Kind.IMAGE:
        return _read_image(given)
    if given.kind in (Kind.FOLDER, Kind.TAG):
        name = given.path if given.kind is Kind.FOLDER else given.tag
        return Wanted(kind=given.kind, name=_required(given, name), policy=given.policy)
    if given.text is not None:
        return make_artifact(given.kind, text=given.text, source=_source(given), title=given.title, policy=given.policy)
    if given.kind in _READ_FROM_VAULT:
        return Wanted(kind=given.kind, name=_required(given, given.path), policy=given.policy, title=given.title)
    raise NotAvailableError(
        f"A {given.kind} attachment has no text.",
        hint="Give it its `text`; nothing is fetched for a transcript.",
    )


def _check_fields(given: AttachmentIn) -> None:
    allowed = FIELDS.get(given.kind)
    if allowed is None:
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
    return Source(path=given.path, url=given.url, query=given.query, lines=given.lines)


def _required(given: AttachmentIn, name: str | None) -> str:
    if not name:
        field = "tag" if given.kind is Kind.TAG else "path"
        raise ArtifactError(f"A {given.kind} attachment has no {field}.", hint=f"Give it a `{field}`.")
    return name


def _read_image(given: AttachmentIn) -> Artifact | Wanted:
    if given.data is None:
        if given.media_type is not None:
            raise ArtifactError("An image has a media_type and no data.", hint="A file's type is known by its bytes.")
        return Wanted(kind=Kind.IMAGE, name=_required(given, given.path), policy=given.policy, title=given.title)
    if not given.media_type:
        raise ArtifactError("An image with data has no media_type.", hint="Give it a `media_type`, as image/png.")
    try:
        data = b64decode(given.data, validate=True)
    except ValueError as error:
        raise ArtifactError(
            f"An image's data is not base64: {error}.", hint="Write the file's bytes as base64."
        ) from error
    image = parse_image(data, media_type=given.media_type, name=given.title or given.path or "An image")
    return make_image(image, title=given.title, path=given.path)
