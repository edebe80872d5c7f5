"""What docs/archive.md says of the format is true."""

from tests.contracts.console import blocks
from tests.contracts.places import DOCS
from tests.contracts.tables import names
from tests.unit.adapters.archive.markdown.chats import said

from lamella.adapters.archive.markdown import parse_archive, render_archive
from lamella.adapters.archive.markdown.comment import CommentIn
from lamella.adapters.archive.markdown.names import MAX_BYTES

PAGE = (DOCS / "archive.md").read_text(encoding="utf-8")


def test_the_file_on_the_page_is_an_archive_as_it_is_written() -> None:
    (shown,) = [block.body for block in blocks(PAGE) if block.language == "markdown"]
    chronicle = parse_archive(shown, sources=None)
    assert chronicle.warnings == ()
    assert said(chronicle) == ["Summarize this", "Two resources:\n**ai**: is how an answer begins."]
    assert render_archive(chronicle) == shown


def test_every_field_of_the_comment_is_on_the_page() -> None:
    assert set(names(PAGE, under="A file")) == set(CommentIn.model_fields)


def test_the_length_of_names_is_on_the_page() -> None:
    assert f"at most {MAX_BYTES} bytes" in PAGE
