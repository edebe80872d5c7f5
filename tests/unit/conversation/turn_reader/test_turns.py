"""Reading what a turn asks for: files, folders, tags, and the pictures of the active note."""

import shutil
from pathlib import Path

import pytest
from tests.conftest import Watched
from tests.unit.pictures import png
from tests.unit.rendered import attached

from lamella import ActiveNote, Canvas, Code, Folder, Image, Note, Pdf, Tag
from lamella.conversation.turn import TurnRequest
from lamella.conversation.turn_reader import AttachmentReader, read_turn
from lamella.core.artifacts.kinds import SourceMedium, make_artifact
from lamella.core.artifacts.model import Artifact, ArtifactKind, ArtifactSource, AttachmentPolicy, UnresolvedAttachment
from lamella.core.compaction.fitting import PromptSettings
from lamella.core.layout.layouts import choose_layout
from lamella.core.log.turn import TurnSettings
from lamella.core.prompt.layers.model import LayerId
from lamella.core.prompt.state import PromptState
from lamella.core.values import replace
from lamella.errors import (
    ArtifactError,
    BadInputError,
    PathOutsideVaultError,
    SourceNotFoundError,
    SourceUnreadableError,
)
from lamella.ports import SourceReaders
from lamella.wiring.adapters import open_adapters

PROMOTES = pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("A #x", encoding="utf-8")
    (tmp_path / "docs" / "b.md").write_text("B", encoding="utf-8")
    (tmp_path / "board.canvas").write_text("{}", encoding="utf-8")
    (tmp_path / "main.py").write_text("print()", encoding="utf-8")
    (tmp_path / "plan.png").write_bytes(png(600, 600))
    (tmp_path / "seen.md").write_text("look ![[plan.png]] ![[gone.png]]", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_attachment_without_text_is_read_from_the_vault(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask(
        "q", attach=[Note(path="docs/a.md", title="Titled"), Canvas(path="board.canvas"), Code(path="main.py")]
    )
    assert attached(turn) == [("docs/a.md", "full"), ("board.canvas", "full"), ("main.py", "full")]
    assert "<title>Titled</title>" in turn.messages[-1].text


def test_attachment_with_text_is_not_read(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[Note(path="docs/a.md", text="given")])
    assert "given" in turn.messages[-1].text
    assert "A #x" not in turn.messages[-1].text


@pytest.mark.layout("library")
@PROMOTES
def test_attached_note_is_reread_each_turn(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    chat.ask("one", attach=[Note(path="docs/a.md")])
    chat.reply("r")
    (vault / "docs" / "a.md").write_text("edited since", encoding="utf-8")
    turn = chat.ask("two", attach=[Note(path="docs/a.md")])
    assert attached(turn) == [("docs/a.md", "update")]
    assert "edited since" in turn.messages[-1].text


def test_turn_without_files_needs_no_vault(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    shutil.rmtree(vault)
    assert chat.ask("Still there?").messages


@pytest.mark.layout("library")
@PROMOTES
def test_touched_file_changes_no_byte(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    chat.ask("one", attach=[Note(path="docs/a.md")])
    chat.reply("r")
    (vault / "docs" / "a.md").touch()
    assert attached(chat.ask("two", attach=[Note(path="docs/a.md")])) == [("docs/a.md", "reference")]


def test_folder_attaches_notes_with_own_ids(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[Folder(path="docs")])
    assert attached(turn) == [("docs/a.md", "full"), ("docs/b.md", "full")]


def test_tag_attaches_its_notes(converse: type[Watched], vault: Path) -> None:
    assert attached(converse(vault=vault).ask("q", attach=[Tag(tag="x")])) == [("docs/a.md", "full")]


def test_empty_folder_or_tag_warns(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[Folder(path="empty"), Tag(tag="#none")])
    assert turn.envelope.warnings == (
        "The folder empty holds no notes; nothing was attached for it.",
        "The tag #none holds no notes; nothing was attached for it.",
    )


def test_without_a_vault_a_file_to_be_read_is_an_error(converse: type[Watched]) -> None:
    for one in (Note(path="a.md"), Folder(path="docs"), Tag(tag="x"), Image(path="p.png")):
        with pytest.raises(SourceNotFoundError, match="no vault"):
            converse().ask("q", attach=[one])


def test_vault_errors_reach_caller_and_change_nothing(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    with pytest.raises(PathOutsideVaultError):
        chat.ask("q", attach=[Note(path="../x.md")])
    with pytest.raises(SourceUnreadableError):
        chat.ask("q", attach=[Pdf(path="docs/a.md")])
    assert chat.ask("hello").number == 1


def test_active_note_loads_images_and_warns_of_missing(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[ActiveNote(path="seen.md")])
    assert [image.width for image in turn.messages[-1].images] == [600]
    (warning,) = turn.envelope.warnings
    assert "seen.md" in warning
    assert "gone.png" in warning


def test_other_notes_load_no_images(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[Note(path="seen.md")])
    assert turn.messages[-1].images == ()
    assert turn.envelope.warnings == ()


@pytest.mark.layout("library")
@pytest.mark.moves_prefix(reason="in layout library what was attached goes into the system message")
def test_active_note_images_are_sent_only_while_active(converse: type[Watched], vault: Path) -> None:
    chat = converse(vault=vault)
    chat.ask("one", attach=[ActiveNote(path="seen.md")])
    chat.reply("r")
    assert not any(message.images for message in chat.ask("two").messages)
    chat.reply("r")
    third = chat.ask("three", attach=[ActiveNote(path="seen.md")])
    assert len(third.messages[-1].images) == 1
    assert "look ![[plan.png]]" in third.messages[0].text
    assert "- seen.md\n" in third.messages[-1].text


def test_active_note_images_without_vault_warn(converse: type[Watched]) -> None:
    turn = converse().ask("q", attach=[ActiveNote(path="a.md", text="![[plan.png]]")])
    assert "no vault" in turn.envelope.warnings[0]


def test_image_is_read_by_path(converse: type[Watched], vault: Path) -> None:
    turn = converse(vault=vault).ask("q", attach=[Image(path="plan.png")])
    assert [segment.kind for segment in turn.envelope.layer(LayerId.L3).segments] == ["image"]
    assert turn.messages[-1].images[0].width == 600


class PdfReader:
    """Reads the one PDF there is."""

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        return make_artifact(
            attachment.kind, text="Page 1", source=ArtifactSource(path=attachment.name), title=attachment.title
        )


def test_reader_works_for_its_medium_only() -> None:
    reader = AttachmentReader(SourceReaders(readers={SourceMedium.PDF: PdfReader()}), known=tuple)
    (pdf,) = reader.read_attachments([UnresolvedAttachment(kind=ArtifactKind.PDF, name="a.pdf", title="A")])
    assert (pdf.kind, pdf.id, pdf.title, pdf.text) == (ArtifactKind.PDF, "a.pdf", "A", "Page 1")
    for kind in (ArtifactKind.OFFICE, ArtifactKind.NOTE, ArtifactKind.FOLDER, ArtifactKind.TAG, ArtifactKind.IMAGE):
        with pytest.raises(SourceNotFoundError, match="x has no text, and there is no vault"):
            reader.read_attachments([UnresolvedAttachment(kind=kind, name="x")])


@pytest.mark.layout("library")
@PROMOTES
def test_note_pinned_by_id_is_attached_as_known(converse: type[Watched]) -> None:
    chat = converse()
    chat.ask("one", attach=[Note(path="a.md", text="# A")])
    chat.reply("yes")
    assert attached(chat.ask("two", pin=["a.md"])) == [("a.md", "reference")]
    turn = chat.ask("three", drop=["a.md"])
    assert any("a.md" in warning and "pin" in warning for warning in turn.envelope.warnings)


def test_unknown_id_cannot_be_pinned(converse: type[Watched]) -> None:
    with pytest.raises(ArtifactError, match=r"nobody\.md cannot be pinned") as caught:
        converse().ask("one", pin=["nobody.md"])
    assert "policy pin" in caught.value.hint


def test_pinned_and_reattached_note_has_new_text(converse: type[Watched]) -> None:
    chat = converse(layout="in_place")
    chat.ask("Read this.", attach=[Note(path="a.md", text="Old.")])
    chat.reply("Yes.")
    turn = chat.ask("Keep it.", attach=[Note(path="a.md", text="New.")], pin=["a.md"])
    assert "New." in turn.messages[-1].text
    assert turn.envelope.warnings == ()
    assert chat.preview("").envelope.prompt.library["a.md"].artifact.policy == "pin"


def test_changed_note_is_pinned_in_new_text(converse: type[Watched], vault: Path) -> None:
    chat = converse(layout="in_place", attachments="sticky", vault=vault)
    (vault / "a.md").write_text("Old.\n")
    chat.ask("Read this.", attach=[Note(path="a.md")])
    chat.reply("Yes.")
    (vault / "a.md").write_text("New.\n")
    turn = chat.ask("Keep it.", pin=["a.md"])
    assert "New." in turn.messages[-1].text
    assert chat.preview("").envelope.prompt.library["a.md"].artifact.policy == "pin"


class Page:
    """A page that says what it is told to, or fails, and counts how often it is asked."""

    def __init__(self) -> None:
        self.says: str | BadInputError = "old"
        self.fresh: list[bool] = []
        self.told: list[str] = []

    def read(self, attachment: UnresolvedAttachment) -> Artifact:
        self.fresh.append(attachment.read_again)
        if isinstance(self.says, BadInputError):
            raise self.says
        self.told.append(f"{attachment.name} is read.")
        return make_artifact(
            attachment.kind, text=self.says, source=ArtifactSource(url=attachment.name, is_rereadable=True)
        )

    def take(self, *known: Artifact, fresh: bool = False, url: str = "https://e.org/x") -> tuple[Artifact, list[str]]:
        reader = AttachmentReader(SourceReaders(readers={SourceMedium.PAGE: self}), known=lambda: known)
        (found,) = reader.read_attachments([UnresolvedAttachment(kind=ArtifactKind.URL, name=url, read_again=fresh)])
        return found, reader.warnings


@pytest.fixture
def known() -> Artifact:
    source = ArtifactSource(url="https://e.org/x", is_rereadable=True)
    return make_artifact(ArtifactKind.URL, text="old", source=source, policy=AttachmentPolicy.SNAPSHOT)


def test_known_page_is_not_refetched_for_other_fragment(known: Artifact) -> None:
    page = Page()
    assert page.take(known, url="https://e.org/x#part")[0].text == "old"
    assert page.fresh == []


def test_refreshed_page_replaces_changed_snapshot(known: Artifact) -> None:
    page = Page()
    assert page.take(known, fresh=True)[0].policy is None
    page.says = "new"
    found, warnings = page.take(known, fresh=True)
    assert (found.text, found.policy, found.is_fresh, warnings) == ("new", None, True, [])
    assert page.fresh == [True, True]


def test_page_that_cannot_be_refreshed_is_kept(known: Artifact) -> None:
    page = Page()
    page.says = SourceNotFoundError("It is gone.", hint="Look.")
    found, warnings = page.take(known, fresh=True)
    assert (found.text, warnings) == ("old", ["https://e.org/x stays as it was sent last: It is gone."])
    with pytest.raises(SourceNotFoundError, match="It is gone"):
        page.take(fresh=True)


def test_reader_warnings_become_turn_warnings(known: Artifact) -> None:
    page = Page()
    sources = SourceReaders(readers={SourceMedium.PAGE: page}, warnings=page.told)
    turn_request = TurnRequest(text="q", attach=(UnresolvedAttachment(kind=ArtifactKind.URL, name="https://e.org/x"),))
    adapters = replace(open_adapters(None), open_sources=lambda: sources)
    settings = PromptSettings(tokenizer=adapters.counter.get_tokenizer(None), plan_layout=choose_layout)
    turn = read_turn(
        turn_request, PromptState(conversation="c"), adapters, turn_settings=TurnSettings(), settings=settings
    )
    assert turn.warnings == ("https://e.org/x is read.",)
    assert turn.attached[0].policy is known.policy
