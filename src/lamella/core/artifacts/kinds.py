"""The registry of artifact kinds, and the constructors of artifacts.

One ``KindSpec`` per kind defines everything specific to it; no other table lists kinds. The defaults of a row describe
a file of the vault: its path is its id, its text is given or read from the file, and it keeps its kind after its turn.

``make_artifact``, ``make_image_artifact`` and ``make_tool_result`` normalise and hash the text and derive the id by
the rule of the kind. Nothing else creates artifacts from input.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from lamella.core.artifacts.embeds import embedded_images
from lamella.core.artifacts.model import (
    FOUND_BY_SEARCH,
    Artifact,
    ArtifactId,
    ArtifactKind,
    ArtifactSource,
    AttachmentPolicy,
    ImageData,
    ToolDefinition,
    TrustLevel,
    make_codebase_id,
    make_dataview_id,
    make_folder_id,
    make_image_id,
    make_instruction_id,
    make_passage_id,
    make_path_id,
    make_selection_id,
    make_tag_id,
    make_tool_result_id,
    make_unparsed_block_id,
    make_url_id,
)
from lamella.core.text.content import canonical_json, encode_text, hash_bytes, hash_text, normalize_line_ends
from lamella.errors import ArtifactError


class LibraryPromotion(StrEnum):
    """The way an artifact enters the context library after its turn."""

    AS_ITSELF = "as_itself"
    AS_NOTE = "as_note"
    NOTE_BY_NOTE = "note_by_note"
    NEVER = "never"


class BlockFormat(StrEnum):
    """The format in which artifacts of a kind are rendered as text."""

    LOCATED = "located"
    NAMED = "named"
    TOOL = "tool"
    BARE = "bare"
    IMAGE_PART = "image_part"
    EXPANDS = "expands"


class SourceMedium(StrEnum):
    """Which reader loads artifacts of a kind.

    The text of a ``file`` is the file itself. Folders and tags are looked up in a catalog. A ``query`` is answered
    from all notes, and from a ``codebase`` files are chosen. Artifacts with ``none`` always come with their text.
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


class EmbedHandling(StrEnum):
    """The handling of images embedded in a text: there are none, they stay links, or they are sent with the turn."""

    NONE = "none"
    LINKED = "linked"
    SENT = "sent"


class KindSpec(Struct, frozen=True, kw_only=True):
    """The properties of one artifact kind.

    - ``fields``: the fields that a transcript may give for an artifact of this kind, the identifying one first.
    - ``group``: the heading of the kind in the context line of archives.
    - ``suffixes``: file endings that identify the kind.
    - ``templates``: template names that can refer to the kind.
    - ``policy``: the default for new attachments. Web pages change between reads, so they are kept as snapshots.
    - ``is_file_part``: the artifact is a part of a file that was found for one turn. Lamella keeps it for the number of
      turns that ``linger`` sets, even if other attachments stay until they are detached. Attaching its file brings
      it back. Instructions count as parts, too; their name brings them back.
    """

    kind: ArtifactKind
    tag: str
    group: str
    block_format: BlockFormat = BlockFormat.LOCATED
    id_rule: Callable[[ArtifactSource, str], ArtifactId] = make_path_id
    fields: tuple[str, ...] = ("path", "text")
    suffixes: tuple[str, ...] = ()
    medium: SourceMedium = SourceMedium.FILE
    recoverable: bool = True
    promotion: LibraryPromotion = LibraryPromotion.AS_ITSELF
    trust: TrustLevel = TrustLevel.VAULT
    embed_handling: EmbedHandling = EmbedHandling.NONE
    templates: tuple[str, ...] = ()
    policy: AttachmentPolicy | None = None
    is_file_part: bool = False


_URL_FIELDS = ("url", "text")
_SELECTION_FIELDS = ("path", "url", "lines", "text")

# Endings that people know as source files. A mention such as @jo.smith or @example.com has none of them.
_CODE_SUFFIXES = (
    ".bash",
    ".c",
    ".cfg",
    ".cpp",
    ".cs",
    ".css",
    ".csv",
    ".diff",
    ".go",
    ".h",
    ".hpp",
    ".html",
    ".ini",
    ".java",
    ".js",
    ".json",
    ".jsx",
    ".kt",
    ".log",
    ".lua",
    ".php",
    ".py",
    ".rb",
    ".rs",
    ".rst",
    ".scala",
    ".sh",
    ".sql",
    ".swift",
    ".tex",
    ".toml",
    ".ts",
    ".tsv",
    ".tsx",
    ".xml",
    ".yaml",
    ".yml",
)

# Archives list their groups in this order.
_KIND_SPECS = (
    KindSpec(
        kind=ArtifactKind.NOTE,
        tag="note_context",
        group="Notes",
        suffixes=(".md", ".markdown", ".txt"),
        embed_handling=EmbedHandling.LINKED,
        templates=("note",),
    ),
    KindSpec(
        kind=ArtifactKind.ACTIVE_NOTE,
        tag="active_note",
        group="Notes",
        promotion=LibraryPromotion.AS_NOTE,
        fields=("path", "text", "images"),
        embed_handling=EmbedHandling.SENT,
        templates=("active_note", "note"),
    ),
    KindSpec(kind=ArtifactKind.PDF, tag="pdf_context", group="Files", suffixes=(".pdf",), medium=SourceMedium.PDF),
    KindSpec(
        kind=ArtifactKind.OFFICE,
        tag="office_context",
        group="Files",
        medium=SourceMedium.OFFICE,
        suffixes=(".docx", ".docm", ".xlsx", ".xlsm", ".xls", ".ods", ".pptx", ".pptm"),
    ),
    KindSpec(kind=ArtifactKind.CANVAS, tag="canvas_context", group="Files", suffixes=(".canvas",)),
    KindSpec(kind=ArtifactKind.CODE, tag="code_context", group="Files", suffixes=_CODE_SUFFIXES),
    KindSpec(
        kind=ArtifactKind.CODEBASE,
        tag="codebase_context",
        group="Codebases",
        id_rule=make_codebase_id,
        fields=("path", "query", "text"),
        medium=SourceMedium.CODEBASE,
    ),
    KindSpec(
        kind=ArtifactKind.URL,
        tag="url_content",
        group="URLs",
        id_rule=make_url_id,
        fields=_URL_FIELDS,
        medium=SourceMedium.PAGE,
        trust=TrustLevel.WEB,
        policy=AttachmentPolicy.SNAPSHOT,
    ),
    KindSpec(
        kind=ArtifactKind.YOUTUBE,
        tag="youtube_video_context",
        group="URLs",
        id_rule=make_url_id,
        fields=_URL_FIELDS,
        medium=SourceMedium.VIDEO,
        trust=TrustLevel.WEB,
        policy=AttachmentPolicy.SNAPSHOT,
    ),
    KindSpec(
        kind=ArtifactKind.WEB_TAB,
        tag="web_tab_context",
        group="Web Tabs",
        id_rule=make_url_id,
        fields=_URL_FIELDS,
        medium=SourceMedium.PAGE,
        trust=TrustLevel.WEB,
        policy=AttachmentPolicy.SNAPSHOT,
    ),
    KindSpec(
        kind=ArtifactKind.DATAVIEW,
        tag="dataview_context",
        group="Queries",
        id_rule=make_dataview_id,
        fields=("path", "query", "text"),
        medium=SourceMedium.QUERY,
    ),
    KindSpec(
        kind=ArtifactKind.SELECTED_TEXT,
        tag="selected_text",
        group="Selections",
        id_rule=make_selection_id,
        fields=_SELECTION_FIELDS,
        medium=SourceMedium.NONE,
        recoverable=False,
        trust=TrustLevel.USER,
        templates=("selection",),
    ),
    KindSpec(
        kind=ArtifactKind.WEB_SELECTION,
        tag="web_selected_text",
        group="Selections",
        id_rule=make_selection_id,
        fields=_SELECTION_FIELDS,
        medium=SourceMedium.NONE,
        recoverable=False,
        trust=TrustLevel.WEB,
        templates=("selection",),
    ),
    KindSpec(
        kind=ArtifactKind.PASSAGE,
        tag="passage_context",
        group="Passages",
        id_rule=make_passage_id,
        fields=("path", "place", "text", "turn_only"),
        medium=SourceMedium.NONE,
        embed_handling=EmbedHandling.LINKED,
        is_file_part=True,
    ),
    # Directions for a task, sent when they are asked for. They stay for some turns only, and asking again sends them
    # again.
    KindSpec(
        kind=ArtifactKind.INSTRUCTION,
        tag="instruction_context",
        group="Instructions",
        block_format=BlockFormat.NAMED,
        id_rule=make_instruction_id,
        medium=SourceMedium.NONE,
        trust=TrustLevel.USER,
        is_file_part=True,
    ),
    KindSpec(
        kind=ArtifactKind.TOOL,
        tag="tool_result",
        group="Tools",
        block_format=BlockFormat.TOOL,
        id_rule=make_tool_result_id,
        fields=(),
        medium=SourceMedium.NONE,
        promotion=LibraryPromotion.NEVER,
        trust=TrustLevel.TOOL,
    ),
    KindSpec(
        kind=ArtifactKind.IMAGE,
        tag="image",
        group="Images",
        block_format=BlockFormat.IMAGE_PART,
        id_rule=make_image_id,
        fields=("path", "url", "data", "media_type"),
        suffixes=(".png", ".jpg", ".jpeg", ".gif", ".webp"),
        medium=SourceMedium.PICTURE,
        recoverable=False,
        promotion=LibraryPromotion.NEVER,
        trust=TrustLevel.USER,
    ),
    KindSpec(
        kind=ArtifactKind.UNKNOWN,
        tag="unparsed_context",
        group="Blocks",
        block_format=BlockFormat.BARE,
        id_rule=make_unparsed_block_id,
        fields=("text",),
        medium=SourceMedium.NONE,
        recoverable=False,
        trust=TrustLevel.USER,
    ),
    KindSpec(
        kind=ArtifactKind.TAG,
        tag="tag_context",
        group="Tags",
        block_format=BlockFormat.EXPANDS,
        id_rule=make_tag_id,
        fields=("tag", "text"),
        medium=SourceMedium.TAG,
        promotion=LibraryPromotion.NOTE_BY_NOTE,
    ),
    KindSpec(
        kind=ArtifactKind.FOLDER,
        tag="folder_context",
        group="Folders",
        block_format=BlockFormat.EXPANDS,
        id_rule=make_folder_id,
        medium=SourceMedium.FOLDER,
        promotion=LibraryPromotion.NOTE_BY_NOTE,
    ),
)

KINDS: Mapping[ArtifactKind, KindSpec] = MappingProxyType({spec.kind: spec for spec in _KIND_SPECS})
# Kinds whose artifacts have a text of their own, and therefore a block.
TEXT_KINDS = frozenset(
    spec.kind for spec in _KIND_SPECS if spec.block_format not in (BlockFormat.EXPANDS, BlockFormat.IMAGE_PART)
)
# Kinds of blocks that could not be parsed.
UNPARSED_KINDS = frozenset(spec.kind for spec in _KIND_SPECS if spec.block_format is BlockFormat.BARE)

# The kind of an artifact after its turn: the active note is active only in its turn and a note afterwards.
LIBRARY_KIND: Mapping[ArtifactKind, ArtifactKind] = MappingProxyType(
    {kind: ArtifactKind.NOTE if spec.promotion is LibraryPromotion.AS_NOTE else kind for kind, spec in KINDS.items()}
)
_KIND_BY_SUFFIX: Mapping[str, ArtifactKind] = MappingProxyType(
    {suffix: spec.kind for spec in _KIND_SPECS for suffix in spec.suffixes}
)


def goes_to_library(artifact: Artifact) -> bool:
    """Return whether the artifact goes into the context library after its turn."""
    return KINDS[artifact.kind].promotion is not LibraryPromotion.NEVER and not is_turn_only(artifact)


def is_turn_only(artifact: Artifact) -> bool:
    """Return whether an artifact is a passage that only the request of its own turn contains."""
    return artifact.kind is ArtifactKind.PASSAGE and artifact.source.via == FOUND_BY_SEARCH


def kind_of_file(name: str) -> ArtifactKind | None:
    """Return the kind that the ending of a file name implies, or None if it implies none."""
    stem, dot, ending = name.rstrip("/").rsplit("/", 1)[-1].rpartition(".")
    return _KIND_BY_SUFFIX.get(f".{ending.lower()}") if dot and stem else None


# Constructors of artifacts.


def make_artifact(
    kind: ArtifactKind,
    *,
    text: str,
    source: ArtifactSource,
    title: str = "",
    policy: AttachmentPolicy | None = None,
    images: Sequence[ImageData] = (),
) -> Artifact:
    """Build an artifact of any kind that has a text of its own.

    Raises ``ArtifactError`` for other kinds, and if the source lacks what the id is made from.
    """
    spec = KINDS[kind]
    if kind not in TEXT_KINDS:
        raise ArtifactError(
            f"A {kind} is not a text.",
            hint="Expand a folder or tag to its notes; make an image with `Image`.",
        )
    _validate_encoding(title, source)
    text = normalize_line_ends(text)
    return Artifact(
        id=spec.id_rule(source, text),
        kind=kind,
        title=title or default_title(source),
        text=text,
        hash=hash_text(text),
        source=source,
        recoverable=spec.recoverable,
        trust=spec.trust,
        policy=policy,
        images=tuple(images),
        has_images=spec.embed_handling is not EmbedHandling.NONE
        and (bool(images) or ("![" in text and bool(embedded_images(text)))),
    )


def make_image_artifact(
    image: ImageData, *, title: str = "", path: str | None = None, url: str | None = None
) -> Artifact:
    """Build the artifact of a directly attached image; its id is the hash of its bytes."""
    source = ArtifactSource(path=path, url=url)
    _validate_encoding(title, source)
    return Artifact(
        id=KINDS[ArtifactKind.IMAGE].id_rule(source, image.hash),
        kind=ArtifactKind.IMAGE,
        title=title or default_title(source) or "image",
        text="",
        hash=image.hash,
        source=source,
        recoverable=False,
        trust=KINDS[ArtifactKind.IMAGE].trust,
        images=(image,),
        has_images=True,
    )


# The prefix of each path in a list of files that were left out.
LIST_MARKER = "- "


def make_omission_list(kind: ArtifactKind, *, name: str, text: str) -> Artifact:
    """Build the artifact that lists the notes of a folder or tag that did not fit.

    ``text`` has one line that says so, then one path per line.
    """
    spec = KINDS[kind]
    source = ArtifactSource(path=name) if spec.fields[0] == "path" else ArtifactSource(query=name)
    _validate_encoding("", source)
    text = normalize_line_ends(text)
    return Artifact(
        id=spec.id_rule(source, text),
        kind=kind,
        title=name,
        text=text,
        hash=hash_text(text),
        # Lamella added it while expanding the folder or tag, as it added the notes; ``via`` records that.
        source=ArtifactSource(path=source.path, query=source.query, via=f"{kind}:{name}"),
        recoverable=spec.recoverable,
        trust=spec.trust,
    )


def make_tool_result(name: str, *, arguments: Mapping[str, object], output: str) -> Artifact:
    """Build one artifact from a tool call and its output, so that neither can be lost without the other."""
    _validate_tool_name(name)
    source = ArtifactSource(tool=name, arguments=canonical_json(arguments))
    return make_artifact(ArtifactKind.TOOL, text=output, source=source, title=name)


def make_tool_definition(name: str, *, description: str, parameters: Mapping[str, object]) -> ToolDefinition:
    """Build a tool definition whose schema is serialised so that equal schemas give equal bytes."""
    _validate_tool_name(name)
    definition = ToolDefinition(name=name, description=description, parameters=canonical_json(parameters))
    encode_text(definition.name + definition.description + definition.parameters)
    return definition


def make_image_data(data: bytes, *, media_type: str, width: int, height: int) -> ImageData:
    """Build the image data with the hash of its bytes."""
    return ImageData(media_type=media_type, data=data, width=width, height=height, hash=hash_bytes(data))


def _validate_tool_name(name: str) -> None:
    if not name.strip():
        raise ArtifactError("A tool has no name.", hint="Give it the `name` that the model calls it by.")


def _validate_encoding(title: str, source: ArtifactSource) -> None:
    """Check that the title and all source fields can be encoded as UTF-8.

    They are sent, too. Without this check the error would only appear when their tokens are counted.
    """
    for name in (title, source.path, source.url, source.query, source.tool, source.arguments, source.place):
        if name:
            encode_text(name)


def default_title(source: ArtifactSource) -> str:
    """Return the file name without its ending, else the URL, else an empty string."""
    if source.path:
        name = source.path.rstrip("/").rsplit("/", 1)[-1]
        stem, dot, _ = name.rpartition(".")
        return stem if dot and stem else name
    return source.url or ""
