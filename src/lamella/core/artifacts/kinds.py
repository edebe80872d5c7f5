"""The registry of kinds: one row per kind says everything that follows from being of that kind.

No other table has a kind in it. What a row does not say is as with a file of the vault: named by its path, given or
read as text, kept under its own kind once its turn is over.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from lamella.core.artifacts.ids import (
    codebase_id,
    dataview_id,
    folder_id,
    image_id,
    instruction_id,
    passage_id,
    path_id,
    selection_id,
    tag_id,
    tool_id,
    unparsed_id,
    url_id,
)
from lamella.core.artifacts.model import Artifact, ArtifactId, Kind, Policy, Source, Trust


class Promotion(StrEnum):
    """What becomes of an artifact when its turn is over."""

    AS_ITSELF = "as_itself"
    AS_NOTE = "as_note"
    NOTE_BY_NOTE = "note_by_note"
    NEVER = "never"


class BlockForm(StrEnum):
    """How a kind becomes text."""

    LOCATED = "located"
    NAMED = "named"
    TOOL = "tool"
    BARE = "bare"
    IMAGE_PART = "image_part"
    EXPANDS = "expands"


class Medium(StrEnum):
    """What has to be read to have an artifact of a kind: each is one reader's work.

    A ``file`` is its own text. Folders and tags are looked up in a catalog; a ``query`` is answered by all notes of it,
    and from a ``codebase`` files are chosen. ``none``: its text always comes with it.
    """

    FILE = "file"
    PDF = "pdf"
    OFFICE = "office"
    PICTURE = "picture"
    PAGE = "page"
    VIDEO = "video"
    FOLDER = "folder"
    TAG = "tag"
    QUERY = "query"
    CODEBASE = "codebase"
    NONE = "none"


class Embeds(StrEnum):
    """What becomes of pictures that a text embeds: it has none, they stay links, or they are sent with its turn."""

    NONE = "none"
    LINKED = "linked"
    SENT = "sent"


class KindSpec(Struct, frozen=True, kw_only=True):
    """What follows from being of a kind.

    ``fields`` are what a transcript may say of it, first what it is found by; ``group`` is its heading in the context
    line of archives; ``suffixes`` tell a file of that kind by its name; ``templates`` are those that can mean it.
    ``policy`` is what something new has where nobody gives one: a page changes with every look, and stays as it was.
    A ``part`` of a file was found for a turn: it lingers, whatever stays attached, and its file is the way back to it.
    So do instructions, whose way back is their name.
    """

    kind: Kind
    tag: str
    group: str
    block: BlockForm = BlockForm.LOCATED
    id_rule: Callable[[Source, str], ArtifactId] = path_id
    fields: tuple[str, ...] = ("path", "text")
    suffixes: tuple[str, ...] = ()
    medium: Medium = Medium.FILE
    recoverable: bool = True
    promotion: Promotion = Promotion.AS_ITSELF
    trust: Trust = Trust.VAULT
    embeds: Embeds = Embeds.NONE
    templates: tuple[str, ...] = ()
    policy: Policy | None = None
    part: bool = False


_URL = ("url", "text")
_SELECTION = ("path", "url", "lines", "text")

# fmt: off
# Endings by which people know a source file; a name such as @jo.smith or @example.com has none of them.
_CODE = (
    ".bash", ".c", ".cfg", ".cpp", ".cs", ".css", ".csv", ".diff", ".go", ".h", ".hpp", ".html", ".ini", ".java",
    ".js", ".json", ".jsx", ".kt", ".log", ".lua", ".php", ".py", ".rb", ".rs", ".rst", ".scala", ".sh", ".sql",
    ".swift", ".tex", ".toml", ".ts", ".tsv", ".tsx", ".xml", ".yaml", ".yml",
)

# In the order in which archives name their groups.
_ROWS = (
    KindSpec(kind=Kind.NOTE, tag="note_context", group="Notes", suffixes=(".md", ".markdown", ".txt"),
             embeds=Embeds.LINKED, templates=("note",)),
    KindSpec(kind=Kind.ACTIVE_NOTE, tag="active_note", group="Notes", promotion=Promotion.AS_NOTE,
             fields=("path", "text", "images"), embeds=Embeds.SENT, templates=("active_note", "note")),
    KindSpec(kind=Kind.PDF, tag="pdf_context", group="Files", suffixes=(".pdf",), medium=Medium.PDF),
    KindSpec(kind=Kind.OFFICE, tag="office_context", group="Files", medium=Medium.OFFICE,
             suffixes=(".docx", ".docm", ".xlsx", ".xlsm", ".xls", ".ods", ".pptx", ".pptm")),
    KindSpec(kind=Kind.CANVAS, tag="canvas_context", group="Files", suffixes=(".canvas",)),
    KindSpec(kind=Kind.CODE, tag="code_context", group="Files", suffixes=_CODE),
    KindSpec(kind=Kind.CODEBASE, tag="codebase_context", group="Codebases",
             id_rule=codebase_id, fields=("path", "query", "text"), medium=Medium.CODEBASE),
    KindSpec(kind=Kind.URL, tag="url_content", group="URLs",
             id_rule=url_id, fields=_URL, medium=Medium.PAGE, trust=Trust.WEB, policy=Policy.SNAPSHOT),
    KindSpec(kind=Kind.YOUTUBE, tag="youtube_video_context", group="URLs",
             id_rule=url_id, fields=_URL, medium=Medium.VIDEO, trust=Trust.WEB, policy=Policy.SNAPSHOT),
    KindSpec(kind=Kind.WEB_TAB, tag="web_tab_context", group="Web Tabs",
             id_rule=url_id, fields=_URL, medium=Medium.PAGE, trust=Trust.WEB, policy=Policy.SNAPSHOT),
    KindSpec(kind=Kind.DATAVIEW, tag="dataview_context", group="Queries",
             id_rule=dataview_id, fields=("path", "query", "text"), medium=Medium.QUERY),
    KindSpec(kind=Kind.SELECTED_TEXT, tag="selected_text", group="Selections", id_rule=selection_id, fields=_SELECTION,
             medium=Medium.NONE, recoverable=False, trust=Trust.USER, templates=("selection",)),
    KindSpec(kind=Kind.WEB_SELECTION, tag="web_selected_text", group="Selections", id_rule=selection_id,
             fields=_SELECTION, medium=Medium.NONE, recoverable=False, trust=Trust.WEB, templates=("selection",)),
    KindSpec(kind=Kind.PASSAGE, tag="passage_context", group="Passages", id_rule=passage_id,
             fields=("path", "place", "text"), medium=Medium.NONE, embeds=Embeds.LINKED, part=True),
    # How to do something, given when it is asked for: it lingers, and whoever asks for it again brings it again.
    KindSpec(kind=Kind.INSTRUCTION, tag="instruction_context", group="Instructions", block=BlockForm.NAMED,
             id_rule=instruction_id, medium=Medium.NONE, trust=Trust.USER, part=True),
    KindSpec(kind=Kind.TOOL, tag="tool_result", group="Tools", block=BlockForm.TOOL, id_rule=tool_id, fields=(),
             medium=Medium.NONE, promotion=Promotion.NEVER, trust=Trust.TOOL),
    KindSpec(kind=Kind.IMAGE, tag="image", group="Images", block=BlockForm.IMAGE_PART, id_rule=image_id,
             fields=("path", "url", "data", "media_type"), suffixes=(".png", ".jpg", ".jpeg", ".gif", ".webp"),
             medium=Medium.PICTURE, recoverable=False, promotion=Promotion.NEVER, trust=Trust.USER),
    KindSpec(kind=Kind.UNKNOWN, tag="unparsed_context", group="Blocks", block=BlockForm.BARE, id_rule=unparsed_id,
             fields=("text",), medium=Medium.NONE, recoverable=False, trust=Trust.USER),
    KindSpec(kind=Kind.TAG, tag="tag_context", group="Tags", block=BlockForm.EXPANDS, id_rule=tag_id,
             fields=("tag", "text"), medium=Medium.TAG, promotion=Promotion.NOTE_BY_NOTE),
    KindSpec(kind=Kind.FOLDER, tag="folder_context", group="Folders", block=BlockForm.EXPANDS, id_rule=folder_id,
             medium=Medium.FOLDER, promotion=Promotion.NOTE_BY_NOTE),
)
# fmt: on

KINDS: Mapping[Kind, KindSpec] = MappingProxyType({spec.kind: spec for spec in _ROWS})
# Those whose artifacts have a text of their own, and with it a block.
TEXT_KINDS = frozenset(spec.kind for spec in _ROWS if spec.block not in (BlockForm.EXPANDS, BlockForm.IMAGE_PART))
# Those of blocks that nobody could read.
UNPARSED_KINDS = frozenset(spec.kind for spec in _ROWS if spec.block is BlockForm.BARE)

# What something of a kind is once its turn is over: the active note is active only then, and a note after it.
LATER_KIND: Mapping[Kind, Kind] = MappingProxyType(
    {kind: Kind.NOTE if spec.promotion is Promotion.AS_NOTE else kind for kind, spec in KINDS.items()}
)
_SUFFIXES: Mapping[str, Kind] = MappingProxyType({suffix: spec.kind for spec in _ROWS for suffix in spec.suffixes})


def promotes(artifact: Artifact) -> bool:
    """Whether the artifact goes into the library once its turn is over."""
    return KINDS[artifact.kind].promotion is not Promotion.NEVER


def kind_of_file(name: str) -> Kind | None:
    """The kind that a file's name says it is, by its ending; none where that says nothing."""
    stem, dot, ending = name.rstrip("/").rsplit("/", 1)[-1].rpartition(".")
    return _SUFFIXES.get(f".{ending.lower()}") if dot and stem else None
