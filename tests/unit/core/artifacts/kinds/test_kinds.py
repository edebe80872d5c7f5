"""The registry: a kind that lacks a row, or a row that lacks an answer, fails here."""

import pytest

from lamella.core.artifacts.kinds import (
    KINDS,
    LIBRARY_KIND,
    UNPARSED_KINDS,
    BlockFormat,
    EmbedHandling,
    LibraryPromotion,
    SourceMedium,
    kind_of_file,
)
from lamella.core.artifacts.model import ArtifactKind, TrustLevel

NOT_RECOVERABLE = {ArtifactKind.SELECTED_TEXT, ArtifactKind.WEB_SELECTION, ArtifactKind.IMAGE, ArtifactKind.UNKNOWN}
TAGS = {
    ArtifactKind.NOTE: "note_context",
    ArtifactKind.ACTIVE_NOTE: "active_note",
    ArtifactKind.URL: "url_content",
    ArtifactKind.WEB_TAB: "web_tab_context",
    ArtifactKind.YOUTUBE: "youtube_video_context",
    ArtifactKind.PDF: "pdf_context",
    ArtifactKind.OFFICE: "office_context",
    ArtifactKind.CANVAS: "canvas_context",
    ArtifactKind.CODE: "code_context",
    ArtifactKind.DATAVIEW: "dataview_context",
    ArtifactKind.SELECTED_TEXT: "selected_text",
    ArtifactKind.WEB_SELECTION: "web_selected_text",
    ArtifactKind.UNKNOWN: "unparsed_context",
}


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_every_kind_has_complete_row(kind: ArtifactKind) -> None:
    row = KINDS[kind]
    assert row.kind is kind
    assert row.tag
    assert isinstance(row.block_format, BlockFormat)
    assert callable(row.id_rule)
    assert isinstance(row.recoverable, bool)
    assert isinstance(row.promotion, LibraryPromotion)
    assert isinstance(row.trust, TrustLevel)


@pytest.mark.parametrize("kind", sorted(TAGS))
def test_block_tag_is_the_documented_one(kind: ArtifactKind) -> None:
    assert KINDS[kind].tag == TAGS[kind]


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_only_selections_images_and_unknown_blocks_are_unrecoverable(kind: ArtifactKind) -> None:
    assert KINDS[kind].recoverable is (kind not in NOT_RECOVERABLE)


def test_tool_results_and_images_belong_to_their_turn() -> None:
    never = {kind for kind, row in KINDS.items() if row.promotion is LibraryPromotion.NEVER}
    assert never == {ArtifactKind.TOOL, ArtifactKind.IMAGE}


def test_active_note_is_promoted_as_a_plain_note() -> None:
    assert [kind for kind, row in KINDS.items() if row.promotion is LibraryPromotion.AS_NOTE] == [
        ArtifactKind.ACTIVE_NOTE
    ]


def test_every_kind_except_tool_result_can_be_attached_in_transcript() -> None:
    assert {kind for kind, row in KINDS.items() if row.fields} == set(ArtifactKind) - {ArtifactKind.TOOL}


def test_only_active_note_changes_kind_after_its_turn() -> None:
    later = {kind: LIBRARY_KIND[kind] for kind in ArtifactKind if LIBRARY_KIND[kind] is not kind}
    assert later == {ArtifactKind.ACTIVE_NOTE: ArtifactKind.NOTE}


def test_archives_name_their_groups_in_the_order_of_the_rows() -> None:
    assert list(dict.fromkeys(row.group for row in KINDS.values())) == [
        "Notes",
        "Files",
        "Codebases",
        "URLs",
        "Web Tabs",
        "Queries",
        "Selections",
        "Passages",
        "Instructions",
        "Tools",
        "Images",
        "Blocks",
        "Tags",
        "Folders",
    ]


@pytest.mark.parametrize(
    ("kind", "group", "medium", "fields"),
    [
        (ArtifactKind.NOTE, "Notes", "file", "path text"),
        (ArtifactKind.ACTIVE_NOTE, "Notes", "file", "path text images"),
        (ArtifactKind.PDF, "Files", "pdf", "path text"),
        (ArtifactKind.OFFICE, "Files", "office", "path text"),
        (ArtifactKind.CANVAS, "Files", "file", "path text"),
        (ArtifactKind.CODE, "Files", "file", "path text"),
        (ArtifactKind.CODEBASE, "Codebases", "codebase", "path query text"),
        (ArtifactKind.URL, "URLs", "page", "url text"),
        (ArtifactKind.YOUTUBE, "URLs", "video", "url text"),
        (ArtifactKind.WEB_TAB, "Web Tabs", "page", "url text"),
        (ArtifactKind.DATAVIEW, "Queries", "query", "path query text"),
        (ArtifactKind.SELECTED_TEXT, "Selections", "none", "path url lines text"),
        (ArtifactKind.WEB_SELECTION, "Selections", "none", "path url lines text"),
        (ArtifactKind.PASSAGE, "Passages", "none", "path place text turn_only"),
        (ArtifactKind.INSTRUCTION, "Instructions", "none", "path text"),
        (ArtifactKind.TOOL, "Tools", "none", ""),
        (ArtifactKind.IMAGE, "Images", "picture", "path url data media_type"),
        (ArtifactKind.UNKNOWN, "Blocks", "none", "text"),
        (ArtifactKind.TAG, "Tags", "tag", "tag text"),
        (ArtifactKind.FOLDER, "Folders", "folder", "path text"),
    ],
)
def test_kind_has_group_medium_and_transcript_fields(kind: ArtifactKind, group: str, medium: str, fields: str) -> None:
    row = KINDS[kind]
    assert (row.group, row.medium.value, " ".join(row.fields)) == (group, medium, fields)


def test_only_files_that_are_their_own_text_are_read_as_such() -> None:
    files = {kind for kind, row in KINDS.items() if row.medium is SourceMedium.FILE}
    assert files == {ArtifactKind.NOTE, ArtifactKind.ACTIVE_NOTE, ArtifactKind.CANVAS, ArtifactKind.CODE}


def test_images_are_sent_from_the_active_note_and_stay_links_in_others() -> None:
    assert {
        kind: row.embed_handling for kind, row in KINDS.items() if row.embed_handling is not EmbedHandling.NONE
    } == {
        ArtifactKind.NOTE: EmbedHandling.LINKED,
        ArtifactKind.ACTIVE_NOTE: EmbedHandling.SENT,
        ArtifactKind.PASSAGE: EmbedHandling.LINKED,
    }


def test_passages_and_instructions_are_brought_for_a_turn_and_not_attached_for_good() -> None:
    assert [kind for kind, row in KINDS.items() if row.is_file_part] == [ArtifactKind.PASSAGE, ArtifactKind.INSTRUCTION]


@pytest.mark.parametrize(
    ("template", "kinds"),
    [
        ("note", [ArtifactKind.NOTE, ArtifactKind.ACTIVE_NOTE]),
        ("active_note", [ArtifactKind.ACTIVE_NOTE]),
        ("selection", [ArtifactKind.SELECTED_TEXT, ArtifactKind.WEB_SELECTION]),
    ],
)
def test_template_kinds_are_fixed(template: str, kinds: list[ArtifactKind]) -> None:
    assert [kind for kind, row in KINDS.items() if template in row.templates] == kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.MD", ArtifactKind.NOTE),
        ("x/a.txt", ArtifactKind.NOTE),
        ("a.b.pdf", ArtifactKind.PDF),
        ("a.pptx", ArtifactKind.OFFICE),
        ("a.png/", ArtifactKind.IMAGE),
        ("a.yml", ArtifactKind.CODE),
        ("a", None),
        (".md", None),
        ("x/.md", None),
        ("a.", None),
        ("x.md/a", None),
        ("", None),
    ],
)
def test_file_kind_follows_extension(name: str, kind: ArtifactKind | None) -> None:
    assert kind_of_file(name) is kind


def test_extensions_are_lowercase_and_unique() -> None:
    endings = [(ending, kind) for kind, row in KINDS.items() for ending in row.suffixes]
    assert [ending for ending, _ in endings if not ending[1:].isalpha() or ending != f".{ending[1:].lower()}"] == []
    assert [ending for ending, kind in endings if kind_of_file(f"Name{ending.upper()}") is not kind] == []


def test_extensions_of_every_kind_are_fixed() -> None:
    endings = {kind: " ".join(row.suffixes) for kind, row in KINDS.items() if row.suffixes}
    assert endings == {
        ArtifactKind.NOTE: ".md .markdown .txt",
        ArtifactKind.PDF: ".pdf",
        ArtifactKind.OFFICE: ".docx .docm .xlsx .xlsm .xls .ods .pptx .pptm",
        ArtifactKind.CANVAS: ".canvas",
        ArtifactKind.CODE: (
            ".bash .c .cfg .cpp .cs .css .csv .diff .go .h .hpp .html .ini .java .js .json .jsx .kt .log .lua .php .py "
            ".rb .rs .rst .scala .sh .sql .swift .tex .toml .ts .tsv .tsx .xml .yaml .yml"
        ),
        ArtifactKind.IMAGE: ".png .jpg .jpeg .gif .webp",
    }


def test_embed_and_promotion_names_are_fixed() -> None:
    assert [one.value for one in EmbedHandling] == ["none", "linked", "sent"]
    assert [one.value for one in LibraryPromotion] == ["as_itself", "as_note", "note_by_note", "never"]
    assert frozenset({ArtifactKind.UNKNOWN}) == UNPARSED_KINDS
    assert [kind for kind, row in KINDS.items() if row.trust is TrustLevel.VAULT] == [
        ArtifactKind.NOTE,
        ArtifactKind.ACTIVE_NOTE,
        ArtifactKind.PDF,
        ArtifactKind.OFFICE,
        ArtifactKind.CANVAS,
        ArtifactKind.CODE,
        ArtifactKind.CODEBASE,
        ArtifactKind.DATAVIEW,
        ArtifactKind.PASSAGE,
        ArtifactKind.TAG,
        ArtifactKind.FOLDER,
    ]


def test_folder_and_tag_are_promoted_note_by_note() -> None:
    read = {kind: (KINDS[kind].medium, KINDS[kind].promotion) for kind in (ArtifactKind.FOLDER, ArtifactKind.TAG)}
    assert read == {
        ArtifactKind.FOLDER: (SourceMedium.FOLDER, LibraryPromotion.NOTE_BY_NOTE),
        ArtifactKind.TAG: (SourceMedium.TAG, LibraryPromotion.NOTE_BY_NOTE),
    }
