"""PDF: the text of each page under a heading with its number."""

from typing import TYPE_CHECKING

from lamella.adapters.sources.conversion.model import ConversionFault, ConversionLimits, ConvertedText
from lamella.adapters.sources.conversion.plain import clean, clean_title, cut

if TYPE_CHECKING:
    import pypdfium2

# PDFium joins a word that a hyphen splits over two lines, and leaves this where the hyphen was.
_SOFT_HYPHENS = ("\x02", "\ufffe", "\xad")
_NO_TEXT = "[This page has no text.]"
_MOST_PAGES = 5_000


def convert_pdf(data: bytes, limits: ConversionLimits) -> ConvertedText:
    """The text of a PDF with page marks. One without any text says that it is scanned."""
    import pypdfium2

    document = _open(data)
    count = len(document)
    parts: list[str] = []
    size = found = 0
    for number in range(min(count, _MOST_PAGES)):
        try:
            text = _join(document[number].get_textpage().get_text_bounded())
        except pypdfium2.PdfiumError:
            text = "[This page cannot be read.]"
        found += bool(text)
        parts.append(f"## Page {number + 1}\n\n{text or _NO_TEXT}")
        size += len(parts[-1])
        if size > limits.characters:
            break
    if not found:
        raise ConversionFault(
            f"has {count:,} {'page' if count == 1 else 'pages'} and no text: it is scanned or drawn.",
            "Run it through text recognition first, or attach its text.",
        )
    if len(parts) < count:
        parts.append(f"[Cut here: pages {len(parts) + 1:,} to {count:,} are left out.]")
    title = document.get_metadata_dict().get("Title", "")
    return ConvertedText(title=clean_title(title), text=cut("\n\n".join(parts), limits.characters + _MOST_PAGES))


def _open(data: bytes) -> "pypdfium2.PdfDocument":
    import pypdfium2
    import pypdfium2.raw

    if b"%PDF-" not in data[:1024]:
        raise ConversionFault("is not a PDF: its first bytes do not say so.", "Check the file, or attach its text.")
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code in (pypdfium2.raw.FPDF_ERR_PASSWORD, pypdfium2.raw.FPDF_ERR_SECURITY):
            raise ConversionFault(
                "is encrypted: it opens with a password only.", "Save a copy without a password, and attach that."
            ) from error
        raise ConversionFault("is a broken PDF.", "Save it anew from a program that opens it.") from error


def _join(text: str) -> str:
    for mark in _SOFT_HYPHENS:
        text = text.replace(mark, "")
    return clean(text)
