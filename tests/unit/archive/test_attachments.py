"""Attachments as transcripts write them."""

from base64 import b64encode

import pytest
from tests.unit.pictures import png

from lamella.archive.attachments import AttachmentInput, parse_attachment
from lamella.core.artifacts.kinds import KINDS
from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy, UnresolvedAttachment
from lamella.errors import ArtifactError, LamellaError, NotAvailableError

VALUES: dict[str, object] = {
    "path": "a.md",
    "url": "https://e.org",
    "tag": "#x",
    "query": "LIST",
    "lines": [1, 2],
    "place": "Costs#May",
    "turn_only": True,
    "text": "text",
    "data": b64encode(png(2, 2)).decode(),
    "media_type": "image/png",
    "images": [{"data": b64encode(png(2, 2)).decode(), "media_type": "image/png"}],
}
ATTACHABLE = [kind for kind, spec in KINDS.items() if spec.fields]


def read(**fields: object) -> Artifact | UnresolvedAttachment:
    return parse_attachment(AttachmentInput.model_validate(fields))


def refused(**fields: object) -> LamellaError:
    with pytest.raises(LamellaError) as caught:
        read(**fields)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("kind", ATTACHABLE)
def test_kind_accepts_all_its_fields(kind: ArtifactKind) -> None:
    fields = {name: VALUES[name] for name in KINDS[kind].fields}
    made = read(kind=kind.value, title="T", policy="snapshot", **fields)
    assert made.kind is kind


@pytest.mark.parametrize("kind", ATTACHABLE)
def test_kind_refuses_fields_of_others_and_names_its_own(kind: ArtifactKind) -> None:
    for name in VALUES.keys() - KINDS[kind].fields:
        error = refused(kind=kind.value, **{name: VALUES[name]})
        assert isinstance(error, ArtifactError)
        assert f"takes no {name}" in error.message
        assert all(field in error.hint for field in KINDS[kind].fields)


def test_tool_results_are_not_attachments() -> None:
    assert "`tools`" in refused(kind="tool").hint


@pytest.mark.parametrize("kind", ["note", "active_note", "pdf", "office", "canvas", "code"])
def test_file_without_text_is_unresolved(kind: str) -> None:
    assert read(kind=kind, path="a.md", policy="pin", title="T") == UnresolvedAttachment(
        kind=ArtifactKind(kind), name="a.md", policy=AttachmentPolicy.PIN, title="T"
    )


def test_query_without_text_is_unresolved() -> None:
    wanted = read(kind="dataview", path="a.md", query="LIST", policy="pin", title="T")
    assert wanted == UnresolvedAttachment(
        kind=ArtifactKind.DATAVIEW, name="a.md", query="LIST", policy=AttachmentPolicy.PIN, title="T"
    )


def test_file_with_empty_text_is_not_read() -> None:
    made = read(kind="note", path="a.md", text="")
    assert isinstance(made, Artifact)
    assert made.text == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "selected_text", "path": "a.md"},
        {"kind": "unknown"},
    ],
)
def test_kind_without_reader_needs_text(fields: dict[str, str]) -> None:
    assert isinstance(refused(**fields), NotAvailableError)


@pytest.mark.parametrize("kind", ["url", "web_tab", "youtube"])
def test_page_without_text_is_fetched_by_address(kind: str) -> None:
    wanted = parse_attachment(AttachmentInput.model_validate({"kind": kind, "url": "https://e.org", "title": "T"}))
    assert wanted == UnresolvedAttachment(kind=ArtifactKind(kind), name="https://e.org", title="T")


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        ({"kind": "note"}, "path"),
        ({"kind": "note", "text": "x"}, "path"),
        ({"kind": "folder"}, "path"),
        ({"kind": "tag"}, "tag"),
        ({"kind": "tag", "tag": ""}, "tag"),
        ({"kind": "image"}, "path"),
        ({"kind": "image", "data": "AA=="}, "media_type"),
        ({"kind": "url", "text": "x"}, "url"),
        ({"kind": "dataview", "path": "a.md", "text": "x"}, "query"),
        ({"kind": "dataview", "path": "a.md"}, "query"),
        ({"kind": "dataview", "query": "LIST"}, "path"),
    ],
)
def test_missing_field_is_named(fields: dict[str, str], missing: str) -> None:
    assert missing in refused(**fields).message


def test_lines_run_forwards() -> None:
    assert (
        "starts at line 9 and ends at line 3" in refused(kind="selected_text", path="a", lines=[9, 3], text="").message
    )


def test_invalid_base64_image_is_refused_and_path_is_read_later() -> None:
    assert "not base64" in refused(kind="image", data="!!!", media_type="image/png").message
    made = read(kind="image", data=b64encode(b"no").decode(), media_type="image/png", title="T")
    assert made == UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="", title="T", data=b"no", media_type="image/png")


def test_image_can_be_data_url_and_web_image_has_bytes() -> None:
    letters = f"data:image/png;base64,{b64encode(png(2, 2)).decode()}"
    assert read(kind="image", url=letters) == UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=letters)
    data = b64encode(png(2, 2)).decode()
    made = read(kind="image", url="https://e.org/a", data=data, media_type="image/png")
    assert made == UnresolvedAttachment(
        kind=ArtifactKind.IMAGE, name="https://e.org/a", data=png(2, 2), media_type="image/png"
    )
    assert read(kind="image", url="https://e.org/a") == UnresolvedAttachment(
        kind=ArtifactKind.IMAGE, name="https://e.org/a"
    )
    assert "no address" in refused(kind="image", url="a.png").message


def test_active_note_keeps_its_images() -> None:
    made = read(kind="active_note", path="a.md", text="![[x.png]]", images=VALUES["images"])
    assert isinstance(made, Artifact)
    assert [(image.width, image.data) for image in made.images] == [(2, png(2, 2))]
    assert "no text" in refused(kind="active_note", path="a.md", images=VALUES["images"]).message
    broken = [{"data": "AAAA", "media_type": "image/png"}]
    assert "embeds is not a picture" in refused(kind="active_note", path="a.md", text="x", images=broken).message


def test_folders_and_tags_are_unresolved() -> None:
    assert read(kind="folder", path="docs", policy="pin") == UnresolvedAttachment(
        kind=ArtifactKind.FOLDER, name="docs", policy=AttachmentPolicy.PIN
    )
    assert read(kind="tag", tag="#x") == UnresolvedAttachment(kind=ArtifactKind.TAG, name="#x")
