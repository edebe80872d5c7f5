"""Attachment classes: one per kind, the same artifact as in a transcript."""

import pytest
from tests.unit.pictures import png

from lamella import (
    ActiveNote,
    BadInputError,
    Canvas,
    Code,
    Conversation,
    Dataview,
    Folder,
    Image,
    Note,
    Office,
    Pdf,
    Selection,
    Tag,
    Tool,
    ToolResult,
    Unknown,
    Url,
    WebTab,
    YouTube,
)
from lamella.archive.attachments import AttachmentInput, parse_attachment
from lamella.attach import Attachment, attachment_for_path, has_known_extension
from lamella.core.artifacts.model import ArtifactKind, UnresolvedAttachment
from lamella.errors import ArtifactError, SettingError

PAIRS: list[tuple[Attachment, dict[str, object]]] = [
    (Note(path="a.md", text="A"), {"kind": "note", "path": "a.md", "text": "A"}),
    (Note(path="a.md", policy="pin"), {"kind": "note", "path": "a.md", "policy": "pin"}),
    (ActiveNote(path="a.md", text="A"), {"kind": "active_note", "path": "a.md", "text": "A"}),
    (Pdf(path="a.pdf", text="A"), {"kind": "pdf", "path": "a.pdf", "text": "A"}),
    (Office(path="a.docx", text="A"), {"kind": "office", "path": "a.docx", "text": "A"}),
    (Canvas(path="a.canvas", text="A"), {"kind": "canvas", "path": "a.canvas", "text": "A"}),
    (Code(path="a.py", text="A", title="T"), {"kind": "code", "path": "a.py", "text": "A", "title": "T"}),
    (Url(url="https://e.org", text="A"), {"kind": "url", "url": "https://e.org", "text": "A"}),
    (WebTab(url="https://e.org", text="A"), {"kind": "web_tab", "url": "https://e.org", "text": "A"}),
    (YouTube(url="https://e.org", text="A"), {"kind": "youtube", "url": "https://e.org", "text": "A"}),
    (Folder(path="docs"), {"kind": "folder", "path": "docs"}),
    (Tag(tag="#x"), {"kind": "tag", "tag": "#x"}),
    (Dataview(path="a", query="Q", title="T"), {"kind": "dataview", "path": "a", "query": "Q", "title": "T"}),
    (Dataview(path="a", query="Q", text="A"), {"kind": "dataview", "path": "a", "query": "Q", "text": "A"}),
    (
        Selection(path="a", lines=(1, 2), text="A"),
        {"kind": "selected_text", "path": "a", "lines": [1, 2], "text": "A"},
    ),
    (Selection(url="https://e.org", text="A"), {"kind": "web_selection", "url": "https://e.org", "text": "A"}),
    (Unknown(text="A"), {"kind": "unknown", "text": "A"}),
    (Image(path="a.png"), {"kind": "image", "path": "a.png"}),
]


@pytest.mark.parametrize(("one", "written"), PAIRS, ids=[str(written["kind"]) for _, written in PAIRS])
def test_attachment_equals_its_transcript_form(one: Attachment, written: dict[str, object]) -> None:
    assert one.to_artifact() == parse_attachment(AttachmentInput.model_validate(written))


def test_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SettingError, match="no policy 'glue'") as caught:
        Note(path="a.md", text="A", policy="glue").to_artifact()
    assert "follow, snapshot, pin" in caught.value.hint


def test_image_needs_data_path_or_url() -> None:
    with pytest.raises(ArtifactError, match="no data, path or url"):
        Image().to_artifact()
    assert Image(path="a.png").to_artifact() == UnresolvedAttachment(kind=ArtifactKind.IMAGE, name="a.png")
    for url in ("https://e.org/a", "data:image/png;base64,AAAA"):
        assert Image(url=url).to_artifact() == UnresolvedAttachment(kind=ArtifactKind.IMAGE, name=url)


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (Image(url="https://e.org/a", path="a.png"), "a url and something else"),
        (Image(url="https://e.org/a", data=b"x"), "a url and something else"),
        (Image(url="file:///etc/passwd"), "file:///etc/passwd is no address of a picture"),
        (Image(url="a.png"), "a.png is no address of a picture"),
    ],
)
def test_image_url_excludes_data_and_is_web_or_data_url(picture: Image, why: str) -> None:
    with pytest.raises(ArtifactError, match=why) as caught:
        picture.to_artifact()
    assert caught.value.hint


def test_image_bytes_are_parsed_when_asked() -> None:
    given = Image(data=png(3, 2), title="Plan")
    assert given.to_artifact().data == png(3, 2)
    turn = Conversation().ask("Look", attach=[given])
    assert [image.width for image in turn.messages[-1].images] == [3]
    with pytest.raises(BadInputError, match="Plan is not a picture that models take"):
        Conversation().ask("Look", attach=[Image(data=b"no", title="Plan")])


@pytest.mark.parametrize(
    ("path", "one"),
    [
        ("a/b.md", Note(path="a/b.md")),
        ("B.PDF", Pdf(path="B.PDF")),
        ("x.canvas", Canvas(path="x.canvas")),
        ("x.tar.py", Code(path="x.tar.py")),
        ("x.docx", Office(path="x.docx")),
        ("x.JPG", Image(path="x.JPG")),
    ],
)
def test_file_kind_follows_known_extension(path: str, one: Attachment) -> None:
    assert has_known_extension(path)
    assert attachment_for_path(path) == one


@pytest.mark.parametrize(
    ("path", "one"),
    [
        (".md", Note(path=".md")),
        ("README", Note(path="README")),
        ("a.md/b", Note(path="a.md/b")),
        ("jo.smith", Code(path="jo.smith")),
    ],
)
def test_unknown_extension_is_code_and_none_is_note(path: str, one: Attachment) -> None:
    assert not has_known_extension(path)
    assert attachment_for_path(path) == one


def test_tool_arguments_are_sorted() -> None:
    result = ToolResult(name="t", arguments={"b": 1, "a": 2}, output="x").to_artifact()
    assert result.source.arguments == '{"a":2,"b":1}'
    assert Tool(name="t", parameters={"b": 1, "a": 2}).to_definition().parameters == '{"a":2,"b":1}'
