"""Making artifacts: normalised once, hashed once, titled sensibly."""

import pytest

from lamella.core.artifacts.kinds import (
    KINDS,
    default_title,
    make_artifact,
    make_image_artifact,
    make_image_data,
    make_omission_list,
    make_tool_definition,
    make_tool_result,
)
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy, TrustLevel
from lamella.core.text.content import canonical_json, hash_text
from lamella.errors import ArtifactError, BadInputError


def note(text: str, path: str = "a.md") -> Artifact:
    return make_artifact(ArtifactKind.NOTE, text=text, source=ArtifactSource(path=path))


def test_line_endings_and_bom_change_neither_hash_nor_text() -> None:
    assert note("\ufeffa\r\nb") == note("a\nb")


def test_trailing_spaces_are_content() -> None:
    assert note("a  \n").text == "a  \n"
    assert note("a  \n").hash != note("a\n").hash


@pytest.mark.parametrize("kind", [ArtifactKind.FOLDER, ArtifactKind.TAG, ArtifactKind.IMAGE])
def test_kind_without_text_is_not_made_from_text(kind: ArtifactKind) -> None:
    with pytest.raises(ArtifactError, match=f"A {kind} is not a text"):
        make_artifact(kind, text="x", source=ArtifactSource(path="a", query="b"))


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (ArtifactSource(path="docs/api-docs.md"), "api-docs"),
        (ArtifactSource(path="docs/.env"), ".env"),
        (ArtifactSource(path="archive.tar.gz"), "archive.tar"),
        (ArtifactSource(path="folder/"), "folder"),
        (ArtifactSource(url="https://e.org/x"), "https://e.org/x"),
        (ArtifactSource(), ""),
    ],
)
def test_title_that_is_not_given_is_the_files_name_or_the_url(source: ArtifactSource, title: str) -> None:
    assert default_title(source) == title


def test_note_knows_whether_it_embeds_images() -> None:
    assert note("![[plan.png]]").has_images
    assert not note("[[plan.png]]").has_images
    assert not make_artifact(ArtifactKind.CODE, text="![[plan.png]]", source=ArtifactSource(path="a.py")).has_images


def test_tool_result_has_call_and_output() -> None:
    result = make_tool_result("search", arguments={"q": "x"}, output="found")
    assert (result.source.tool, result.source.arguments, result.text) == ("search", '{"q":"x"}', "found")


def test_tool_definitions_with_equal_schemas_are_equal() -> None:
    one = make_tool_definition("t", description="", parameters={"a": 1, "b": [2]})
    assert one == make_tool_definition("t", description="", parameters={"b": [2], "a": 1})


def test_canonical_json_sorts_keys_and_keeps_characters() -> None:
    assert canonical_json({"b": "ü", "a": [1, None]}) == '{"a":[1,null],"b":"ü"}'


def test_image_cannot_be_fetched_again_and_has_no_text() -> None:
    picture = make_image_artifact(make_image_data(b"x", media_type="image/png", width=2, height=3))
    assert (picture.text, picture.recoverable, picture.title) == ("", False, "image")


def test_artifact_has_given_fields_and_defaults_of_kind() -> None:
    picture = make_image_data(b"x", media_type="image/png", width=2, height=3)
    source = ArtifactSource(path="a.md", via="#tag")
    made = make_artifact(
        ArtifactKind.NOTE, text="t", source=source, title="T", policy=AttachmentPolicy.PIN, images=[picture]
    )
    assert (made.kind, made.title, made.text, made.source) == (ArtifactKind.NOTE, "T", "t", source)
    assert (made.policy, made.images, made.has_images) == (AttachmentPolicy.PIN, (picture,), True)
    assert (made.recoverable, made.trust, made.condensed) == (True, TrustLevel.VAULT, None)
    assert note("t").policy is None
    assert note("t").images == ()


def test_image_data_has_bytes_size_and_hash() -> None:
    picture = make_image_data(b"x", media_type="image/png", width=2, height=3)
    assert (picture.media_type, picture.data, picture.width, picture.height) == ("image/png", b"x", 2, 3)
    made = make_image_artifact(picture, path="img/a.png")
    assert (made.kind, made.title, made.hash, made.source) == (
        ArtifactKind.IMAGE,
        "a",
        picture.hash,
        ArtifactSource(path="img/a.png"),
    )
    assert (made.images, made.has_images, made.trust) == ((picture,), True, TrustLevel.USER)
    assert make_image_artifact(picture, title="Plan").title == "Plan"


def test_tool_result_is_titled_by_tool() -> None:
    result = make_tool_result("search", arguments={}, output="x")
    assert (result.kind, result.title, result.trust) == (ArtifactKind.TOOL, "search", TrustLevel.TOOL)


def test_tool_definition_has_name_description_and_schema() -> None:
    made = make_tool_definition("t", description="Finds.", parameters={"b": 1, "a": 2})
    assert (made.name, made.description, made.parameters) == ("t", "Finds.", '{"a":2,"b":1}')


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}, object()])
def test_value_that_is_not_json_is_refused_with_hint(value: object) -> None:
    with pytest.raises(ArtifactError, match="cannot be written as JSON") as caught:
        canonical_json({"a": value})
    assert "finite numbers" in caught.value.hint


HALF = "\ud83d"


@pytest.mark.parametrize(
    "source",
    [
        ArtifactSource(path=f"a{HALF}.md"),
        ArtifactSource(path="a.md", url=f"https://e.org/{HALF}"),
        ArtifactSource(path="a.md", query=HALF),
        ArtifactSource(path="a.md", tool=HALF),
        ArtifactSource(path="a.md", arguments=HALF),
    ],
)
def test_unencodable_path_is_refused(source: ArtifactSource) -> None:
    with pytest.raises(BadInputError):
        make_artifact(ArtifactKind.NOTE, text="x", source=source)


def test_title_that_cannot_be_sent_is_refused_as_well() -> None:
    with pytest.raises(BadInputError):
        make_artifact(ArtifactKind.NOTE, text="x", source=ArtifactSource(path="a.md"), title=HALF)
    with pytest.raises(BadInputError):
        make_image_artifact(make_image_data(b"x", media_type="image/png", width=1, height=1), title=HALF)
    for name, description in ((HALF, ""), ("t", HALF)):
        with pytest.raises(BadInputError):
            make_tool_definition(name, description=description, parameters={})


def test_kind_without_text_error_has_hint() -> None:
    with pytest.raises(ArtifactError) as caught:
        make_artifact(ArtifactKind.FOLDER, text="x", source=ArtifactSource(path="a"))
    assert "Expand a folder" in caught.value.hint


@pytest.mark.parametrize("name", ["", " ", "\r\n"])
def test_blank_tool_name_is_refused(name: str) -> None:
    with pytest.raises(ArtifactError, match="no name"):
        make_tool_definition(name, description="", parameters={})
    with pytest.raises(ArtifactError, match="no name"):
        make_tool_result(name, arguments={}, output="")


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        (ArtifactKind.FOLDER, ArtifactSource(path="garden", via="folder:garden")),
        (ArtifactKind.TAG, ArtifactSource(query="garden", via="tag:garden")),
    ],
)
def test_omission_list_knows_its_origin(kind: ArtifactKind, source: ArtifactSource) -> None:
    made = make_omission_list(kind, name="garden", text="Left out:\r\n- a.md")
    assert (made.kind, made.title, made.source) == (kind, "garden", source)
    assert (made.text, made.hash) == ("Left out:\n- a.md", hash_text("Left out:\n- a.md"))
    assert (made.recoverable, made.trust) == (KINDS[kind].recoverable, KINDS[kind].trust)
