"""Making artifacts: normalised once, hashed once, titled sensibly."""

import pytest

from lamella.core.artifacts.make import (
    canonical_json,
    default_title,
    make_artifact,
    make_image,
    make_image_value,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, Kind, Source
from lamella.errors import ArtifactError


def note(text: str, path: str = "a.md") -> Artifact:
    return make_artifact(Kind.NOTE, text=text, source=Source(path=path))


def test_line_endings_and_a_byte_order_mark_change_neither_hash_nor_text() -> None:
    assert note("\ufeffa\r\nb") == note("a\nb")


def test_trailing_spaces_are_content() -> None:
    assert note("a  \n").text == "a  \n"
    assert note("a  \n").hash != note("a\n").hash


@pytest.mark.parametrize("kind", [Kind.FOLDER, Kind.TAG, Kind.IMAGE])
def test_a_kind_without_text_of_its_own_is_not_made_from_text(kind: Kind) -> None:
    with pytest.raises(ArtifactError, match=f"A {kind} is not a text"):
        make_artifact(kind, text="x", source=Source(path="a", query="b"))


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (Source(path="docs/api-docs.md"), "api-docs"),
        (Source(path="docs/.env"), ".env"),
        (Source(path="archive.tar.gz"), "archive.tar"),
        (Source(path="folder/"), "folder"),
        (Source(url="https://e.org/x"), "https://e.org/x"),
        (Source(), ""),
    ],
)
def test_a_title_that_is_not_given_is_the_files_name_or_the_url(source: Source, title: str) -> None:
    assert default_title(source) == title


def test_a_note_knows_whether_it_embeds_pictures() -> None:
    assert note("![[plan.png]]").has_images
    assert not note("[[plan.png]]").has_images
    assert not make_artifact(Kind.CODE, text="![[plan.png]]", source=Source(path="a.py")).has_images


def test_a_tool_result_holds_its_call_and_its_output_in_one_artifact() -> None:
    result = make_tool_result("search", arguments={"q": "x"}, output="found")
    assert (result.source.tool, result.source.arguments, result.text) == ("search", '{"q":"x"}', "found")


def test_tool_definitions_with_equal_schemas_are_equal() -> None:
    one = make_tool_definition("t", description="", parameters={"a": 1, "b": [2]})
    assert one == make_tool_definition("t", description="", parameters={"b": [2], "a": 1})


def test_canonical_json_sorts_keys_and_keeps_characters() -> None:
    assert canonical_json({"b": "ü", "a": [1, None]}) == '{"a":[1,null],"b":"ü"}'


def test_a_picture_cannot_be_fetched_again_and_has_no_text() -> None:
    picture = make_image(make_image_value(b"x", media_type="image/png", width=2, height=3))
    assert (picture.text, picture.recoverable, picture.title) == ("", False, "image")
