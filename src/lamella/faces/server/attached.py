"""What clients attach: by the fields of its kind, as transcripts write it, or by a name as people do."""

from base64 import b64decode
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from lamella.attach import (
    ActiveNote,
    Attachment,
    Canvas,
    Code,
    Codebase,
    Dataview,
    Folder,
    Note,
    Office,
    Pdf,
    Picture,
    Selection,
    Tag,
    Unknown,
    Url,
    WebTab,
    YouTube,
)
from lamella.errors import ArtifactError, NotAvailableError
from lamella.faces.server.state import ServerState

_KINDS: dict[str, type] = {
    "note": Note,
    "active_note": ActiveNote,
    "pdf": Pdf,
    "office": Office,
    "canvas": Canvas,
    "code": Code,
    "url": Url,
    "web_tab": WebTab,
    "youtube": YouTube,
    "folder": Folder,
    "tag": Tag,
    "codebase": Codebase,
    "dataview": Dataview,
    "selected_text": Selection,
    "web_selection": Selection,
    "image": Picture,
    "unknown": Unknown,
}
_MOST = 500
_Line = Annotated[int, Field(ge=1)]


class AttachedBody(BaseModel):
    """Something to attach, by the fields of its kind; without text it is read from the vault or fetched."""

    model_config = ConfigDict(extra="forbid")

    kind: str = Field(examples=["note"])
    path: str | None = Field(default=None, examples=["project-spec.md"])
    url: str | None = None
    tag: str | None = None
    query: str | None = None
    question: str | None = None
    lines: tuple[_Line, _Line] | None = None
    text: str | None = None
    title: str | None = None
    policy: str | None = None
    data: str | None = Field(default=None, description="The bytes of a picture in base64.")
    media_type: str | None = None
    fresh: bool | None = None


# A name is what people write after an @: a path, a note's title, a folder, a tag, an address.
AttachedList = Annotated[list[AttachedBody | str], Field(max_length=_MOST)]


def read_attached(given: Sequence[AttachedBody | str], state: ServerState) -> list[Attachment]:
    """What is attached, as the engine takes it."""
    found: list[Attachment] = []
    for one in given:
        found += _find_named(one, state) if isinstance(one, str) else [_read(one)]
    return found


def _find_named(name: str, state: ServerState) -> Sequence[Attachment]:
    files = state.suite.open_files()
    if files is None:
        raise NotAvailableError("No vault is served here.", hint="Attach a text with its kind, path and text.")
    return files.find(name.removeprefix("@"))


def _read(given: AttachedBody) -> Attachment:
    kind = _KINDS.get(given.kind)
    if kind is None:
        raise ArtifactError(f"There is no kind {given.kind[:40]!r}.", hint=f"Choose one of: {', '.join(_KINDS)}.")
    fields = {name: value for name, value in given.model_dump(exclude={"kind"}).items() if value is not None}
    if kind is Picture and "data" in fields:
        fields["data"] = _decode(fields["data"])
    try:
        made: Attachment = kind(**fields)
    except TypeError as error:
        raise ArtifactError(
            f"A {given.kind} attachment lacks a field, or takes none of: {', '.join(sorted(fields))}.",
            hint="docs/transcript.md has the fields of each kind.",
        ) from error
    return made


def _decode(data: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ArtifactError("The data of a picture is not base64.", hint="Write its bytes as base64.") from error
