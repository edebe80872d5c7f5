"""Sheets: each as a table under its name, up to so many rows and columns; what is left out is told."""

import datetime
from collections.abc import Sequence
from io import BytesIO

from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText
from lamella.adapters.sources.conversion.packages import check_package
from lamella.adapters.sources.conversion.plain import clean_title, cut
from lamella.adapters.sources.conversion.tables import render_table

_MOST_ROWS = 2_000
_MOST_COLUMNS = 100
_ZIP = b"PK"


def convert_sheets(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """The cells of a workbook as markdown tables, as values: formulas as what they gave, without macros."""
    from python_calamine import CalamineError, CalamineWorkbook

    if data.startswith(_ZIP):
        check_package(data)
    parts: list[str] = []
    try:
        with CalamineWorkbook.from_filelike(BytesIO(data)) as book:
            for name in book.sheet_names:
                parts.append(_render_sheet(name, book.get_sheet_by_name(name).to_python()))
                if sum(map(len, parts)) > limits.characters:
                    break
    except (CalamineError, ValueError, OSError) as error:
        raise ConversionFault(
            f"is no workbook that can be read: {clean_title(str(error))[:200]}.",
            "Save it without a password as .xlsx, and attach that.",
        ) from error
    if not parts:
        raise ConversionFault("has no sheets.", "Check the file.")
    return ConvertedText(title="", text=cut("\n\n".join(parts), limits.characters))


def _render_sheet(name: str, rows: Sequence[Sequence[object]]) -> str:
    width = max((len(row) for row in rows), default=0)
    shown = [[_tell(cell) for cell in row[:_MOST_COLUMNS]] for row in rows[:_MOST_ROWS]]
    parts = [f"## Sheet: {clean_title(name)}", render_table(shown) or "[This sheet is empty.]"]
    if len(rows) > _MOST_ROWS:
        parts.append(f"[Cut here: rows {_MOST_ROWS + 1:,} to {len(rows):,} are left out.]")
    if width > _MOST_COLUMNS:
        parts.append(f"[Columns {_MOST_COLUMNS + 1:,} to {width:,} are left out.]")
    return "\n\n".join(parts)


def _tell(cell: object) -> str:
    """A value as people read it: whole numbers without a point, moments as ISO 8601 writes them."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(sep=" ")
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return "" if cell is None else str(cell)
