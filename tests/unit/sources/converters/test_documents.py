"""Documents of word processors."""

import pytest
from tests.documents import make_docx, make_xlsx, make_zip, paragraph

from lamella.sources.converters import ConversionError, ConversionLimits, convert_docx

LIMITS = ConversionLimits()


def test_headings_paragraphs_and_tables_become_markdown() -> None:
    cell = "<w:tc>{}</w:tc>"
    rows = "".join(
        f"<w:tr>{''.join(cell.format(paragraph(text)) for text in row)}</w:tr>" for row in (("a", "b"), ("1", "2"))
    )
    body = f"{paragraph('Plan', style='Heading1')}{paragraph('We build.')}<w:tbl>{rows}</w:tbl>"
    found = convert_docx(make_docx(body), LIMITS)
    assert found.text.startswith("# Plan\n\nWe build.\n\n")
    assert "| 1 | 2 |" in found.text


def test_macros_and_extras_are_ignored() -> None:
    data = make_docx(
        paragraph("Only this."), extra={"word/vbaProject.bin": b"\x00macro", "word/media/x.png": b"\x89PNG"}
    )
    assert convert_docx(data, LIMITS).text == "Only this."


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (make_zip({"hello.txt": "x"}), "is no document of a word processor"),
        (make_xlsx({"A": [["x"]]}), "is no document of a word processor"),
        (make_docx("<w:p>"), "is no document of a word processor"),
        (make_docx(""), "has no text"),
        (b"junk", "does not unpack"),
    ],
)
def test_invalid_document_is_reported(data: bytes, told: str) -> None:
    with pytest.raises(ConversionError, match=told):
        convert_docx(data, LIMITS)
