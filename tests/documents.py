"""Small documents of every kind, made here: whole ones, broken ones, and bombs."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_MOMENT = (2026, 1, 1, 0, 0, 0)
_WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_pdf(*pages: Sequence[str]) -> bytes:
    """A PDF of pages of lines; a page without lines has no text, as a scanned one."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    parts = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        shown = " 0 -14 Td ".join(f"({line}) Tj" for line in lines)
        drawn = f"BT /F1 12 Tf 20 700 Td {shown} ET" if lines else "0 0 100 100 re f"
        parts += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    return _join_pdf(parts, "")


def make_locked_pdf() -> bytes:
    """A PDF that says it is encrypted, in a way that no empty password opens."""
    locked = f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{'41' * 32}> /U <{'42' * 32}> >>"
    parts = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>", locked]
    return _join_pdf(parts, "/Encrypt 3 0 R /ID [<41><41>]")


def _join_pdf(parts: Sequence[str], extra: str) -> bytes:
    out = b"%PDF-1.4\n"
    places: list[int] = []
    for number, part in enumerate(parts, start=1):
        places.append(len(out))
        out += f"{number} 0 obj\n{part}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(parts) + 1}\n0000000000 65535 f \n{table}"
    return (
        out + f"{head}trailer << /Size {len(parts) + 1} /Root 1 0 R {extra} >>\nstartxref\n{len(out)}\n%%EOF".encode()
    )


def make_zip(parts: Mapping[str, str | bytes]) -> bytes:
    """An archive that is the same bytes on any day."""
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as package:
        for name, content in parts.items():
            package.writestr(ZipInfo(name, _MOMENT), content, compress_type=ZIP_DEFLATED)
    return out.getvalue()


def make_docx(body: str, *, head: str = "", extra: Mapping[str, str | bytes] | None = None) -> bytes:
    """A document of a word processor with this body, after ``head`` in its XML."""
    types = (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'wordprocessingml.document.main+xml"/>'
    )
    link = f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>'
    return make_zip(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{types}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{link}</Relationships>',
            "word/document.xml": f'<?xml version="1.0"?>{head}<w:document xmlns:w="{_WORDS}"><w:body>{body}</w:body>'
            "</w:document>",
            **(extra or {}),
        }
    )


def paragraph(text: str, *, style: str = "") -> str:
    """A paragraph of a document, under a style such as Heading1."""
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r><w:t>{text}</w:t></w:r></w:p>"


def make_pptx() -> bytes:
    """Two slides, one with a table, one with notes."""
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Tides"
    first.placeholders[1].text = "High at noon\nLow at six"
    first.notes_slide.notes_text_frame.text = "Say where the berths are."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    table = second.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    for row, cells in enumerate((("berth", "depth"), ("41", "7 | 8"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    out = BytesIO()
    deck.save(out)
    return out.getvalue()


def make_xlsx(sheets: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """A workbook with these rows; numbers and texts."""
    from xlsxwriter import Workbook

    out = BytesIO()
    with Workbook(out, {"in_memory": True}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return out.getvalue()
