"""Attachments: one small frozen class per kind, turned into an artifact when a turn is asked with it.

Most of the classes can be imported from ``lamella`` as well. The exceptions are those of ``lamella.code`` and of
search results.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from lamella.core.artifacts.embeds import is_url
from lamella.core.artifacts.kinds import kind_of_file, make_artifact, make_tool_definition, make_tool_result
from lamella.core.artifacts.model import (
    FOUND_BY_SEARCH,
    Artifact,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    ToolDefinition,
    UnresolvedAttachment,
)
from lamella.core.text.content import youtube_video_id
from lamella.errors import ArtifactError, SettingError

__all__ = [
    "ActiveNote",
    "Attachment",
    "Canvas",
    "Code",
    "Codebase",
    "Dataview",
    "Folder",
    "Image",
    "Instruction",
    "Note",
    "NotePassage",
    "Office",
    "Pdf",
    "Selection",
    "Tag",
    "Tool",
    "ToolResult",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "attachment_for_path",
    "attachment_for_url",
    "has_known_extension",
]

# Default size of a selection from a codebase, in tokens.
DEFAULT_CODE_BUDGET = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileAttachment:
    """A file by its path; without ``text`` it is read from the conversation's vault.

    With ``fresh`` the file is always read again, even if a snapshot of it is attached, and converted again if needed.
    """

    kind: ClassVar[ArtifactKind]
    path: str
    text: str | None = None
    title: str = ""
    policy: str | None = None
    fresh: bool = False

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        if self.text is None:
            return self.to_unresolved()
        source = ArtifactSource(path=self.path)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=parse_policy(self.policy)
        )

    def to_unresolved(self) -> UnresolvedAttachment:
        """Return the file as an unresolved attachment, to be read from a vault."""
        policy = parse_policy(self.policy)
        return UnresolvedAttachment(
            kind=self.kind, name=self.path, policy=policy, title=self.title, read_again=self.fresh
        )


class Note(_FileAttachment):
    """A note of the vault."""

    kind = ArtifactKind.NOTE


class ActiveNote(_FileAttachment):
    """The note that is open in the editor, the only one whose images are sent."""

    kind = ArtifactKind.ACTIVE_NOTE


class Pdf(_FileAttachment):
    """A PDF, attached as its text."""

    kind = ArtifactKind.PDF


class Office(_FileAttachment):
    """An office document, spreadsheet or presentation, attached as its text."""

    kind = ArtifactKind.OFFICE


class Canvas(_FileAttachment):
    """A canvas file of Obsidian."""

    kind = ArtifactKind.CANVAS


class Code(_FileAttachment):
    """A source file."""

    kind = ArtifactKind.CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageAttachment:
    """A page by its URL; without ``text`` it is fetched with the turn, or taken from the cache of fetched pages.

    With ``fresh`` it is always fetched again.
    """

    kind: ClassVar[ArtifactKind]
    url: str
    text: str | None = None
    title: str = ""
    policy: str | None = None
    fresh: bool = False

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        if self.text is None:
            return self.to_unresolved()
        source = ArtifactSource(url=self.url)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=parse_policy(self.policy)
        )

    def to_unresolved(self) -> UnresolvedAttachment:
        """Return the page as an unresolved attachment, to be fetched."""
        policy = parse_policy(self.policy)
        return UnresolvedAttachment(
            kind=self.kind, name=self.url, policy=policy, title=self.title, read_again=self.fresh
        )


class Url(_PageAttachment):
    """A web page."""

    kind = ArtifactKind.URL


class WebTab(_PageAttachment):
    """A page that is open in a browser."""

    kind = ArtifactKind.WEB_TAB


class YouTube(_PageAttachment):
    """A video, attached as its transcript."""

    kind = ArtifactKind.YOUTUBE


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """All notes in a folder of the vault, each with its own id."""

    path: str
    policy: str | None = None

    def to_artifact(self) -> UnresolvedAttachment:
        return UnresolvedAttachment(kind=ArtifactKind.FOLDER, name=self.path, policy=parse_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebase:
    """Files of a folder that match a question and fit a token budget, each with its own id.

    Without ``text``, Lamella chooses the files in the conversation's vault when the turn is asked. It uses
    ``question``, or the text of the turn if there is no question. With ``text``, the object represents files that were
    chosen before: see ``lamella.code``.
    """

    kind: ClassVar[ArtifactKind] = ArtifactKind.CODEBASE
    path: str
    question: str = ""
    text: str | None = None
    budget: int = DEFAULT_CODE_BUDGET
    policy: str | None = None

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        policy = parse_policy(self.policy)
        if self.text is None:
            query = self.question or None
            return UnresolvedAttachment(
                kind=self.kind, name=self.path, query=query, policy=policy, max_tokens=self.budget
            )
        source = ArtifactSource(path=self.path, query=self.question or None, via=f"{self.kind}:{self.path}")
        return make_artifact(self.kind, text=self.text, source=source, policy=policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """All notes of the vault with a tag."""

    tag: str
    policy: str | None = None

    def to_artifact(self) -> UnresolvedAttachment:
        return UnresolvedAttachment(kind=ArtifactKind.TAG, name=self.tag, policy=parse_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataview:
    """A query in a note and its result; without ``text`` the query runs in the conversation's vault."""

    path: str
    query: str
    text: str | None = None
    title: str = ""
    policy: str | None = None

    def to_artifact(self) -> Artifact | UnresolvedAttachment:
        if self.text is None:
            policy = parse_policy(self.policy)
            return UnresolvedAttachment(
                kind=ArtifactKind.DATAVIEW, name=self.path, query=self.query, policy=policy, title=self.title
            )
        source = ArtifactSource(path=self.path, query=self.query)
        return make_artifact(
            ArtifactKind.DATAVIEW, text=self.text, source=source, title=self.title, policy=parse_policy(self.policy)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Text selected in a note or on a page. It cannot be read again, so it is always sent verbatim."""

    text: str
    path: str | None = None
    url: str | None = None
    lines: tuple[int, int] | None = None
    title: str = ""
    policy: str | None = None

    def to_artifact(self) -> Artifact:
        kind = ArtifactKind.SELECTED_TEXT if self.path is not None else ArtifactKind.WEB_SELECTION
        lines = None if self.lines is None else (self.lines[0], self.lines[1])
        source = ArtifactSource(path=self.path, url=self.url, lines=lines)
        return make_artifact(kind, text=self.text, source=source, title=self.title, policy=parse_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePassage:
    """A passage of a file that a search found; ``passage_position`` distinguishes passages of the same file.

    It is not attached permanently. It stays in the working set for as many turns as the setting `linger` says. With
    ``turn_only`` it is part of its own turn only and never enters the context library.
    """

    kind: ClassVar[ArtifactKind] = ArtifactKind.PASSAGE
    path: str
    text: str
    passage_position: str = ""
    title: str = ""
    policy: str | None = None
    turn_only: bool = False

    def to_artifact(self) -> Artifact:
        via = FOUND_BY_SEARCH if self.turn_only else None
        source = ArtifactSource(path=self.path, place=self.passage_position or None, via=via)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=parse_policy(self.policy)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """Instructions for turns that ask for them by ``name``; they are sent once and referred to afterwards.

    They are not attached permanently. They stay in the working set for as many turns as the setting `linger` says.
    """

    kind: ClassVar[ArtifactKind] = ArtifactKind.INSTRUCTION
    name: str
    text: str
    policy: str | None = None

    def to_artifact(self) -> Artifact:
        source = ArtifactSource(path=self.name)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.name, policy=parse_policy(self.policy)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image: its bytes, its path in the vault, or its URL, which may be a data URI.

    The bytes decide the media type.
    """

    kind: ClassVar[ArtifactKind] = ArtifactKind.IMAGE
    data: bytes | None = None
    media_type: str | None = None
    path: str | None = None
    url: str | None = None
    title: str = ""

    def to_artifact(self) -> UnresolvedAttachment:
        return self.to_unresolved()

    def to_unresolved(self) -> UnresolvedAttachment:
        """Return the image as an unresolved attachment.

        Raises ``ArtifactError`` without any source, with a URL and another source, or if the URL is not one of an
        image.
        """
        if self.data is None and self.path is None and self.url is None:
            raise ArtifactError("A picture has no data, path or url.", hint="Give it `data`, a `path` or a `url`.")
        if self.url is not None and (self.data is not None or self.path is not None):
            raise ArtifactError(
                "A picture has a url and something else.", hint="Give it a `url`, or `data`, or a `path`."
            )
        if self.url is not None and not is_url(self.url):
            raise ArtifactError(
                f"{self.url[:60]} is no address of a picture.", hint="One begins with https://, http:// or data:image/."
            )
        media_type = None if self.data is None else self.media_type
        name = self.url or self.path or ""
        return UnresolvedAttachment(kind=self.kind, name=name, title=self.title, data=self.data, media_type=media_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A block of any other origin. It is kept verbatim, under an id made from its content."""

    text: str
    title: str = ""

    def to_artifact(self) -> Artifact:
        return make_artifact(ArtifactKind.UNKNOWN, text=self.text, source=ArtifactSource(), title=self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A tool call of this turn: the arguments and the output."""

    name: str
    output: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def to_artifact(self) -> Artifact:
        return make_tool_result(self.name, arguments=self.arguments, output=self.output)


# The policy of a tool whose results are never cleared.
KEEP_RESULTS = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the model may call, with the JSON schema of its parameters; ``run`` executes it.

    ``timeout_seconds`` limits the time of one call. By default the runner's own limit applies. Plans do not call a
    tool that ``has_side_effects``. With ``policy="keep"`` its results stay in the prompt. Otherwise layout ``auto`` may
    replace an unused result by a line, and recall returns it.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    run: Callable[..., object] | None = field(default=None, repr=False)
    timeout_seconds: float | None = None
    has_side_effects: bool = False
    policy: str | None = None

    def to_definition(self) -> ToolDefinition:
        if self.policy not in (None, KEEP_RESULTS):
            raise ArtifactError(
                f"The tool {self.name} has the policy {self.policy!r}.", hint=f"Give it {KEEP_RESULTS!r}, or none."
            )
        return make_tool_definition(self.name, description=self.description, parameters=self.parameters)


Attachment = (
    _FileAttachment
    | _PageAttachment
    | Folder
    | Codebase
    | Tag
    | Dataview
    | Selection
    | NotePassage
    | Instruction
    | Image
    | Unknown
)


def attachment_for_path(path: str) -> _FileAttachment | Image:
    """Return the attachment for a path, chosen by the file extension.

    A path without an extension is a note. One with an unknown extension is a source file.
    """
    kind = kind_of_file(path) or (ArtifactKind.CODE if PurePosixPath(path).suffix else ArtifactKind.NOTE)
    return next((file(path=path) for file in _FileAttachment.__subclasses__() if file.kind is kind), Image(path=path))


def attachment_for_url(url: str) -> _PageAttachment | Image:
    """Return the attachment for a URL: an image, a video, or a web page."""
    if kind_of_file(url.partition("?")[0].partition("#")[0]) is ArtifactKind.IMAGE:
        return Image(url=url)
    return YouTube(url=url) if youtube_video_id(url) else Url(url=url)


def with_fresh_read(attachment: Attachment) -> Attachment:
    """Return the attachment with ``fresh`` set; attachments that are not files or pages stay as they are."""
    return replace(attachment, fresh=True) if isinstance(attachment, _FileAttachment | _PageAttachment) else attachment


def has_known_extension(path: str) -> bool:
    """Return whether a file's extension determines its kind."""
    return kind_of_file(path) is not None


def parse_policy(name: str | None) -> AttachmentPolicy | None:
    """Return the policy with this name, or None for None; raises ``SettingError`` for an unknown name."""
    if name is None:
        return None
    try:
        return AttachmentPolicy(name)
    except ValueError as error:
        raise SettingError(
            f"There is no policy {name!r}.", hint=f"Choose one of: {', '.join(AttachmentPolicy)}."
        ) from error
