"""An archive is the conversation: exact while its sources are, and honest when they are not."""

from pathlib import Path

import pytest
from tests.unit.archive.markdown.chats import (
    NAME,
    attached,
    chat,
    export_log,
    fold,
    given,
    import_log,
    make_backend,
    next_turn,
    note,
    page,
    said,
    search,
    selection,
    sources_of,
)
from tests.unit.pictures import png

from lamella.archive.markdown.archive import parse_archive, render_archive
from lamella.conversation.backend import Backend
from lamella.conversation.conversation import Conversation
from lamella.conversation.import_export import ConversationRepository
from lamella.conversation.turn import TurnRequest
from lamella.core.artifacts.kinds import make_image_artifact, make_image_data
from lamella.core.artifacts.model import Artifact, ArtifactKind, AttachmentPolicy
from lamella.errors import BadInputError
from lamella.sources.open_sources import make_source_opener


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("text of a", encoding="utf-8")
    (folder / "deep" / "b, [c].md").write_text("text of b", encoding="utf-8")
    return folder


@pytest.fixture
def backend(vault: Path) -> Backend:
    return make_backend(vault)


def picture() -> Artifact:
    return make_image_artifact(make_image_data(png(2, 2), media_type="image/png", width=2, height=2), title="dot")


def had(backend: Backend) -> Conversation:
    """A conversation with one of everything, an edit and a branch."""
    conversation_log = Conversation.open(backend, NAME, {"layout": "in_place"})
    conversation_log.rename("One of everything")
    everything = (
        note("a.md"),
        note("deep/b, [c].md"),
        page("https://example.org/x", "the page"),
        selection("a.md", "selected words"),
        picture(),
        given("paper.pdf", "read from a PDF", kind=ArtifactKind.PDF),
    )
    conversation_log.ask(
        TurnRequest(
            text="First {[[a]]}", attach=everything, results=(search("found"),), system={"base": "You are terse."}
        )
    )
    conversation_log.reply("Answer")
    conversation_log.ask(TurnRequest(text="Second"))
    conversation_log.reply("Old answer")
    conversation_log.edit(conversation_log.turns()[1].message.id, "Second, better")
    conversation_log.reply("New answer")
    return conversation_log


def test_archive_round_trip_is_exact(backend: Backend) -> None:
    had(backend)
    export = export_log(backend)
    assert parse_archive(render_archive(export), sources=sources_of(backend)) == export


def test_visible_text_is_what_user_saw(backend: Backend) -> None:
    had(backend)
    text = render_archive(export_log(backend))
    assert text.startswith(
        f"---\nlamella: 1\nconversation: {NAME}\ntitle: One of everything\ncreated: 2026-11-15T10:00"
    )
    visible = text.partition("<!--")[0]
    assert "**user**: First {[[a]]}\n[Context: Notes: a.md, " in visible
    assert "**user**: Second, better\n" in visible
    assert "Old answer" not in visible
    assert "You are terse" not in visible


def test_archive_omits_note_text_and_keeps_the_rest(backend: Backend) -> None:
    had(backend)
    text = render_archive(export_log(backend))
    assert "text of a" not in text
    assert "text of b" not in text
    for riding in ("the page", "selected words", "found", "read from a PDF", "iVBORw0KGgo"):
        assert riding in text


def test_files_that_sources_lack_are_included(backend: Backend, vault: Path) -> None:
    conversation_log = had(backend)
    conversation_log.ask(TurnRequest(text="Third", attach=(given("elsewhere.md", "only ever given as text"),)))
    (vault / "a.md").write_text("edited since", encoding="utf-8")
    export = export_log(backend)
    text = render_archive(export, sources=sources_of(backend))
    assert "only ever given as text" in text
    assert '"text of a"' in text
    assert "text of b" not in text
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_older_text_of_edited_note_is_included_and_newest_named(backend: Backend, vault: Path) -> None:
    conversation_log = Conversation.open(backend, NAME)
    conversation_log.ask(TurnRequest(text="one", attach=(note("a.md"),)))
    (vault / "a.md").write_text("newer text", encoding="utf-8")
    conversation_log.ask(TurnRequest(text="two", attach=(note("a.md"),)))
    export = export_log(backend)
    text = render_archive(export)
    assert "text of a" in text
    assert "newer text" not in text
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_snapshot_text_is_included(backend: Backend, vault: Path) -> None:
    Conversation.open(backend, NAME).ask(
        TurnRequest(text="one", attach=(given("a.md", "text of a", policy=AttachmentPolicy.SNAPSHOT),))
    )
    export = export_log(backend)
    text = render_archive(export)
    (vault / "a.md").write_text("newer text", encoding="utf-8")
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_erased_note_is_not_restored_from_vault(backend: Backend) -> None:
    had(backend)
    ConversationRepository(backend.store, backend.clock).erase_artifact(NAME, "a.md")
    export = export_log(backend)
    text = render_archive(export)
    assert '"path":"a.md"}' not in text.partition('"files"')[2]
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_changed_note_is_used_with_warning(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(export_log(backend))
    (vault / "a.md").write_text("quite another text", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has changed since; its text of now is used.",)
    other = make_backend(vault)
    import_log(other, read)
    sent = "".join(message.text for message in next_turn(other).messages)
    assert "quite another text" in sent
    assert "text of a" not in sent
    assert len(fold(read).list_branch_heads()) == 2


def test_moved_note_is_found_by_name(backend: Backend, vault: Path) -> None:
    had(backend)
    export = export_log(backend)
    text = render_archive(export)
    (vault / "a.md").rename(vault / "deep" / "A.md")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/A.md; its text is the same.",)
    assert (read.records, read.contents) == (export.records, export.contents)


def test_moved_and_changed_note_is_reported(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(export_log(backend))
    (vault / "a.md").unlink()
    (vault / "deep" / "a.md").write_text("moved and edited", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/a.md and changed; its text of now is used.",)
    assert b"moved and edited" in read.contents.values()


def test_ambiguous_note_is_omitted(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(export_log(backend))
    (vault / "a.md").unlink()
    for place in ("deep", "other"):
        (vault / place).mkdir(exist_ok=True)
        (vault / place / "a.md").write_text(f"in {place}", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md is left out: it is not there, and 2 notes have its name: deep/a.md, other/a.md.",)
    assert "a.md" not in attached(read)[0]
    assert import_log(make_backend(vault), read) == "new"


def test_moved_note_is_identified_by_equal_text(backend: Backend, vault: Path) -> None:
    had(backend)
    export = export_log(backend)
    text = render_archive(export)
    (vault / "a.md").rename(vault / "deep" / "a.md")
    (vault / "other").mkdir()
    (vault / "other" / "a.md").write_text("another note", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/a.md; its text is the same.",)
    assert read.records == export.records


def test_missing_note_is_omitted_and_conversation_continues(backend: Backend, vault: Path) -> None:
    conversation_log = had(backend)
    conversation_log.fork(conversation_log.turns()[0].message.id)
    conversation_log.reply("Another answer")
    conversation_log.ask(TurnRequest(text="Third"))
    conversation_log.delete(conversation_log.turns()[1].message.id)
    conversation_log.ask(TurnRequest(text="Fourth"))
    text = render_archive(export_log(backend))
    (vault / "a.md").unlink()
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md is left out: it is not there.",)
    other = make_backend(vault)
    import_log(other, read)
    turn = next_turn(other)
    assert "text of a" not in "".join(message.text for message in turn.messages)
    assert said(read) == said(export_log(backend))
    assert len(fold(read).list_branch_heads()) == len(fold(export_log(backend)).list_branch_heads())


def test_named_files_without_vault_are_omitted_with_warning(backend: Backend) -> None:
    had(backend)
    read = parse_archive(render_archive(export_log(backend)), sources=None)
    assert read.warnings == (
        "a.md is left out: no vault was given to read it from.",
        "deep/b, [c].md is left out: no vault was given to read it from.",
    )
    kept = [page("https://example.org/x", ""), selection("a.md", "selected words"), picture()]
    assert attached(read)[0] == [*(artifact.id for artifact in kept), "paper.pdf"]
    assert import_log(make_backend(), read) == "new"


def test_contents_in_store_are_not_read_from_files(backend: Backend, vault: Path) -> None:
    had(backend)
    export = export_log(backend)
    text = render_archive(export)
    (vault / "a.md").write_text("quite another text", encoding="utf-8")
    for sources in (None, sources_of(backend)):
        assert parse_archive(text, sources=sources, read_contents=backend.store.read_contents) == export
    empty = make_backend(vault)
    assert parse_archive(text, sources=None, read_contents=empty.store.read_contents).warnings


def test_two_notes_of_same_text_are_found_while_one_exists(backend: Backend, vault: Path) -> None:
    (vault / "twin.md").write_text("text of a", encoding="utf-8")
    Conversation.open(backend, NAME).ask(TurnRequest(text="one", attach=(note("a.md"), note("twin.md"))))
    export = export_log(backend)
    text = render_archive(export)
    (vault / "a.md").unlink()
    read = parse_archive(text, sources=sources_of(backend))
    assert (read.records, read.contents) == (export.records, export.contents)


def test_note_in_instructions_is_restored_or_reported(backend: Backend, vault: Path) -> None:
    conversation_log = Conversation.open(backend, NAME)
    conversation_log.ask(TurnRequest(text="one", system={"instructions": "Use {[[a]]}."}))
    conversation_log.reply("two")
    export = export_log(backend)
    text = render_archive(export)
    assert parse_archive(text, sources=sources_of(backend)) == export
    (vault / "a.md").write_text("drawn in anew", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has changed since; its text of now is used.",)
    other = make_backend(vault)
    import_log(other, read)
    assert "drawn in anew" in next_turn(other).messages[0].text


def test_line_endings_and_bom_do_not_matter(backend: Backend) -> None:
    had(backend)
    export = export_log(backend)
    text = render_archive(export)
    for saved in (text.replace("\n", "\r\n"), "\ufeff" + text, text.replace("\n", "\r")):
        assert parse_archive(saved, sources=sources_of(backend)) == export


def test_id_changed_by_hand_is_refused(backend: Backend) -> None:
    had(backend)
    text = render_archive(export_log(backend)).replace(f"conversation: {NAME}", "conversation: other", 1)
    with pytest.raises(BadInputError, match=f"names the conversation 'other'; the comment holds '{NAME}'"):
        parse_archive(text, sources=None)


def test_events_that_do_not_fit_together_are_refused(backend: Backend) -> None:
    chat(backend, ("one", "two"))
    text = render_archive(export_log(backend)).replace('"parent":""', '"parent":"nobody"')
    with pytest.raises(BadInputError, match="comment is damaged: Event 1"):
        parse_archive(text, sources=None)


def test_conversation_without_messages_is_exported(backend: Backend) -> None:
    Conversation.open(backend, NAME).rename("Only a title")
    export = export_log(backend)
    assert parse_archive(render_archive(export), sources=None) == export


def test_code_file_is_named_and_pdf_is_not_read_from_vault(backend: Backend, vault: Path) -> None:
    (vault / "x.py").write_text("print()", encoding="utf-8")
    Conversation.open(backend, NAME).ask(
        TurnRequest(text="one", attach=(given("x.py", "print()", kind=ArtifactKind.CODE),))
    )
    export = export_log(backend)
    text = render_archive(export)
    assert "print()" not in text
    assert parse_archive(text, sources=make_source_opener(vault)()) == export
    (vault / "x.py").unlink()
    assert parse_archive(text, sources=make_source_opener(vault)()).warnings == ("x.py is left out: it is not there.",)
