"""An archive is the conversation: exact while its sources are, and honest when they are not."""

from pathlib import Path

import pytest
from tests.unit.archive.markdown.chats import (
    NAME,
    attached,
    chat,
    fold,
    given,
    make_backend,
    next_turn,
    note,
    page,
    said,
    search,
    selection,
    sources_of,
    take_in,
    take_out,
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
from lamella.sources.open_sources import open_sources


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


def test_what_is_written_is_read_back_exactly(backend: Backend) -> None:
    had(backend)
    export = take_out(backend)
    assert parse_archive(render_archive(export), sources=sources_of(backend)) == export


def test_the_visible_text_is_what_the_user_saw(backend: Backend) -> None:
    had(backend)
    text = render_archive(take_out(backend))
    assert text.startswith(
        f"---\nlamella: 1\nconversation: {NAME}\ntitle: One of everything\ncreated: 2026-11-15T10:00"
    )
    visible = text.partition("<!--")[0]
    assert "**user**: First {[[a]]}\n[Context: Notes: a.md, " in visible
    assert "**user**: Second, better\n" in visible
    assert "Old answer" not in visible
    assert "You are terse" not in visible


def test_the_text_of_a_note_is_not_in_the_archive_and_all_else_is(backend: Backend) -> None:
    had(backend)
    text = render_archive(take_out(backend))
    assert "text of a" not in text
    assert "text of b" not in text
    for riding in ("the page", "selected words", "found", "read from a PDF", "iVBORw0KGgo"):
        assert riding in text


def test_with_the_sources_at_hand_files_they_do_not_give_ride_along(backend: Backend, vault: Path) -> None:
    conversation_log = had(backend)
    conversation_log.ask(TurnRequest(text="Third", attach=(given("elsewhere.md", "only ever given as text"),)))
    (vault / "a.md").write_text("edited since", encoding="utf-8")
    export = take_out(backend)
    text = render_archive(export, sources=sources_of(backend))
    assert "only ever given as text" in text
    assert '"text of a"' in text
    assert "text of b" not in text
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_the_older_text_of_an_edited_note_rides_and_the_newest_is_named(backend: Backend, vault: Path) -> None:
    conversation_log = Conversation.open(backend, NAME)
    conversation_log.ask(TurnRequest(text="one", attach=(note("a.md"),)))
    (vault / "a.md").write_text("newer text", encoding="utf-8")
    conversation_log.ask(TurnRequest(text="two", attach=(note("a.md"),)))
    export = take_out(backend)
    text = render_archive(export)
    assert "text of a" in text
    assert "newer text" not in text
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_a_snapshot_is_never_read_again_so_it_rides(backend: Backend, vault: Path) -> None:
    Conversation.open(backend, NAME).ask(
        TurnRequest(text="one", attach=(given("a.md", "text of a", policy=AttachmentPolicy.SNAPSHOT),))
    )
    export = take_out(backend)
    text = render_archive(export)
    (vault / "a.md").write_text("newer text", encoding="utf-8")
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_what_was_erased_does_not_come_back_from_the_vault(backend: Backend) -> None:
    had(backend)
    ConversationRepository(backend.store, backend.clock).erase_artifact(NAME, "a.md")
    export = take_out(backend)
    text = render_archive(export)
    assert '"path":"a.md"}' not in text.partition('"files"')[2]
    assert parse_archive(text, sources=sources_of(backend)) == export


def test_a_changed_note_is_used_as_it_is_now_and_it_is_said(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(take_out(backend))
    (vault / "a.md").write_text("quite another text", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has changed since; its text of now is used.",)
    other = make_backend(vault)
    take_in(other, read)
    sent = "".join(message.text for message in next_turn(other).messages)
    assert "quite another text" in sent
    assert "text of a" not in sent
    assert len(fold(read).branch_heads()) == 2


def test_a_moved_note_is_found_by_its_name_and_nothing_else_changes(backend: Backend, vault: Path) -> None:
    had(backend)
    export = take_out(backend)
    text = render_archive(export)
    (vault / "a.md").rename(vault / "deep" / "A.md")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/A.md; its text is the same.",)
    assert (read.records, read.contents) == (export.records, export.contents)


def test_a_note_that_moved_and_changed_is_said_to_have_done_both(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(take_out(backend))
    (vault / "a.md").unlink()
    (vault / "deep" / "a.md").write_text("moved and edited", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/a.md and changed; its text of now is used.",)
    assert b"moved and edited" in read.contents.values()


def test_an_ambiguous_note_is_left_out_and_never_guessed(backend: Backend, vault: Path) -> None:
    had(backend)
    text = render_archive(take_out(backend))
    (vault / "a.md").unlink()
    for place in ("deep", "other"):
        (vault / place).mkdir(exist_ok=True)
        (vault / place / "a.md").write_text(f"in {place}", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md is left out: it is not there, and 2 notes have its name: deep/a.md, other/a.md.",)
    assert "a.md" not in attached(read)[0]
    assert take_in(make_backend(vault), read) == "new"


def test_of_two_notes_of_one_name_the_one_with_the_same_text_is_no_guess(backend: Backend, vault: Path) -> None:
    had(backend)
    export = take_out(backend)
    text = render_archive(export)
    (vault / "a.md").rename(vault / "deep" / "a.md")
    (vault / "other").mkdir()
    (vault / "other" / "a.md").write_text("another note", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has moved to deep/a.md; its text is the same.",)
    assert read.records == export.records


def test_a_missing_note_is_left_out_and_the_conversation_goes_on(backend: Backend, vault: Path) -> None:
    conversation_log = had(backend)
    conversation_log.fork(conversation_log.turns()[0].message.id)
    conversation_log.reply("Another answer")
    conversation_log.ask(TurnRequest(text="Third"))
    conversation_log.delete(conversation_log.turns()[1].message.id)
    conversation_log.ask(TurnRequest(text="Fourth"))
    text = render_archive(take_out(backend))
    (vault / "a.md").unlink()
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md is left out: it is not there.",)
    other = make_backend(vault)
    take_in(other, read)
    turn = next_turn(other)
    assert "text of a" not in "".join(message.text for message in turn.messages)
    assert said(read) == said(take_out(backend))
    assert len(fold(read).branch_heads()) == len(fold(take_out(backend)).branch_heads())


def test_without_a_vault_every_named_file_is_left_out_and_said(backend: Backend) -> None:
    had(backend)
    read = parse_archive(render_archive(take_out(backend)), sources=None)
    assert read.warnings == (
        "a.md is left out: no vault was given to read it from.",
        "deep/b, [c].md is left out: no vault was given to read it from.",
    )
    kept = [page("https://example.org/x", ""), selection("a.md", "selected words"), picture()]
    assert attached(read)[0] == [*(artifact.id for artifact in kept), "paper.pdf"]
    assert take_in(make_backend(), read) == "new"


def test_what_the_store_holds_is_read_from_no_file(backend: Backend, vault: Path) -> None:
    had(backend)
    export = take_out(backend)
    text = render_archive(export)
    (vault / "a.md").write_text("quite another text", encoding="utf-8")
    for sources in (None, sources_of(backend)):
        assert parse_archive(text, sources=sources, read_contents=backend.store.read_contents) == export
    empty = make_backend(vault)
    assert parse_archive(text, sources=None, read_contents=empty.store.read_contents).warnings


def test_two_notes_of_one_text_are_both_found_while_one_of_them_stands(backend: Backend, vault: Path) -> None:
    (vault / "twin.md").write_text("text of a", encoding="utf-8")
    Conversation.open(backend, NAME).ask(TurnRequest(text="one", attach=(note("a.md"), note("twin.md"))))
    export = take_out(backend)
    text = render_archive(export)
    (vault / "a.md").unlink()
    read = parse_archive(text, sources=sources_of(backend))
    assert (read.records, read.contents) == (export.records, export.contents)


def test_a_note_drawn_into_instructions_comes_back_exactly_or_is_said(backend: Backend, vault: Path) -> None:
    conversation_log = Conversation.open(backend, NAME)
    conversation_log.ask(TurnRequest(text="one", system={"instructions": "Use {[[a]]}."}))
    conversation_log.reply("two")
    export = take_out(backend)
    text = render_archive(export)
    assert parse_archive(text, sources=sources_of(backend)) == export
    (vault / "a.md").write_text("drawn in anew", encoding="utf-8")
    read = parse_archive(text, sources=sources_of(backend))
    assert read.warnings == ("a.md has changed since; its text of now is used.",)
    other = make_backend(vault)
    take_in(other, read)
    assert "drawn in anew" in next_turn(other).messages[0].text


def test_a_file_saved_with_other_line_ends_or_a_mark_reads_the_same(backend: Backend) -> None:
    had(backend)
    export = take_out(backend)
    text = render_archive(export)
    for saved in (text.replace("\n", "\r\n"), "\ufeff" + text, text.replace("\n", "\r")):
        assert parse_archive(saved, sources=sources_of(backend)) == export


def test_an_id_changed_by_hand_is_refused(backend: Backend) -> None:
    had(backend)
    text = render_archive(take_out(backend)).replace(f"conversation: {NAME}", "conversation: other", 1)
    with pytest.raises(BadInputError, match=f"names the conversation 'other'; the comment holds '{NAME}'"):
        parse_archive(text, sources=None)


def test_events_that_do_not_fit_together_are_refused(backend: Backend) -> None:
    chat(backend, ("one", "two"))
    text = render_archive(take_out(backend)).replace('"parent":""', '"parent":"nobody"')
    with pytest.raises(BadInputError, match="comment is damaged: Event 1"):
        parse_archive(text, sources=None)


def test_a_conversation_without_messages_is_an_archive_too(backend: Backend) -> None:
    Conversation.open(backend, NAME).rename("Only a title")
    export = take_out(backend)
    assert parse_archive(render_archive(export), sources=None) == export


def test_a_code_file_is_named_and_a_pdf_cannot_be_read_from_a_vault(backend: Backend, vault: Path) -> None:
    (vault / "x.py").write_text("print()", encoding="utf-8")
    Conversation.open(backend, NAME).ask(
        TurnRequest(text="one", attach=(given("x.py", "print()", kind=ArtifactKind.CODE),))
    )
    export = take_out(backend)
    text = render_archive(export)
    assert "print()" not in text
    assert parse_archive(text, sources=open_sources(vault)()) == export
    (vault / "x.py").unlink()
    assert parse_archive(text, sources=open_sources(vault)()).warnings == ("x.py is left out: it is not there.",)
