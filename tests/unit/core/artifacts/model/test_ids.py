"""Ids: from the location of an artifact or from its content; never from a clock or a counter."""

import pytest

from lamella.core.artifacts.kinds import make_artifact, make_image_artifact, make_image_data, make_tool_result
from lamella.core.artifacts.model import (
    ArtifactKind,
    ArtifactSource,
    make_codebase_id,
    make_dataview_id,
    make_image_id,
    make_passage_id,
    make_path_id,
    make_selection_id,
    make_tag_id,
    make_tool_result_id,
    make_unparsed_block_id,
    make_url_id,
)
from lamella.core.text.content import short_hash
from lamella.errors import ArtifactError

FILES = [
    ArtifactKind.NOTE,
    ArtifactKind.ACTIVE_NOTE,
    ArtifactKind.PDF,
    ArtifactKind.OFFICE,
    ArtifactKind.CANVAS,
    ArtifactKind.CODE,
]
PAGES = [ArtifactKind.URL, ArtifactKind.WEB_TAB, ArtifactKind.YOUTUBE]
STRANGE = [
    "Bob's & co.md",
    'a "quoted" name.md',
    "list], item.md",
    "a, b.md",
    "👩‍👩‍👧‍👦.md",
    "מסמך.md",
    "two\nlines.md",
    "<tag>.md",
    "&lt;.md",
]


def name_of(kind: ArtifactKind, text: str = "text", **source: object) -> str:
    return make_artifact(kind, text=text, source=ArtifactSource(**source)).id  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("path", STRANGE)
def test_file_id_is_its_path(kind: ArtifactKind, path: str) -> None:
    assert name_of(kind, path=path) == path


def test_note_and_the_active_note_of_one_path_share_their_id() -> None:
    assert name_of(ArtifactKind.NOTE, path="a.md") == name_of(ArtifactKind.ACTIVE_NOTE, path="a.md")


@pytest.mark.parametrize("path", ["./docs/a.md", "docs//a.md", "docs/./a.md", "docs/a.md/"])
def test_equivalent_paths_have_same_id(path: str) -> None:
    assert name_of(ArtifactKind.NOTE, path=path) == "docs/a.md"


@pytest.mark.parametrize("path", ["", ".", "./", "//"])
def test_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ArtifactError, match=r"has no path|names no file") as caught:
        name_of(ArtifactKind.NOTE, path=path)
    assert "path" in caught.value.hint


@pytest.mark.parametrize("kind", PAGES)
def test_page_id_is_its_url(kind: ArtifactKind) -> None:
    assert name_of(kind, url="https://Example.org/a?b=1&c=2") == "https://Example.org/a?b=1&c=2"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://e.org/p#install", "https://e.org/p"),
        ("https://e.org/p#", "https://e.org/p"),
        ("https://e.org/p#:~:text=hello", "https://e.org/p#:~:text=hello"),
        ("https://e.org/app#/inbox/7", "https://e.org/app#/inbox/7"),
        ("https://e.org/app#!inbox", "https://e.org/app#!inbox"),
        ("https://e.org/v#t=90", "https://e.org/v#t=90"),
        ("https://e.org/d.pdf#page=4", "https://e.org/d.pdf#page=4"),
    ],
)
def test_fragment_is_kept_only_if_it_selects_content(url: str, expected: str) -> None:
    assert name_of(ArtifactKind.URL, url=url) == expected


def test_dataview_id_has_note_and_query() -> None:
    one = name_of(ArtifactKind.DATAVIEW, path="a.md", query="LIST", text="x")
    assert one.startswith("a.md#dataview:")
    assert one == name_of(ArtifactKind.DATAVIEW, path="a.md", query="LIST", text="another result")
    assert one != name_of(ArtifactKind.DATAVIEW, path="a.md", query="TABLE", text="x")


def test_selection_id_has_place_and_text() -> None:
    one = name_of(ArtifactKind.SELECTED_TEXT, path="a.md", lines=(10, 20), text="first")
    assert one.startswith("a.md#L10-L20:")
    assert one != name_of(ArtifactKind.SELECTED_TEXT, path="a.md", lines=(10, 20), text="second")


def test_selections_without_lines_have_distinct_ids() -> None:
    ids = {name_of(ArtifactKind.SELECTED_TEXT, path="a.md", text=text) for text in ("one", "two", "three")}
    assert len(ids) == 3


def test_web_selection_id_has_url() -> None:
    assert name_of(ArtifactKind.WEB_SELECTION, url="https://e.org/x", text="t").startswith("https://e.org/x#selection:")


def test_tool_result_id_depends_on_tool_arguments_and_output() -> None:
    def result(arguments: dict[str, object], output: str) -> str:
        return make_tool_result("search", arguments=arguments, output=output).id

    assert result({"a": 1, "b": 2}, "x") == result({"b": 2, "a": 1}, "x")
    assert len({result({"a": 1}, "x"), result({"a": 2}, "x"), result({"a": 1}, "y")}) == 3
    assert result({}, "x").startswith("tool:search:")


def test_unknown_block_id_is_sha256_of_content() -> None:
    expected = "unparsed:7ebfa7b4598d947f61e1596351e1f4e89615e37df458a22e276a98e6a956ec7f"
    assert name_of(ArtifactKind.UNKNOWN, text="<odd>block</odd>") == expected


def test_image_id_is_hash_of_bytes() -> None:
    image = make_image_data(b"bytes", media_type="image/png", width=1, height=1)
    assert make_image_artifact(image, path="a.png").id == make_image_artifact(image, path="b.png").id == image.hash


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (ArtifactKind.NOTE, "path"),
        (ArtifactKind.URL, "url"),
        (ArtifactKind.DATAVIEW, "query"),
        (ArtifactKind.SELECTED_TEXT, "path"),
        (ArtifactKind.TOOL, "name"),
    ],
)
def test_missing_id_part_is_refused_with_hint(kind: ArtifactKind, missing: str) -> None:
    with pytest.raises(ArtifactError, match=r"has no|neither") as caught:
        name_of(kind, **({"path": "a.md"} if kind is ArtifactKind.DATAVIEW else {}))
    assert missing in caught.value.hint


def test_absolute_path_stays_absolute() -> None:
    assert make_path_id(ArtifactSource(path="/etc//hosts"), "") == "/etc/hosts"
    assert make_path_id(ArtifactSource(path="./a/./b.md"), "") == "a/b.md"


@pytest.mark.parametrize(
    "path", ["tool:search:0123456789ab", "tool:two\nlines:0123456789ab", f"unparsed:{'0' * 64}", f"sha256:{'f' * 64}"]
)
def test_path_resembling_content_id_is_refused(path: str) -> None:
    with pytest.raises(ArtifactError, match="named by its content") as caught:
        make_path_id(ArtifactSource(path=path), "")
    assert "Rename the file" in caught.value.hint


@pytest.mark.parametrize(
    "path", ["tool:search:0123456789ag", f"unparsed:{'0' * 63}", f"md5:{'0' * 64}", "notes/tool:search:0123456789ab"]
)
def test_path_with_similar_prefix_is_accepted(path: str) -> None:
    assert make_path_id(ArtifactSource(path=path), "") == path


def test_long_path_is_truncated_in_error() -> None:
    with pytest.raises(ArtifactError) as caught:
        make_path_id(ArtifactSource(path=f"sha256:{'f' * 64}"), "")
    assert f"'sha256:{'f' * 33}'" in caught.value.message


def test_id_rules_give_exact_forms() -> None:
    assert make_url_id(ArtifactSource(url="https://e.org/a#b#/c"), "") == "https://e.org/a"
    assert make_dataview_id(ArtifactSource(path="a.md", query="LIST"), "x") == f"a.md#dataview:{short_hash('LIST')}"
    assert make_selection_id(ArtifactSource(path="./a.md", lines=(3, 3)), "x") == f"a.md#L3-L3:{short_hash('x')}"
    assert (
        make_selection_id(ArtifactSource(path="a.md", url="https://e.org"), "x") == f"a.md#selection:{short_hash('x')}"
    )
    assert make_selection_id(ArtifactSource(url="https://e.org"), "x") == f"https://e.org#selection:{short_hash('x')}"
    called = short_hash('{"a":1}\nx')
    assert make_tool_result_id(ArtifactSource(tool="t", arguments='{"a":1}'), "x") == f"tool:t:{called}"
    assert make_tool_result_id(ArtifactSource(tool="t"), "x") == make_tool_result_id(
        ArtifactSource(tool="t", arguments="{}"), "x"
    )
    assert make_unparsed_block_id(ArtifactSource(), "x").startswith("unparsed:2d711642b726b044")
    assert make_image_id(ArtifactSource(), "sha256:1") == "sha256:1"


@pytest.mark.parametrize("tag", ["project", "#project", "##project"])
def test_tag_id_has_one_hash_sign(tag: str) -> None:
    assert make_tag_id(ArtifactSource(query=tag), "") == "#project"


def test_tag_without_a_name_is_refused() -> None:
    with pytest.raises(ArtifactError, match="no tag") as caught:
        make_tag_id(ArtifactSource(), "")
    assert "#project" in caught.value.hint


@pytest.mark.parametrize("lines", [(0, 1), (2, 1), (0, 0), (-1, 5)])
def test_lines_that_are_not_first_and_last_from_one_are_refused(lines: tuple[int, int]) -> None:
    with pytest.raises(ArtifactError, match=f"line {lines[0]} and ends at line {lines[1]}") as caught:
        make_selection_id(ArtifactSource(path="a.md", lines=lines), "x")
    assert "counted from 1" in caught.value.hint
    assert make_selection_id(ArtifactSource(path="a.md", lines=(1, 1)), "x").startswith("a.md#L1-L1:")


def test_instruction_id_is_its_task() -> None:
    assert name_of(ArtifactKind.INSTRUCTION, "one", path="explain") == "instruction:explain"
    with pytest.raises(ArtifactError, match="An instruction has no name"):
        name_of(ArtifactKind.INSTRUCTION, path=" ")


def test_passage_id_is_file_and_place() -> None:
    assert name_of(ArtifactKind.PASSAGE, path="a.md", place="Costs#May~1") == "a.md#passage:Costs#May~1"
    assert name_of(ArtifactKind.PASSAGE, "one", path="a.md", place="Costs") == name_of(
        ArtifactKind.PASSAGE, "other", path="./a.md", place="Costs"
    )


def test_passage_without_heading_has_own_id() -> None:
    assert make_passage_id(ArtifactSource(path="a.md"), "") == "a.md#passage:~0"


def test_passage_below_long_heading_has_short_id() -> None:
    one, other = (name_of(ArtifactKind.PASSAGE, path="a.md", place="x" * 5_000 + end) for end in "ab")
    assert one != other
    assert len(one) < 300


def test_codebase_id_is_its_folder() -> None:
    names = [
        make_codebase_id(ArtifactSource(path=path, query=query), "") for path, query in (("src/", "a"), ("./src", "b"))
    ]
    assert names == ["codebase:src", "codebase:src"]
