"""Document 003, "Testing Checklist for Multimodal Migration" and "Image Handling Constraints": a test for each line.

Its chains are one here: every runner has its messages from the same envelope. Where the document contradicts itself,
what is sent comes from the active note and from what is attached directly, and from nothing else.
"""

from base64 import b64encode
from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import JPEG, png
from tests.unit.rendered import attached, library, sent

from lamella import ActiveNote, Image, Note, ToolOutput, Turn
from lamella.attach import Attachment
from lamella.conversation.turn_reader import AttachmentReader
from lamella.core.artifacts.kinds import SourceMedium
from lamella.core.artifacts.model import UnresolvedAttachment
from lamella.core.messages import ModelReply, StopReason, ToolCall
from lamella.ports import SourceReaders
from lamella.sources.images import ImageReader

MODEL = "anthropic:claude-opus-5-5"
CHART, PLAN = png(60, 40), png(30, 20, 99)
URL = "http://192.168.0.7/gauge.png"
PASTED = f"data:image/png;base64,{b64encode(png(7, 5)).decode()}"
LAYOUTS = pytest.mark.parametrize(
    "layout",
    [pytest.param("library", marks=pytest.mark.moves_prefix(reason="the note goes into the library")), "in_place"],
)


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "img").mkdir()
    (tmp_path / "chart.png").write_bytes(CHART)
    (tmp_path / "img" / "my plan (2).png").write_bytes(PLAN)
    return tmp_path


def write(vault: Path, text: str, name: str = "note.md") -> Path:
    (vault / name).write_text(text, encoding="utf-8")
    return vault


def pictures(turn: Turn) -> list[list[bytes]]:
    """The pictures of each message that has some."""
    return [[image.data for image in message.images] for message in turn.messages if message.images]


def ask(converse: type[Watched], vault: Path, *attach: Attachment, layout: str = "in_place") -> Turn:
    return converse(vault=vault, model=MODEL, layout=layout).ask("What is this?", attach=attach)


def test_image_in_note_context_stays_a_link(converse: type[Watched], vault: Path) -> None:
    turn = ask(converse, write(vault, "Look: ![[chart.png]]"), Note(path="note.md"))
    assert (pictures(turn), turn.envelope.warnings) == ([], ())
    assert "Look: ![[chart.png]]" in turn.messages[-1].text


def test_image_in_active_note_is_sent(converse: type[Watched], vault: Path) -> None:
    turn = ask(converse, write(vault, "Look: ![[chart.png]]"), ActiveNote(path="note.md"))
    assert (pictures(turn), turn.envelope.warnings) == ([[CHART]], ())
    assert "Look: ![[chart.png]]" in turn.messages[-1].text


@pytest.mark.parametrize("link", ["![[chart.png]]", "![[chart.png|300]]", "![[CHART.png#top]]", "![[my plan (2).png]]"])
def test_wiki_style_image_links(converse: type[Watched], vault: Path, link: str) -> None:
    turn = ask(converse, write(vault, link), ActiveNote(path="note.md"))
    assert pictures(turn) == [[PLAN if "plan" in link else CHART]]


@pytest.mark.parametrize(
    "link",
    [
        "![](chart.png)",
        '![alt](chart.png "title")',
        "![a [b](c) d](./chart.png)",
        "![alt][ref]\n\n[ref]: chart.png",
        "![](img/my%20plan%20(2).png)",
        "![](<img/my plan (2).png>)",
        "![](img/my plan (2).png)",
    ],
)
def test_markdown_image_links(converse: type[Watched], vault: Path, link: str) -> None:
    turn = ask(converse, write(vault, link), ActiveNote(path="note.md"))
    assert pictures(turn) == [[PLAN if "plan" in link else CHART]]


def test_image_urls_in_note_content_that_may_not_be_fetched_stay_links(converse: type[Watched], vault: Path) -> None:
    turn = ask(converse, write(vault, f"![gauge]({URL}) ![[chart.png]]"), ActiveNote(path="note.md"))
    assert pictures(turn) == [[CHART]]
    (warning,) = turn.envelope.warnings
    assert warning.startswith(f"An image of note.md is not sent: {URL} stays a link. 192.168.0.7 is at 192.168.0.7")
    assert f"![gauge]({URL})" in turn.messages[-1].text


def test_image_urls_in_note_are_fetched_if_fetcher_is_set() -> None:
    reader = AttachmentReader(
        SourceReaders(readers={SourceMedium.PICTURE: ImageReader(fetch={URL: JPEG}.__getitem__)}), known=tuple
    )
    wanted = ActiveNote(path="note.md", text=f"![gauge]({URL})").to_artifact()
    assert not isinstance(wanted, UnresolvedAttachment)
    (note,) = reader.read_attachments([wanted])
    assert ([image.media_type for image in note.images], reader.warnings) == (["image/jpeg"], [])


def test_pasted_data_uris_are_sent_as_images_not_text(converse: type[Watched], vault: Path) -> None:
    turn = ask(converse, write(vault, f"![pasted]({PASTED})"), ActiveNote(path="note.md"))
    assert pictures(turn) == [[png(7, 5)]]
    assert PASTED not in sent(turn)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", MODEL),
        ("openai-responses", "openai:gpt-5"),
        ("openai", "openai:gpt-5"),
        ("gemini", "google:gemini-3"),
    ],
)
def test_images_appear_in_the_final_request(converse: type[Watched], vault: Path, provider: str, model: str) -> None:
    write(vault, "![[chart.png]]")
    attach: list[Attachment] = [ActiveNote(path="note.md"), Image(data=PLAN)]
    request = str(converse(vault=vault, model=model).ask("q", attach=attach).request(provider))
    for data in (CHART, PLAN):
        assert b64encode(data).decode() in request or repr(data) in request


def test_tool_rounds_follow_message_with_image(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=write(vault, "![[chart.png]]"), model=MODEL, layout="in_place")
    chat.ask("What is this?", attach=[ActiveNote(path="note.md")])
    chat.reply(ModelReply(text="", stop=StopReason.TOOL_CALLS, calls=(ToolCall(id="c1", name="look", arguments="{}"),)))
    turn = chat.submit_tool_outputs([ToolOutput(call="c1", output="A pier.")])
    assert [len(message.images) for message in turn.messages] == [1, 0, 0]
    assert pictures(turn) == [[CHART]]


@LAYOUTS
def test_promoted_note_keeps_text_and_loses_images(converse: type[Watched], vault: Path, layout: str) -> None:
    chat = converse(vault=write(vault, "Look: ![[chart.png]]"), model=MODEL, layout=layout)
    chat.ask("What is this?", attach=[ActiveNote(path="note.md"), Image(path="img/my plan (2).png")])
    chat.reply("A pier.")
    later = chat.ask("And now?")
    assert library(later) == ["note.md"]
    assert not any(message.images for message in later.messages if message.role == "system")
    assert pictures(later) == ([] if layout == "library" else [[PLAN, CHART]])


def test_only_the_active_note_of_the_current_turn_gives_images(converse: type[Watched], vault: Path) -> None:
    write(vault, "![[my plan (2).png]]", name="other.md")
    turn = ask(converse, write(vault, "![[chart.png]]"), Note(path="other.md"), ActiveNote(path="note.md"))
    assert pictures(turn) == [[CHART]]


def test_embed_typed_by_user_is_not_resolved(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault, model=MODEL).ask("What is ![[chart.png]]?")
    assert (pictures(turn), attached(turn)) == ([], [])


def test_missing_or_invalid_image_warns_and_others_are_sent(converse: type[Watched], vault: Path) -> None:
    (vault / "fake.png").write_text("<svg/>", encoding="utf-8")
    text = "![[gone.png]] ![[fake.png]] ![](../../etc/x.png) ![](data:image/png;base64,AAAA) ![[chart.png]]"
    turn = ask(converse, write(vault, text), ActiveNote(path="note.md"))
    assert pictures(turn) == [[CHART]]
    assert [warning.removeprefix("An image of note.md is not sent: ") for warning in turn.envelope.warnings] == [
        "gone.png is not in the vault.",
        "fake.png is an SVG drawing, which is not a picture that models take.",
        "../../etc/x.png is not in the vault.",
        "The pasted picture is not a picture that models take (3 bytes).",
    ]
