"""The archive and the fields that docs/reference/formats/archive.md shows are real."""

from tests.contracts.console import blocks
from tests.contracts.repository import DOCS
from tests.contracts.tables import names
from tests.unit.archive.markdown.chats import said

from lamella.archive.markdown import parse_archive, render_archive
from lamella.archive.markdown.payload import ArchiveCommentInput

PAGE = (DOCS / "reference" / "formats" / "archive.md").read_text(encoding="utf-8")


def test_documented_archive_is_valid() -> None:
    (shown,) = [block.body for block in blocks(PAGE) if block.language == "markdown"]
    export = parse_archive(shown, sources=None)
    assert export.warnings == ()
    assert said(export) == ["Summarize this", "Two resources:\n**ai**: is how an answer begins."]
    assert render_archive(export) == shown


def test_every_field_of_the_comment_is_on_the_page() -> None:
    assert set(names(PAGE, under="The comment")) == set(ArchiveCommentInput.model_fields)
