"""The artifact: one typed value from its source to the moment it becomes text."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct

from lamella.core.values import describe

ArtifactId = NewType("ArtifactId", str)

# How something came in that a search found, although it stands in the request already.
FOUND = "search"
# What stands for something in place of a summary where it is only a line of a list: there is no room for more of it.
NAMED_ONLY = ""


class Kind(StrEnum):
    """What an artifact is; the registry in ``kinds`` says what follows from it."""

    NOTE = "note"
    ACTIVE_NOTE = "active_note"
    URL = "url"
    WEB_TAB = "web_tab"
    YOUTUBE = "youtube"
    PDF = "pdf"
    OFFICE = "office"
    CANVAS = "canvas"
    CODE = "code"
    CODEBASE = "codebase"
    FOLDER = "folder"
    TAG = "tag"
    DATAVIEW = "dataview"
    SELECTED_TEXT = "selected_text"
    WEB_SELECTION = "web_selection"
    PASSAGE = "passage"
    INSTRUCTION = "instruction"
    TOOL = "tool"
    IMAGE = "image"
    UNKNOWN = "unknown"


class Trust(StrEnum):
    """Whose words these are."""

    USER = "user"
    VAULT = "vault"
    WEB = "web"
    TOOL = "tool"


class Policy(StrEnum):
    """How an attached artifact follows its source, and whether it may shrink."""

    FOLLOW = "follow"
    SNAPSHOT = "snapshot"
    PIN = "pin"


class Source(Struct, frozen=True, kw_only=True, gc=False):
    """Where an artifact came from; which fields are set depends on its kind.

    ``read`` says that its text was read there, not given: it can be read again. ``found_at`` is where its file stands
    since it was moved, while ``path`` stays what it is called; ``embedded`` are notes, or parts of notes, in its text.
    ``place`` is where in its file a passage stands: the headings above it, and its number among those below them.
    """

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


class Image(Struct, frozen=True, kw_only=True):
    """A picture as sent: its bytes and what is needed to count it."""

    media_type: str
    data: bytes
    width: int
    height: int
    hash: str

    def __repr__(self) -> str:
        return describe(self, without=("data",))


class Artifact(Struct, frozen=True, kw_only=True, gc=False):
    """Something attached to a turn. Equal text gives an equal hash, whenever it was modified.

    ``condensed`` is a summary or an outline that stands for it where the text is too long for the turn, and empty where
    not even that has room. ``outlined`` says that its outline is sent with its turn: it came with others, and not all
    of them fit. ``anew`` says that it was read again because somebody asked for that: its text takes the place of a
    snapshot's.
    """

    id: ArtifactId
    kind: Kind
    title: str
    text: str
    hash: str
    source: Source
    recoverable: bool
    trust: Trust
    policy: Policy | None = None
    images: tuple[Image, ...] = ()
    has_images: bool = False
    condensed: str | None = None
    outlined: bool = False
    anew: bool = False

    def __repr__(self) -> str:
        return describe(self, without=("text", "condensed"))


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool the model may call; ``parameters`` is its JSON schema, already serialised with sorted keys."""

    name: str
    description: str
    parameters: str
