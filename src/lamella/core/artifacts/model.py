"""Artifacts: the typed pieces of context that are attached to turns, and the ids they get.

``Artifact`` is one piece of context from its source until it is rendered. ``UnresolvedAttachment`` is an attachment
that has to be read first, and ``LazyArtifact`` loads its text on first access: most artifacts that the prompt only
names in one line are never read. The ``*_id`` functions derive an id from the source or from the content, depending on
the kind; the same id means the same piece of context, so a newer text replaces the older one.
"""

import re
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from lamella.core.text.content import hash_text, short_hash
from lamella.core.values import repr_without
from lamella.errors import ArtifactError

ArtifactId = NewType("ArtifactId", str)

# The ``via`` of an artifact that a search found although it is already in the request, and of a passage that a search
# found for one turn only.
FOUND_BY_SEARCH = "search"
# The value of ``condensed`` for an artifact that is only one line of a list, because its summary does not fit either.
NAMED_ONLY = ""


class ArtifactKind(StrEnum):
    """The type of an artifact; the registry in ``kinds`` defines the properties of each kind."""

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


class TrustLevel(StrEnum):
    """The author of an artifact's text."""

    USER = "user"
    VAULT = "vault"
    WEB = "web"
    TOOL = "tool"


class AttachmentPolicy(StrEnum):
    """The rule that says whether an attachment follows changes of its source, and may be shortened."""

    FOLLOW = "follow"
    SNAPSHOT = "snapshot"
    PIN = "pin"


class ArtifactSource(Struct, frozen=True, kw_only=True, gc=False):
    """The origin of an artifact; the kind determines which fields are set.

    - ``is_rereadable``: Lamella read the text at this source, so it can read it again. False if the caller passed the
      text.
    - ``current_path``: the current path of a file that was moved. ``path`` keeps the name that the artifact is known
      by.
    - ``embedded_notes``: notes, or parts of notes, that the text embeds.
    - ``place``: the position of a passage in its file: the headings above it and its number below them.
    """

    path: str | None = None
    url: str | None = None
    query: str | None = None
    lines: tuple[int, int] | None = None
    tool: str | None = None
    arguments: str | None = None
    via: str | None = None
    is_rereadable: bool = False
    current_path: str | None = None
    embedded_notes: tuple[str, ...] = ()
    place: str | None = None


class ImageData(Struct, frozen=True, kw_only=True):
    """An image as sent: its bytes, and the size that its token count depends on."""

    media_type: str
    data: bytes
    width: int
    height: int
    hash: str

    def __repr__(self) -> str:
        return repr_without(self, without=("data",))


class Artifact(Struct, frozen=True, kw_only=True, gc=False):
    """A typed piece of context attached to a turn, with an id and a content hash.

    Equal text gives an equal hash, even if the modification time differs.

    - ``condensed``: a summary or outline that is shown if the text is too long for the turn. An empty string means that
      not even a summary fits.
    - ``is_outlined``: the turn sends the outline, because the artifact came together with others and not all of them
      fit.
    - ``is_fresh``: the user asked to read the source again, so the text replaces the text of a snapshot.
    """

    id: ArtifactId
    kind: ArtifactKind
    title: str
    text: str
    hash: str
    source: ArtifactSource
    recoverable: bool
    trust: TrustLevel
    policy: AttachmentPolicy | None = None
    images: tuple[ImageData, ...] = ()
    has_images: bool = False
    condensed: str | None = None
    is_outlined: bool = False
    is_fresh: bool = False

    def __repr__(self) -> str:
        return repr_without(self, without=("text", "condensed"))


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool the model may call; ``parameters`` is its JSON schema, serialised with sorted keys."""

    name: str
    description: str
    parameters: str


# Ids of artifacts, one function per way to derive them.

# A fragment that only scrolls (#install) names the same content. Fragments that begin like these select other content.
_SELECTING_FRAGMENTS = (":~:", "/", "!", "t=", "page=")

# Ids of tool results, unknown blocks and images. A file with such a path would take over the id of one of them.
_CONTENT_ID = re.compile(r"tool:.*:[0-9a-f]{12}|(?:unparsed|sha256):[0-9a-f]{64}", re.DOTALL)

# Headings can have any length, but people and models read the id.
_MAX_POSITION_CHARS = 200


def make_path_id(source: ArtifactSource, _text: str) -> ArtifactId:
    """Return the vault path without ``./`` and doubled slashes.

    Raises ``ArtifactError`` if the path is empty or looks like an id that is derived from content.
    """
    if not source.path:
        raise ArtifactError("An attachment has no path.", hint="Give it a `path` relative to the vault.")
    if _CONTENT_ID.fullmatch(source.path):
        raise ArtifactError(
            f"The path {source.path[:40]!r} reads like the id of something named by its content.",
            hint="Tool results, unknown blocks and pictures have such ids. Rename the file.",
        )
    parts = [part for part in source.path.split("/") if part not in ("", ".")]
    root = "/" if source.path.startswith("/") else ""
    if not parts:
        raise ArtifactError(f"The path {source.path!r} names no file.", hint="Give it a `path` relative to the vault.")
    return ArtifactId(root + "/".join(parts))


def make_folder_id(source: ArtifactSource, _text: str) -> ArtifactId:
    """Return the folder's path without ``./``, doubled and trailing slashes; the whole vault is ``.``."""
    path = source.path or ""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    root = "/" if path.startswith("/") else ""
    return ArtifactId(root + "/".join(parts) or ".")


def make_codebase_id(source: ArtifactSource, text: str) -> ArtifactId:
    """Return the id of the folder that files are chosen from.

    A later selection from the same folder has the same id and replaces the earlier one.
    """
    return ArtifactId(f"codebase:{make_folder_id(source, text)}")


def make_instruction_id(source: ArtifactSource, _text: str) -> ArtifactId:
    """Return the id of an instruction, made from its name.

    A newer text with the same name replaces the earlier one.
    """
    if not source.path or not source.path.strip():
        raise ArtifactError("An instruction has no name.", hint="Say what it tells how to do, as in `explain`.")
    return ArtifactId(f"instruction:{source.path}")


def make_url_id(source: ArtifactSource, _text: str) -> ArtifactId:
    """Return the URL as given, without its fragment unless the fragment selects content."""
    if not source.url:
        raise ArtifactError("An attachment has no url.", hint="Give it a `url`.")
    page, mark, fragment = source.url.partition("#")
    return ArtifactId(page + mark + fragment if fragment.startswith(_SELECTING_FRAGMENTS) else page)


def make_dataview_id(source: ArtifactSource, text: str) -> ArtifactId:
    """Return the path of the note that contains the query, and a short hash of the query."""
    if not source.query:
        raise ArtifactError("A dataview attachment has no query.", hint="Give it a `query`.")
    return ArtifactId(f"{make_path_id(source, text)}#dataview:{short_hash(source.query)}")


def make_selection_id(source: ArtifactSource, text: str) -> ArtifactId:
    """Return the position of a selection and a short hash of its text, so that no two selections share an id."""
    if source.path is None and source.url is None:
        raise ArtifactError("A selection has neither path nor url.", hint="Give it a `path` or a `url`.")
    if source.lines is not None and not 1 <= source.lines[0] <= source.lines[1]:
        raise ArtifactError(
            f"A selection starts at line {source.lines[0]} and ends at line {source.lines[1]}.",
            hint="Give `lines` as first and last, counted from 1.",
        )
    location = make_path_id(source, text) if source.path is not None else source.url
    span = f"L{source.lines[0]}-L{source.lines[1]}" if source.lines else "selection"
    return ArtifactId(f"{location}#{span}:{short_hash(text)}")


def make_passage_id(source: ArtifactSource, text: str) -> ArtifactId:
    """Return the file and the position of the passage in it.

    Changes elsewhere in the file do not change the id.
    """
    location = source.place or "~0"
    if len(location) > _MAX_POSITION_CHARS:
        location = f"{location[:_MAX_POSITION_CHARS]}…{short_hash(location)}"
    return ArtifactId(f"{make_path_id(source, text)}#passage:{location}")


def make_tool_result_id(source: ArtifactSource, text: str) -> ArtifactId:
    """Return the tool's name and a short hash of its arguments and output."""
    if not source.tool:
        raise ArtifactError("A tool result has no name.", hint="Give it the `name` of the tool.")
    digest = short_hash(f"{source.arguments or '{}'}\n{text}")
    return ArtifactId(f"tool:{source.tool}:{digest}")


def make_unparsed_block_id(_source: ArtifactSource, text: str) -> ArtifactId:
    """Return an id made from the content, so that the same unknown block is always the same artifact."""
    return ArtifactId("unparsed:" + hash_text(text).removeprefix("sha256:"))


def make_tag_id(source: ArtifactSource, _text: str) -> ArtifactId:
    """Return the tag with one leading ``#``."""
    if not source.query:
        raise ArtifactError("A tag attachment has no tag.", hint="Give it a `tag`, such as `#project`.")
    return ArtifactId("#" + source.query.lstrip("#"))


def make_image_id(_source: ArtifactSource, content_hash: str) -> ArtifactId:
    """Return the hash of the image's bytes, which is passed instead of a text."""
    return ArtifactId(content_hash)


# Artifacts whose text is loaded on first access.

# Placeholder for a text that is not loaded yet. It is recognised by identity, since a real text may have the same
# characters; ``join`` makes a string object that no literal shares.
NOT_LOADED = "".join(["not ", "read"])
# Reads the struct field that the ``text`` property of ``LazyArtifact`` hides. Encoding such an artifact directly would
# write the placeholder; storage saves the hash of the text instead.
_get_text_field = vars(Artifact)["text"].__get__
_FIELDS_EXCEPT_TEXT = tuple([name for name in Artifact.__struct_fields__ if name != "text"])


class LazyTexts:
    """Texts by content hash, all loaded together when the first one is needed."""

    def __init__(self, hashes: Collection[str], load: Callable[[Collection[str]], Mapping[str, str]]) -> None:
        self._hashes = hashes
        self._load = load
        self._texts: Mapping[str, str] | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        # No lock: all conversations would share it, and it would be held during a read from the store.
        if self._texts is None:
            self._texts = self._load(self._hashes)
        return self._texts


class LazyArtifact(Artifact, frozen=True, kw_only=True, gc=False):
    """An artifact that loads its text on access and equals an ordinary artifact with the same fields."""

    lazy_texts: LazyTexts

    @property  # type: ignore[misc]  # overrides the struct field of the same name
    def text(self) -> str:
        text: str = _get_text_field(self)
        return self.lazy_texts.texts[self.hash] if text is NOT_LOADED else text

    def __eq__(self, other: object) -> bool:
        # ``hash`` is the hash of the text, so comparing does not load the text.
        if not isinstance(other, Artifact) or any(
            getattr(self, name) != getattr(other, name) for name in _FIELDS_EXCEPT_TEXT
        ):
            return False
        return self is other or _hash_artifact_text(self) == _hash_artifact_text(other)

    def __ne__(self, other: object) -> bool:
        # msgspec structs define ``!=`` themselves, so Python does not derive it from ``__eq__`` above.
        return not self == other

    def __hash__(self) -> int:
        return hash(Artifact(**{name: getattr(self, name) for name in Artifact.__struct_fields__}))


def _hash_artifact_text(artifact: Artifact) -> str:
    text = _get_text_field(artifact)
    return artifact.hash if text is NOT_LOADED else hash_text(text)


# Attachments that have to be read before they can be sent.


class UnresolvedAttachment(Struct, frozen=True, kw_only=True):
    """An attachment that must be read or expanded first: a file, image, page, folder, tag or query.

    - ``query``: the query to run in the note ``name``, or the question to choose files of a codebase by.
    - ``max_tokens``: how many tokens the chosen files of a codebase may have.
    - ``data``: the bytes of an image that the caller passed. Only its format and size still have to be determined.
    - ``via``: how the attachment came in.
    - ``read_again``: read the source again, even if the text is cached or attached as a snapshot.
    """

    kind: ArtifactKind
    name: str
    policy: AttachmentPolicy | None = None
    title: str = ""
    via: str | None = None
    query: str | None = None
    data: bytes | None = None
    media_type: str | None = None
    read_again: bool = False
    max_tokens: int | None = None

    def __repr__(self) -> str:
        return repr_without(self, without=("data",))
