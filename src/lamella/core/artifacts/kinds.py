"""The registry of kinds: one row per kind says everything that follows from being of that kind."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from lamella.core.artifacts.ids import (
    dataview_id,
    image_id,
    path_id,
    selection_id,
    tag_id,
    tool_id,
    unparsed_id,
    url_id,
)
from lamella.core.artifacts.model import ArtifactId, Kind, Source, Trust


class Promotion(StrEnum):
    """What becomes of an artifact when its turn is over."""

    AS_ITSELF = "as_itself"
    AS_NOTE = "as_note"
    NOTE_BY_NOTE = "note_by_note"
    NEVER = "never"


class BlockForm(StrEnum):
    """How a kind becomes text."""

    LOCATED = "located"
    TOOL = "tool"
    BARE = "bare"
    IMAGE_PART = "image_part"
    EXPANDS = "expands"


class KindSpec(Struct, frozen=True, kw_only=True):
    """What follows from being of a kind."""

    kind: Kind
    tag: str
    block: BlockForm
    id_rule: Callable[[Source, str], ArtifactId]
    recoverable: bool
    promotion: Promotion
    trust: Trust


_ROWS: tuple[tuple[Kind, str, BlockForm, Callable[[Source, str], ArtifactId], bool, Promotion, Trust], ...] = (
    (Kind.NOTE, "note_context", BlockForm.LOCATED, path_id, True, Promotion.AS_ITSELF, Trust.VAULT),
    (Kind.ACTIVE_NOTE, "active_note", BlockForm.LOCATED, path_id, True, Promotion.AS_NOTE, Trust.VAULT),
    (Kind.URL, "url_content", BlockForm.LOCATED, url_id, True, Promotion.AS_ITSELF, Trust.WEB),
    (Kind.WEB_TAB, "web_tab_context", BlockForm.LOCATED, url_id, True, Promotion.AS_ITSELF, Trust.WEB),
    (Kind.YOUTUBE, "youtube_video_context", BlockForm.LOCATED, url_id, True, Promotion.AS_ITSELF, Trust.WEB),
    (Kind.PDF, "pdf_context", BlockForm.LOCATED, path_id, True, Promotion.AS_ITSELF, Trust.VAULT),
    (Kind.OFFICE, "office_context", BlockForm.LOCATED, path_id, True, Promotion.AS_ITSELF, Trust.VAULT),
    (Kind.CANVAS, "canvas_context", BlockForm.LOCATED, path_id, True, Promotion.AS_ITSELF, Trust.VAULT),
    (Kind.CODE, "code_context", BlockForm.LOCATED, path_id, True, Promotion.AS_ITSELF, Trust.VAULT),
    (Kind.FOLDER, "note_context", BlockForm.EXPANDS, path_id, True, Promotion.NOTE_BY_NOTE, Trust.VAULT),
    (Kind.TAG, "note_context", BlockForm.EXPANDS, tag_id, True, Promotion.NOTE_BY_NOTE, Trust.VAULT),
    (
        Kind.DATAVIEW,
        "dataview_context",
        BlockForm.LOCATED,
        dataview_id,
        True,
        Promotion.AS_ITSELF,
        Trust.VAULT,
    ),
    (
        Kind.SELECTED_TEXT,
        "selected_text",
        BlockForm.LOCATED,
        selection_id,
        False,
        Promotion.AS_ITSELF,
        Trust.USER,
    ),
    (
        Kind.WEB_SELECTION,
        "web_selected_text",
        BlockForm.LOCATED,
        selection_id,
        False,
        Promotion.AS_ITSELF,
        Trust.WEB,
    ),
    (Kind.TOOL, "tool_result", BlockForm.TOOL, tool_id, True, Promotion.NEVER, Trust.TOOL),
    (Kind.IMAGE, "image", BlockForm.IMAGE_PART, image_id, False, Promotion.NEVER, Trust.USER),
    (Kind.UNKNOWN, "unparsed_context", BlockForm.BARE, unparsed_id, False, Promotion.AS_ITSELF, Trust.USER),
)

KINDS: Mapping[Kind, KindSpec] = MappingProxyType(
    {
        kind: KindSpec(
            kind=kind,
            tag=tag,
            block=block,
            id_rule=id_rule,
            recoverable=recoverable,
            promotion=promotion,
            trust=trust,
        )
        for kind, tag, block, id_rule, recoverable, promotion, trust in _ROWS
    }
)

_LATER: Mapping[Kind, Kind] = MappingProxyType(
    {kind: Kind.NOTE if spec.promotion is Promotion.AS_NOTE else kind for kind, spec in KINDS.items()}
)


def later_kind(kind: Kind) -> Kind:
    """What something of a kind is once its turn is over: the active note is active only then, and a note after it."""
    return _LATER[kind]
