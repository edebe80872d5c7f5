"""The registry: a kind that lacks a row, or a row that lacks an answer, fails here."""

import pytest

from lamella.core.artifacts.kinds import (
    KINDS,
    LATER_KIND,
    UNPARSED_KINDS,
    BlockForm,
    Embeds,
    Medium,
    Promotion,
    kind_of_file,
)
from lamella.core.artifacts.model import Kind, Trust

NOT_RECOVERABLE = {Kind.SELECTED_TEXT, Kind.WEB_SELECTION, Kind.IMAGE, Kind.UNKNOWN}
TAGS = {
    Kind.NOTE: "note_context",
    Kind.ACTIVE_NOTE: "active_note",
    Kind.URL: "url_content",
    Kind.WEB_TAB: "web_tab_context",
    Kind.YOUTUBE: "youtube_video_context",
    Kind.PDF: "pdf_context",
    Kind.OFFICE: "office_context",
    Kind.CANVAS: "canvas_context",
    Kind.CODE: "code_context",
    Kind.DATAVIEW: "dataview_context",
    Kind.SELECTED_TEXT: "selected_text",
    Kind.WEB_SELECTION: "web_selected_text",
    Kind.UNKNOWN: "unparsed_context",
}


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_answers_every_question(kind: Kind) -> None:
    row = KINDS[kind]
    assert row.kind is kind
    assert row.tag
    assert isinstance(row.block, BlockForm)
    assert callable(row.id_rule)
    assert isinstance(row.recoverable, bool)
    assert isinstance(row.promotion, Promotion)
    assert isinstance(row.trust, Trust)


@pytest.mark.parametrize("kind", sorted(TAGS))
def test_a_block_has_the_tag_that_is_promised(kind: Kind) -> None:
    assert KINDS[kind].tag == TAGS[kind]


@pytest.mark.parametrize("kind", list(Kind))
def test_only_selections_pictures_and_unknown_blocks_cannot_be_fetched_again(kind: Kind) -> None:
    assert KINDS[kind].recoverable is (kind not in NOT_RECOVERABLE)


def test_tool_results_and_pictures_belong_to_their_turn() -> None:
    never = {kind for kind, row in KINDS.items() if row.promotion is Promotion.NEVER}
    assert never == {Kind.TOOL, Kind.IMAGE}


def test_the_active_note_is_promoted_as_a_plain_note() -> None:
    assert [kind for kind, row in KINDS.items() if row.promotion is Promotion.AS_NOTE] == [Kind.ACTIVE_NOTE]


def test_what_can_be_attached_in_a_transcript_is_every_kind_but_tool_results() -> None:
    assert {kind for kind, row in KINDS.items() if row.fields} == set(Kind) - {Kind.TOOL}


def test_only_the_active_note_is_something_else_once_its_turn_is_over() -> None:
    later = {kind: LATER_KIND[kind] for kind in Kind if LATER_KIND[kind] is not kind}
    assert later == {Kind.ACTIVE_NOTE: Kind.NOTE}


def test_archives_name_their_groups_in_the_order_of_the_rows() -> None:
    assert list(dict.fromkeys(row.group for row in KINDS.values())) == [
        "Notes", "Files", "Codebases", "URLs", "Web Tabs", "Queries", "Selections", "Passages", "Instructions",
        "Tools", "Images", "Blocks", "Tags", "Folders",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "group", "medium", "fields"),
    [
        (Kind.NOTE, "Notes", "file", "path text"),
        (Kind.ACTIVE_NOTE, "Notes", "file", "path text images"),
        (Kind.PDF, "Files", "pdf", "path text"),
        (Kind.OFFICE, "Files", "office", "path text"),
        (Kind.CANVAS, "Files", "file", "path text"),
        (Kind.CODE, "Files", "file", "path text"),
        (Kind.CODEBASE, "Codebases", "codebase", "path query text"),
        (Kind.URL, "URLs", "page", "url text"),
        (Kind.YOUTUBE, "URLs", "video", "url text"),
        (Kind.WEB_TAB, "Web Tabs", "page", "url text"),
        (Kind.DATAVIEW, "Queries", "query", "path query text"),
        (Kind.SELECTED_TEXT, "Selections", "none", "path url lines text"),
        (Kind.WEB_SELECTION, "Selections", "none", "path url lines text"),
        (Kind.PASSAGE, "Passages", "none", "path place text"),
        (Kind.INSTRUCTION, "Instructions", "none", "path text"),
        (Kind.TOOL, "Tools", "none", ""),
        (Kind.IMAGE, "Images", "picture", "path url data media_type"),
        (Kind.UNKNOWN, "Blocks", "none", "text"),
        (Kind.TAG, "Tags", "tag", "tag text"),
        (Kind.FOLDER, "Folders", "folder", "path text"),
    ],
)
def test_a_kind_has_its_group_its_reader_and_what_transcripts_say_of_it(
    kind: Kind, group: str, medium: str, fields: str
) -> None:
    row = KINDS[kind]
    assert (row.group, row.medium.value, " ".join(row.fields)) == (group, medium, fields)


def test_only_files_that_are_their_own_text_are_read_as_such() -> None:
    files = {kind for kind, row in KINDS.items() if row.medium is Medium.FILE}
    assert files == {Kind.NOTE, Kind.ACTIVE_NOTE, Kind.CANVAS, Kind.CODE}


def test_pictures_are_sent_from_the_active_note_and_stay_links_in_others() -> None:
    assert {kind: row.embeds for kind, row in KINDS.items() if row.embeds is not Embeds.NONE} == {
        Kind.NOTE: Embeds.LINKED,
        Kind.ACTIVE_NOTE: Embeds.SENT,
        Kind.PASSAGE: Embeds.LINKED,
    }


def test_passages_and_instructions_are_brought_for_a_turn_and_not_attached_for_good() -> None:
    assert [kind for kind, row in KINDS.items() if row.part] == [Kind.PASSAGE, Kind.INSTRUCTION]


@pytest.mark.parametrize(
    ("template", "kinds"),
    [
        ("note", [Kind.NOTE, Kind.ACTIVE_NOTE]),
        ("active_note", [Kind.ACTIVE_NOTE]),
        ("selection", [Kind.SELECTED_TEXT, Kind.WEB_SELECTION]),
    ],
)
def test_a_template_means_these_kinds(template: str, kinds: list[Kind]) -> None:
    assert [kind for kind, row in KINDS.items() if template in row.templates] == kinds


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.MD", Kind.NOTE), ("x/a.txt", Kind.NOTE), ("a.b.pdf", Kind.PDF), ("a.pptx", Kind.OFFICE),
        ("a.png/", Kind.IMAGE),
        ("a.yml", Kind.CODE), ("a", None), (".md", None), ("x/.md", None), ("a.", None), ("x.md/a", None), ("", None),
    ],
)  # fmt: skip
def test_a_file_is_of_the_kind_that_its_ending_says(name: str, kind: Kind | None) -> None:
    assert kind_of_file(name) is kind


def test_endings_are_a_full_stop_and_small_letters_and_each_leads_back_to_its_kind() -> None:
    endings = [(ending, kind) for kind, row in KINDS.items() for ending in row.suffixes]
    assert [ending for ending, _ in endings if not ending[1:].isalpha() or ending != f".{ending[1:].lower()}"] == []
    assert [ending for ending, kind in endings if kind_of_file(f"Name{ending.upper()}") is not kind] == []


def test_every_kind_of_file_is_known_by_these_endings() -> None:
    endings = {kind: " ".join(row.suffixes) for kind, row in KINDS.items() if row.suffixes}
    assert endings == {
        Kind.NOTE: ".md .markdown .txt",
        Kind.PDF: ".pdf",
        Kind.OFFICE: ".docx .docm .xlsx .xlsm .xls .ods .pptx .pptm",
        Kind.CANVAS: ".canvas",
        Kind.CODE: (
            ".bash .c .cfg .cpp .cs .css .csv .diff .go .h .hpp .html .ini .java .js .json .jsx .kt .log .lua .php .py "
            ".rb .rs .rst .scala .sh .sql .swift .tex .toml .ts .tsv .tsx .xml .yaml .yml"
        ),
        Kind.IMAGE: ".png .jpg .jpeg .gif .webp",
    }


def test_what_becomes_of_pictures_and_of_artifacts_has_its_words() -> None:
    assert [one.value for one in Embeds] == ["none", "linked", "sent"]
    assert [one.value for one in Promotion] == ["as_itself", "as_note", "note_by_note", "never"]
    assert frozenset({Kind.UNKNOWN}) == UNPARSED_KINDS
    assert [kind for kind, row in KINDS.items() if row.trust is Trust.VAULT] == [
        Kind.NOTE, Kind.ACTIVE_NOTE, Kind.PDF, Kind.OFFICE, Kind.CANVAS, Kind.CODE, Kind.CODEBASE, Kind.DATAVIEW,
        Kind.PASSAGE, Kind.TAG, Kind.FOLDER,
    ]  # fmt: skip


def test_a_folder_and_a_tag_are_read_as_such_and_promoted_note_by_note() -> None:
    read = {kind: (KINDS[kind].medium, KINDS[kind].promotion) for kind in (Kind.FOLDER, Kind.TAG)}
    assert read == {
        Kind.FOLDER: (Medium.FOLDER, Promotion.NOTE_BY_NOTE),
        Kind.TAG: (Medium.TAG, Promotion.NOTE_BY_NOTE),
    }
