"""Slides as text."""

import pytest
from tests.documents import make_docx, make_pptx, paragraph

from lamella.sources.converters import ConversionError, ConversionLimits, convert_slides


def test_slides_have_title_texts_tables_and_notes() -> None:
    assert convert_slides(make_pptx(), ConversionLimits()).text == (
        "## Slide 1: Tides\n\nHigh at noon\nLow at six\n\nNotes: Say where the berths are.\n\n"
        "## Slide 2\n\n| berth | depth |\n| --- | --- |\n| 41 | 7 \\| 8 |"
    )


@pytest.mark.parametrize("data", [make_docx(paragraph("x")), b"junk"])
def test_invalid_presentation_is_reported(data: bytes) -> None:
    with pytest.raises(ConversionError, match=r"no presentation|does not unpack"):
        convert_slides(data, ConversionLimits())
