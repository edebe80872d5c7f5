"""What can be attached: one small frozen value per kind, turned into an artifact when it is asked with.

Each of the values can be imported from ``lamella`` as well, but for those of ``lamella.code`` and of searches.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import ClassVar

from lamella.core.artifacts.embeds import is_address
from lamella.core.artifacts.kinds import kind_of_file
from lamella.core.artifacts.make import make_artifact, make_tool_definition, make_tool_result
from lamella.core.artifacts.model import Artifact, Kind, Policy, Source, ToolDefinition
from lamella.core.artifacts.wanted import Wanted
from lamella.core.text.addresses import find_video
from lamella.errors import ArtifactError, SettingError

__all__ = [
    "ActiveNote",
    "Attachment",
    "Canvas",
    "Code",
    "Codebase",
    "Dataview",
    "Folder",
    "Instruction",
    "Note",
    "NotePassage",
    "Office",
    "Pdf",
    "Picture",
    "Selection",
    "Tag",
    "Tool",
    "ToolResult",
    "Unknown",
    "Url",
    "WebTab",
    "YouTube",
    "describe_file",
    "describe_page",
    "knows_ending",
]

# What a selection from a codebase may take where nobody says otherwise, in tokens.
BUDGET = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file by its path; without text it is read from the conversation's vault.

    One that is ``fresh`` is read in any case, also as a snapshot, and converted again if it has to be.
    """

    kind: ClassVar[Kind]
    path: str
    text: str | None = None
    title: str = ""
    policy: str | None = None
    fresh: bool = False

    def attachment(self) -> Artifact | Wanted:
        if self.text is None:
            return self.wanted()
        source = Source(path=self.path)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=find_policy(self.policy)
        )

    def wanted(self) -> Wanted:
        """The file, to be read from a vault."""
        policy = find_policy(self.policy)
        return Wanted(kind=self.kind, name=self.path, policy=policy, title=self.title, fresh=self.fresh)


class Note(_File):
    """A note."""

    kind = Kind.NOTE


class ActiveNote(_File):
    """The note that is open in the editor; the only one whose pictures are sent."""

    kind = Kind.ACTIVE_NOTE


class Pdf(_File):
    """A PDF, as its text."""

    kind = Kind.PDF


class Office(_File):
    """A document, sheet or slides, as its text."""

    kind = Kind.OFFICE


class Canvas(_File):
    """A canvas."""

    kind = Kind.CANVAS


class Code(_File):
    """A source file."""

    kind = Kind.CODE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """A page by its URL; without text it is fetched when it is asked with, or taken from what was fetched before.

    One that is ``fresh`` is fetched in any case.
    """

    kind: ClassVar[Kind]
    url: str
    text: str | None = None
    title: str = ""
    policy: str | None = None
    fresh: bool = False

    def attachment(self) -> Artifact | Wanted:
        if self.text is None:
            return self.wanted()
        source = Source(url=self.url)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=find_policy(self.policy)
        )

    def wanted(self) -> Wanted:
        """The page, to be fetched."""
        policy = find_policy(self.policy)
        return Wanted(kind=self.kind, name=self.url, policy=policy, title=self.title, fresh=self.fresh)


class Url(_Page):
    """A web page."""

    kind = Kind.URL


class WebTab(_Page):
    """A page open in a browser."""

    kind = Kind.WEB_TAB


class YouTube(_Page):
    """A video, as its transcript."""

    kind = Kind.YOUTUBE


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """All notes in a folder of the vault, each under its own id."""

    path: str
    policy: str | None = None

    def attachment(self) -> Wanted:
        return Wanted(kind=Kind.FOLDER, name=self.path, policy=find_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebase:
    """Files of a folder, chosen for a question to fit a budget of tokens, each under its own id.

    Without ``text`` they are chosen in the conversation's vault when it is asked with; without a ``question`` for what
    is asked then. With one it stands for files that were chosen before: see ``lamella.code``.
    """

    kind: ClassVar[Kind] = Kind.CODEBASE
    path: str
    question: str = ""
    text: str | None = None
    budget: int = BUDGET
    policy: str | None = None

    def attachment(self) -> Artifact | Wanted:
        policy = find_policy(self.policy)
        if self.text is None:
            query = self.question or None
            return Wanted(kind=self.kind, name=self.path, query=query, policy=policy, budget=self.budget)
        source = Source(path=self.path, query=self.question or None, via=f"{self.kind}:{self.path}")
        return make_artifact(self.kind, text=self.text, source=source, policy=policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """All notes of the vault that carry a tag."""

    tag: str
    policy: str | None = None

    def attachment(self) -> Wanted:
        return Wanted(kind=Kind.TAG, name=self.tag, policy=find_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataview:
    """A query in a note, and what it answered; without text it is asked in the conversation's vault."""

    path: str
    query: str
    text: str | None = None
    title: str = ""
    policy: str | None = None

    def attachment(self) -> Artifact | Wanted:
        if self.text is None:
            policy = find_policy(self.policy)
            return Wanted(kind=Kind.DATAVIEW, name=self.path, query=self.query, policy=policy, title=self.title)
        source = Source(path=self.path, query=self.query)
        return make_artifact(
            Kind.DATAVIEW, text=self.text, source=source, title=self.title, policy=find_policy(self.policy)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Text selected in a note or on a page. It cannot be fetched again, so it always stands verbatim."""

    text: str
    path: str | None = None
    url: str | None = None
    lines: tuple[int, int] | None = None
    title: str = ""
    policy: str | None = None

    def attachment(self) -> Artifact:
        kind = Kind.SELECTED_TEXT if self.path is not None else Kind.WEB_SELECTION
        lines = None if self.lines is None else (self.lines[0], self.lines[1])
        source = Source(path=self.path, url=self.url, lines=lines)
        return make_artifact(kind, text=self.text, source=source, title=self.title, policy=find_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePassage:
    """A part of a file that was found for a question; ``place`` tells it from others of the same file.

    It is not attached for good: it stays readable for as many turns as `linger` says.
    """

    kind: ClassVar[Kind] = Kind.PASSAGE
    path: str
    text: str
    place: str = ""
    title: str = ""
    policy: str | None = None

    def attachment(self) -> Artifact:
        source = Source(path=self.path, place=self.place or None)
        return make_artifact(
            self.kind, text=self.text, source=source, title=self.title, policy=find_policy(self.policy)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """How something is to be done, for turns that ask for it by its ``name``: sent once, referred to after that.

    It is not attached for good: it stays readable for as many turns as `linger` says.
    """

    kind: ClassVar[Kind] = Kind.INSTRUCTION
    name: str
    text: str
    policy: str | None = None

    def attachment(self) -> Artifact:
        source = Source(path=self.name)
        return make_artifact(self.kind, text=self.text, source=source, title=self.name, policy=find_policy(self.policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture: its bytes, its path in the vault, or its address; a data URI is one, too. Its bytes say its type."""

    kind: ClassVar[Kind] = Kind.IMAGE
    data: bytes | None = None
    media_type: str | None = None
    path: str | None = None
    url: str | None = None
    title: str = ""

    def attachment(self) -> Wanted:
        return self.wanted()

    def wanted(self) -> Wanted:
        """The picture, to be read from a vault, from its bytes or from where its address leads."""
        if self.data is None and self.path is None and self.url is None:
            raise ArtifactError("A picture has no data, path or url.", hint="Give it `data`, a `path` or a `url`.")
        if self.url is not None and (self.data is not None or self.path is not None):
            raise ArtifactError(
                "A picture has a url and something else.", hint="Give it a `url`, or `data`, or a `path`."
            )
        if self.url is not None and not is_address(self.url):
            raise ArtifactError(
                f"{self.url[:60]} is no address of a picture.", hint="One begins with https://, http:// or data:image/."
            )
        media_type = None if self.data is None else self.media_type
        name = self.url or self.path or ""
        return Wanted(kind=self.kind, name=name, title=self.title, data=self.data, media_type=media_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A block of any other origin. It survives verbatim under an id made from its content."""

    text: str
    title: str = ""

    def attachment(self) -> Artifact:
        return make_artifact(Kind.UNKNOWN, text=self.text, source=Source(), title=self.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool was called with, and what it answered, in this turn."""

    name: str
    output: str
    arguments: Mapping[str, object] = field(default_factory=dict)

    def attachment(self) -> Artifact:
        return make_tool_result(self.name, arguments=self.arguments, output=self.output)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool the model may call, with the JSON schema of its parameters; ``run`` does what it is called for.

    ``seconds`` is how long one call may take, by default as long as whoever runs it says. One that ``changes``
    something is not called by a plan.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    run: Callable[..., object] | None = field(default=None, repr=False)
    seconds: float | None = None
    changes: bool = False

    def definition(self) -> ToolDefinition:
        return make_tool_definition(self.name, description=self.description, parameters=self.parameters)


Attachment = (
    _File | _Page | Folder | Codebase | Tag | Dataview | Selection | NotePassage | Instruction | Picture | Unknown
)


def describe_file(path: str) -> _File | Picture:
    """A file by what its name ends in: without an ending it is a note, with one that nobody knows a source file."""
    kind = kind_of_file(path) or (Kind.CODE if PurePosixPath(path).suffix else Kind.NOTE)
    return next((file(path=path) for file in _File.__subclasses__() if file.kind is kind), Picture(path=path))


def describe_page(url: str) -> _Page | Picture:
    """A page by its address: one that shows a video is that, and one that ends as a picture does is a picture."""
    if kind_of_file(url.partition("?")[0].partition("#")[0]) is Kind.IMAGE:
        return Picture(url=url)
    return YouTube(url=url) if find_video(url) else Url(url=url)


def want_fresh(one: Attachment) -> Attachment:
    """The same attachment, to be read anew; what is not read by its name is as it is."""
    return replace(one, fresh=True) if isinstance(one, _File | _Page) else one


def knows_ending(path: str) -> bool:
    """Whether a file's name ends in something that tells its kind."""
    return kind_of_file(path) is not None


def find_policy(name: str | None) -> Policy | None:
    """The policy of a name, if one is given."""
    if name is None:
        return None
    try:
        return Policy(name)
    except ValueError as error:
        raise SettingError(f"There is no policy {name!r}.", hint=f"Choose one of: {', '.join(Policy)}.") from error
