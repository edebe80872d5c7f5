"""PDFs as text."""

import pytest
from tests.documents import make_locked_pdf, make_pdf

from lamella.sources.converters import ConversionError, ConversionLimits, convert_pdf

LIMITS = ConversionLimits()


def test_pdf_pages_are_numbered_and_words_joined() -> None:
    found = convert_pdf(make_pdf(["First infor-", "mation", "here."], ["Second."]), LIMITS)
    assert found.text == "## Page 1\n\nFirst information\nhere.\n\n## Page 2\n\nSecond."


def test_page_without_text_is_marked() -> None:
    found = convert_pdf(make_pdf(["Words."], []), LIMITS)
    assert found.text.endswith("## Page 2\n\n[This page has no text.]")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (make_pdf([], []), "has 2 pages and no text: it is scanned"),
        (make_pdf([]), "has 1 page and no text"),
        (make_locked_pdf(), "is encrypted"),
        (b"", "is not a PDF"),
        (b"PK\x03\x04 something else", "is not a PDF"),
        (b"%PDF-1.7 and then nothing", "is a broken PDF"),
        (make_pdf(["Words."])[:120], "is a broken PDF"),
    ],
)
def test_pdf_without_text_says_why(data: bytes, told: str) -> None:
    with pytest.raises(ConversionError, match=told):
        convert_pdf(data, LIMITS)


def test_long_pdf_is_cut_with_notice() -> None:
    found = convert_pdf(make_pdf(*[["Many words stand on this page."]] * 20), ConversionLimits(characters=200))
    assert "[Cut here: pages 6 to 20 are left out.]" in found.text
    assert len(found.text) < 400


def test_same_bytes_give_the_same_text() -> None:
    data = make_pdf(["One."], ["Two."])
    assert convert_pdf(data, LIMITS) == convert_pdf(data, LIMITS)
