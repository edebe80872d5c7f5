"""Workbooks as tables."""

import datetime

import pytest
from tests.documents import make_docx, make_xlsx, paragraph

from lamella.sources.converters import ConversionError, ConversionLimits, convert_sheets

LIMITS = ConversionLimits()


def test_sheet_becomes_table_under_its_name() -> None:
    data = make_xlsx({"Costs": [["berth", "fee", "paid"], [41, 7.5, True], [42, 1e20, ""]], "Empty": []})
    assert convert_sheets(data, LIMITS).text == (
        "## Sheet: Costs\n\n| berth | fee | paid |\n| --- | --- | --- |\n| 41 | 7.5 | TRUE |\n| 42 | 1e+20 |  |\n\n"
        "## Sheet: Empty\n\n[This sheet is empty.]"
    )


def test_rows_and_columns_beyond_limits_are_reported() -> None:
    text = convert_sheets(make_xlsx({"Wide": [list(range(120))], "Long": [[1]] * 2_100}), LIMITS).text
    assert "[Cut here: rows 2,001 to 2,100 are left out.]" in text
    assert "[Columns 101 to 120 are left out.]" in text


@pytest.mark.parametrize("data", [b"junk", b"PK\x03\x04junk", make_docx(paragraph("x")), b""])
def test_invalid_workbook_is_reported(data: bytes) -> None:
    with pytest.raises(ConversionError, match=r"no workbook|does not unpack"):
        convert_sheets(data, LIMITS)


def test_dates_are_written_in_iso_format() -> None:
    from io import BytesIO

    from xlsxwriter import Workbook

    out = BytesIO()
    with Workbook(out, {"in_memory": True, "default_date_format": "yyyy-mm-dd hh:mm"}) as book:
        sheet = book.add_worksheet("D")
        sheet.write_datetime(0, 0, datetime.datetime(2026, 11, 18))  # noqa: DTZ001 - sheets know no zones
        sheet.write_datetime(0, 1, datetime.datetime(2026, 11, 18, 9, 30))  # noqa: DTZ001
    assert "| 2026-11-18 | 2026-11-18 09:30:00 |" in convert_sheets(out.getvalue(), LIMITS).text
