"""Ids: from where an artifact stands, or from its content; never from a clock or a counter."""

import pytest

from lamella.core.artifacts.make import make_artifact, make_image, make_image_value, make_tool_result
from lamella.core.artifacts.model import Kind, Source
from lamella.errors import ArtifactError

FILES = [Kind.NOTE, Kind.ACTIVE_NOTE, Kind.PDF, Kind.OFFICE, Kind.CANVAS, Kind.CODE]
PAGES = [Kind.URL, Kind.WEB_TAB, Kind.YOUTUBE]
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


def name_of(kind: Kind, text: str = "text", **source: object) -> str:
    return make_artifact(kind, text=text, source=Source(**source)).id  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("path", STRANGE)
def test_a_file_is_named_by_its_path_whatever_characters_it_has(kind: Kind, path: str) -> None:
    assert name_of(kind, path=path) == path


def test_a_note_and_the_active_note_of_one_path_share_their_id() -> None:
    assert name_of(Kind.NOTE, path="a.md") == name_of(Kind.ACTIVE_NOTE, path="a.md")


@pytest.mark.parametrize("path", ["./docs/a.md", "docs//a.md", "docs/./a.md", "docs/a.md/"])
def test_a_path_written_in_another_way_is_the_same_id(path: str) -> None:
    assert name_of(Kind.NOTE, path=path) == "docs/a.md"


@pytest.mark.parametrize("path", ["", ".", "./", "//"])
def test_a_path_that_names_no_file_is_refused(path: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        name_of(Kind.NOTE, path=path)
    assert "path" in caught.value.hint


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_named_by_its_url_as_given(kind: Kind) -> None:
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
def test_a_fragment_stays_only_where_it_selects_content(url: str, expected: str) -> None:
    assert name_of(Kind.URL, url=url) == expected


def test_a_dataview_is_named_by_its_note_and_its_query() -> None:
    one = name_of(Kind.DATAVIEW, path="a.md", query="LIST", text="x")
    assert one.startswith("a.md#dataview:")
    assert one == name_of(Kind.DATAVIEW, path="a.md", query="LIST", text="another result")
    assert one != name_of(Kind.DATAVIEW, path="a.md", query="TABLE", text="x")


def test_a_selection_is_named_by_its_place_and_its_text() -> None:
    one = name_of(Kind.SELECTED_TEXT, path="a.md", lines=(10, 20), text="first")
    assert one.startswith("a.md#L10-L20:")
    assert one != name_of(Kind.SELECTED_TEXT, path="a.md", lines=(10, 20), text="second")


def test_two_selections_without_lines_never_share_an_id() -> None:
    ids = {name_of(Kind.SELECTED_TEXT, path="a.md", text=text) for text in ("one", "two", "three")}
    assert len(ids) == 3


def test_a_web_selection_keeps_its_url() -> None:
    assert name_of(Kind.WEB_SELECTION, url="https://e.org/x", text="t").startswith("https://e.org/x#selection:")


def test_a_tool_result_is_named_by_tool_arguments_and_output() -> None:
    def result(arguments: dict[str, object], output: str) -> str:
        return make_tool_result("search", arguments=arguments, output=output).id

    assert result({"a": 1, "b": 2}, "x") == result({"b": 2, "a": 1}, "x")
    assert len({result({"a": 1}, "x"), result({"a": 2}, "x"), result({"a": 1}, "y")}) == 3
    assert result({}, "x").startswith("tool:search:")


def test_an_unknown_block_is_named_by_the_sha256_of_its_content() -> None:
    expected = "unparsed:7ebfa7b4598d947f61e1596351e1f4e89615e37df458a22e276a98e6a956ec7f"
    assert name_of(Kind.UNKNOWN, text="<odd>block</odd>") == expected


def test_an_image_is_named_by_the_hash_of_its_bytes() -> None:
    image = make_image_value(b"bytes", media_type="image/png", width=1, height=1)
    assert make_image(image, path="a.png").id == make_image(image, path="b.png").id == image.hash


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (Kind.NOTE, "path"),
        (Kind.URL, "url"),
        (Kind.DATAVIEW, "query"),
        (Kind.SELECTED_TEXT, "path"),
        (Kind.TOOL, "name"),
    ],
)
def test_an_artifact_without_what_its_id_needs_is_refused_with_a_hint(kind: Kind, missing: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        name_of(kind, **({"path": "a.md"} if kind is Kind.DATAVIEW else {}))
    assert missing in caught.value.hint
