"""How each kind of artifact gets its id: from where it stands, or from its content."""

import re

from lamella.core.artifacts.model import ArtifactId, Source
from lamella.core.text.content import hash_text, short_hash
from lamella.errors import ArtifactError

# A fragment that only scrolls (#install) names the same content; these select or route to other content.
_SELECTING_FRAGMENTS = (":~:", "/", "!", "t=", "page=")

# The ids of tool results, unknown blocks and pictures; a file that is called one would stand in its place.
_CONTENT_ID = re.compile(r"tool:.*:[0-9a-f]{12}|(?:unparsed|sha256):[0-9a-f]{64}", re.DOTALL)

# Headings can be of any length; an id is read by people and models.
_LONGEST_PLACE = 200


def path_id(source: Source, _text: str) -> ArtifactId:
    """The vault path, with ``./`` and doubled slashes taken out."""
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


def folder_id(source: Source, _text: str) -> ArtifactId:
    """The folder's path, with ``./``, doubled slashes and one behind it taken out; the whole vault is a dot."""
    path = source.path or ""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    root = "/" if path.startswith("/") else ""
    return ArtifactId(root + "/".join(parts) or ".")


def codebase_id(source: Source, text: str) -> ArtifactId:
    """The folder that files are chosen from: a later choice from it stands in the place of the one before."""
    return ArtifactId(f"codebase:{folder_id(source, text)}")


def instruction_id(source: Source, _text: str) -> ArtifactId:
    """What it tells how to do: a newer text of that name stands in the place of the one before."""
    if not source.path or not source.path.strip():
        raise ArtifactError("An instruction has no name.", hint="Say what it tells how to do, as in `explain`.")
    return ArtifactId(f"instruction:{source.path}")


def url_id(source: Source, _text: str) -> ArtifactId:
    """The URL as given; a fragment stays only if it selects content."""
    if not source.url:
        raise ArtifactError("An attachment has no url.", hint="Give it a `url`.")
    page, mark, fragment = source.url.partition("#")
    return ArtifactId(page + mark + fragment if fragment.startswith(_SELECTING_FRAGMENTS) else page)


def dataview_id(source: Source, text: str) -> ArtifactId:
    """The note that holds the query, and a short hash of the query."""
    if not source.query:
        raise ArtifactError("A dataview attachment has no query.", hint="Give it a `query`.")
    return ArtifactId(f"{path_id(source, text)}#dataview:{short_hash(source.query)}")


def selection_id(source: Source, text: str) -> ArtifactId:
    """Where the selection stands and a short hash of it: two selections never share an id."""
    if source.path is None and source.url is None:
        raise ArtifactError("A selection has neither path nor url.", hint="Give it a `path` or a `url`.")
    if source.lines is not None and not 1 <= source.lines[0] <= source.lines[1]:
        raise ArtifactError(
            f"A selection starts at line {source.lines[0]} and ends at line {source.lines[1]}.",
            hint="Give `lines` as first and last, counted from 1.",
        )
    place = path_id(source, text) if source.path is not None else source.url
    span = f"L{source.lines[0]}-L{source.lines[1]}" if source.lines else "selection"
    return ArtifactId(f"{place}#{span}:{short_hash(text)}")


def passage_id(source: Source, text: str) -> ArtifactId:
    """The file, and where in it the passage stands: what the file says elsewhere does not change it."""
    place = source.place or "~0"
    if len(place) > _LONGEST_PLACE:
        place = f"{place[:_LONGEST_PLACE]}…{short_hash(place)}"
    return ArtifactId(f"{path_id(source, text)}#passage:{place}")


def tool_id(source: Source, text: str) -> ArtifactId:
    """The tool's name and a short hash of its arguments and output."""
    if not source.tool:
        raise ArtifactError("A tool result has no name.", hint="Give it the `name` of the tool.")
    digest = short_hash(f"{source.arguments or '{}'}\n{text}")
    return ArtifactId(f"tool:{source.tool}:{digest}")


def unparsed_id(_source: Source, text: str) -> ArtifactId:
    """The content itself: the same unknown block is the same artifact on any day."""
    return ArtifactId("unparsed:" + hash_text(text).removeprefix("sha256:"))


def tag_id(source: Source, _text: str) -> ArtifactId:
    """The tag with its hash sign."""
    if not source.query:
        raise ArtifactError("A tag attachment has no tag.", hint="Give it a `tag`, such as `#project`.")
    return ArtifactId("#" + source.query.lstrip("#"))


def image_id(_source: Source, content_hash: str) -> ArtifactId:
    """The hash of the image's bytes, handed in where other kinds hand in their text."""
    return ArtifactId(content_hash)
